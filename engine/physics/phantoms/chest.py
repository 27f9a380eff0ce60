"""Chest slices: lungs with their vessels and airways, heart or great vessels, wall."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.physics.phantoms import tissue
from engine.physics.phantoms.shapes import (
    Array,
    arc,
    blob,
    ellipse,
    mirrored,
    offset,
    smooth,
    superellipse,
    tube,
    xy,
)
from engine.physics.phantoms.texture import branches
from engine.physics.phantoms.tissue import LABEL, Body

LUNG_HU = -850.0
CAVITY = [(0, -78), (30, -80), (62, -76), (94, -60), (115, -32), (124, 2), (120, 36), (104, 64)]
CAVITY += [(78, 82), (50, 87), (24, 84), (0, 80)]
WALL_HEART = [(0, -91), (30, -94), (62, -93), (100, -80), (126, -55), (140, -18), (143, 20)]
WALL_HEART += [(136, 55), (114, 84), (80, 100), (45, 108), (18, 105), (0, 101)]
WALL_UPPER = [(0, -92), (30, -96), (66, -99), (106, -92), (138, -68), (153, -32), (157, 8)]
WALL_UPPER += [(154, 48), (136, 84), (104, 103), (62, 110), (20, 107), (0, 102)]
LUNG = [(7, -76), (34, -79), (62, -75), (93, -59), (114, -32), (123, 2), (119, 36), (103, 63)]
LUNG += [(77, 81), (50, 85), (28, 72), (20, 50), (18, 20), (16, -20), (10, -55)]


def outline(body: Body, upper: bool) -> Array:
    """The outer border of the muscles."""
    return smooth(mirrored(WALL_UPPER if upper else WALL_HEART))


def paint(body: Body, upper: bool) -> str:
    rng = body.rng("chest")
    cavity = smooth(mirrored(CAVITY))
    canvas = body.canvas
    _wall(body, cavity, upper)
    if upper:
        tissue.shoulder_blades(body)
    tissue.back_muscles(body, 95, 27, 12)
    body.organ(cavity, body.visceral_fat, "mediastinum")
    lungs = _lungs(body, canvas.cover(cavity))
    tissue.ribs(body, cavity, 0.12, 0.37, int(rng.integers(5, 7)), head=rng.random() < 0.7)
    tissue.sternum(body, -86)
    level = _great_vessels(body) if upper else _heart(body)
    visible = lungs * (canvas.labels == LABEL["lung"])
    _lung_trees(body, visible)
    tissue.vertebra(body, rng.uniform(53, 58), rng.uniform(0.9, 1.05), 33)
    return level


def _wall(body: Body, cavity: Array, upper: bool) -> None:
    """Intercostal layer, then the broad muscles as bellies with fat planes between them."""
    rng = body.rng("wall")
    canvas = body.canvas
    outer = outline(body, upper)
    canvas.fill(offset(outer, -0.5), body.fat, label=LABEL["fat"])
    broken = (0.75 + 0.5 * body.field("planes", 30.0)).clip(0, 1)
    canvas.fill(offset(cavity, 9.0), body.muscle, label=LABEL["muscle"])
    # (start, stop) as fractions from breastbone to spine, depth below the outer border, thickness
    build = rng.uniform(0.75, 1.15)
    layers = [(0.03, 0.15, 4.0, 9.0), (0.27, 0.40, 4.0, 7.0), (0.42, 0.495, 2.5, 5.0)]
    layers += [(0.15, 0.29, 6.0, 5.0)]
    if upper:
        layers = [(0.03, 0.17, 6.0, 11.0), (0.09, 0.17, 16.0, 6.0), (0.25, 0.36, 6.5, 13.0)]
        layers += [(0.28, 0.42, 20.0, 12.0), (0.37, 0.495, 4.0, 8.0), (0.16, 0.27, 22.0, 8.0)]
        layers += [(0.34, 0.44, 15.0, 9.0)]
    for start, stop, depth, thick in layers:
        for side in (-1.0, 1.0):
            path = offset(outer, -depth)
            a, b = start + rng.normal(0, 0.006), stop + rng.normal(0, 0.008)
            line = arc(path, side * a, side * b, 41)
            swell = np.sin(np.linspace(0.15, np.pi - 0.15, 41)) ** 0.5
            belly = tube(line, build * thick * swell * rng.uniform(0.85, 1.15))
            canvas.fill(offset(belly, 1.0), body.fat, weights=0.8)
            canvas.fill(belly, body.muscle, label=LABEL["muscle"])
    gap = canvas.cover(offset(cavity, 10.8)) - canvas.cover(offset(cavity, 9.2))
    canvas.paint(gap * broken, body.fat)


def nodules(body: Body) -> None:
    """Round lung nodules, solid or of ground glass."""
    rng = body.rng("nodules")
    for _ in range(int(rng.integers(1, 4))):
        radius = float(rng.uniform(1.8, 6.0))
        centre = body.spot(rng, "lung", radius)
        if centre is None:
            return
        solid = radius < 3 or rng.random() < 0.7
        hu = rng.uniform(10, 60) if solid else rng.uniform(-650, -450)
        shape = blob(rng, centre[0], centre[1], radius, radius, 0.0, 0.05)
        body.organ(shape, hu, "lesion", texture=6.0)
        kind = "solid lung nodule" if solid else "ground-glass lung nodule"
        depth_mm = (body.canvas.place(centre)[0, 1] / body.size - 0.5) * body.fov_mm
        body.add_lesion(kind, centre, radius, float(hu - _lung_hu(depth_mm)))


def _lung_hu(y_mm: Any) -> Any:
    """The lung of a patient lying on the back is denser below."""
    return LUNG_HU + 0.28 * (y_mm - 10)


def _lungs(body: Body, cavity: Array) -> Array:
    canvas = body.canvas
    rng = body.rng("lungs")
    _, y = canvas.grid()
    texture = body.field("lung", 4.0, 25.0)
    value = _lung_hu(y) + 34 * texture + 16 * body.soft
    both = []
    for side in (-1.0, 1.0):
        shape = smooth(np.asarray(LUNG) * [side, 1.0])
        shape = shape + rng.normal(0, 1.5, 2)
        both.append(shape)
    body.organ(both, value, "lung", within=cavity)
    cover = canvas.cover(*both) * cavity
    for side in (-1.0, 1.0):
        start, end = rng.uniform(5, 30), rng.uniform(-20, 20)
        line = smooth(
            [[side * 30, start], [side * 75, 0.5 * (start + end) - 8], [side * 122, end]],
            closed=False,
        )
        canvas.fill(tube(line, 0.9), LUNG_HU + 110, within=cover)
    return cover


def _lung_trees(body: Body, visible: Array) -> None:
    canvas = body.canvas
    rng = body.rng("trees")
    tubes, weights = [], []
    walls, lumens = [], []
    for side in (-1.0, 1.0):
        for heading in np.linspace(-1.35, 1.35, 7):
            root = (side * rng.uniform(36, 46), rng.uniform(2, 22))
            angle = heading + rng.normal(0, 0.12)
            angle = angle if side > 0 else np.pi - angle
            radius = rng.uniform(1.7, 3.3)
            for line, width, weight in branches(rng, root, angle, radius, 21, 0.42, loss=0.2):
                tubes.append(tube(line, width))
                body.vessels.append(line)
                weights.append(0.9 * weight**1.5)
            if rng.random() < 0.6:
                shifted = (root[0], root[1] + rng.uniform(5, 8))
                airway = branches(rng, shifted, angle, radius * 0.8, 19, 1.4, loss=0.3)
                for line, width, _ in airway:
                    walls.append(tube(line, width + 2.2))
                    lumens.append(tube(line, width))
                    body.vessels.append(line)
    # vessels that cross the slice show as dots, small ones far more often than large ones
    for _ in range(340):
        r = min(0.5 * rng.pareto(2.6) + 0.45, 1.8)
        x, y = rng.uniform(-122, 122), rng.uniform(-75, 85)
        body.vessels.append(np.array([[x, y]]))
        tubes.append(ellipse(x, y, r, r * rng.uniform(0.7, 1.6), rng.uniform(0, 3), n=14))
        weights.append(rng.uniform(0.35, 0.9))
    canvas.fill(tubes, 35.0 + 0.4 * body.contrast, visible, LABEL["vessel"], weights)
    canvas.fill(walls, -120.0, within=visible)
    canvas.fill(lumens, -960.0, visible, LABEL["airway"])


def _spine_side(body: Body) -> None:
    """Descending aorta and oesophagus in the fat beside the spine."""
    rng = body.rng("posterior")
    fat = smooth([(-24, 56), (-22, 34), (-6, 22), (20, 22), (38, 32), (42, 50), (30, 62), (0, 66)])
    body.organ(fat, body.visceral_fat, "mediastinum")
    radius = rng.uniform(10.5, 13.5)
    aorta = np.array([rng.uniform(21, 26), rng.uniform(40, 45)])
    body.vessel(blob(rng, *xy(aorta), radius, radius, 0.0, 0.015), body.blood, "aorta")
    if rng.random() < 0.35:
        a = rng.uniform(0, 2 * np.pi)
        spot = aorta + (radius - 1.2) * np.array([np.cos(a), np.sin(a)])
        body.organ(ellipse(*xy(spot), 3.2, 1.1, a + np.pi / 2), rng.uniform(450, 800), "aorta")
    x, y = rng.uniform(2, 9), rng.uniform(30, 34)
    body.organ(blob(rng, x, y, 8.5, 5.8, 0.2, 0.06), 46.0, "oesophagus")
    if rng.random() < 0.6:
        body.canvas.fill(ellipse(x, y, 2.6, 1.5), -700.0, label=LABEL["gas"])


def _heart(body: Body) -> str:
    rng = body.rng("heart")
    canvas = body.canvas
    if rng.random() < 0.35:
        dome = blob(rng, -62, -8, rng.uniform(25, 44), rng.uniform(22, 38), 0.2, 0.04)
        body.organ(dome, body.enhanced(57, 0.35), "liver")
    _spine_side(body)
    s = rng.uniform(0.88, 1.1)
    centre = np.array([rng.uniform(14, 22), rng.uniform(-24, -17)])
    angle = rng.uniform(-0.62, -0.3)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])

    def at(u: float, v: float, a: float, b: float, tilt: float, rough: float = 0.05) -> Array:
        middle = centre + s * (np.array([u, v]) @ turn)
        return blob(rng, *xy(middle), s * a, s * b, angle + tilt, rough, orders=4)

    sac = at(0, 0, 64, 50, 0.0, 0.03)
    front = smooth([(-16, -78), (22, -79), (46, -66), (20, -50), (-18, -55)])
    body.organ([offset(sac, rng.uniform(2, 7)), front], body.visceral_fat, "mediastinum")
    canvas.fill(offset(sac, 1.2), 30.0)
    body.organ(sac, body.visceral_fat, "mediastinum")
    muscle = body.enhanced(47, 0.38)
    body.organ(at(-6, 0, 36, 28, 0.0), 0.5 * (muscle + body.blood), "heart")
    # each chamber lies in its own muscle; the grooves between them hold fat
    for u, v, a, b, tilt, wall in (
        (-36, -12, 23, 26, 0.2, 2.0),
        (-26, 24, 29, 19, 0.25, 2.5),
        (14, -22, 42, 21, 0.12, 4.0),
        (20, 14, 33, 22, -0.06, 10.5),
    ):
        body.organ(at(u, v, a + wall * 0.5, b + wall * 0.5, tilt, 0.03), muscle, "heart")
        chamber = at(u, v, a - wall * 0.5, b - wall * 0.5, tilt, 0.05)
        body.organ(chamber, body.blood + rng.normal(0, 0.06) * body.contrast, "heart")
    return "heart"


def _great_vessels(body: Body) -> str:
    rng = body.rng("great vessels")
    canvas = body.canvas
    w = rng.uniform(0.5, 1.15)
    fat = [(-14 * w, -77), (16 * w, -78), (30 * w, -64), (44, -46), (48, -22), (44, 6), (40, 36)]
    fat += [(34, 58), (0, 66), (-22, 60), (-26, 40), (-40, 18), (-47, -8), (-43, -32)]
    fat += [(-26 * w, -56)]
    edge = smooth(np.asarray(fat) + rng.normal(0, 1.8, (len(fat), 2)))
    body.organ(edge, body.visceral_fat, "mediastinum")
    for _ in range(int(rng.integers(3, 9))):
        x, y = rng.uniform(-30, 35), rng.uniform(-66, 2)
        body.organ(blob(rng, x, y, rng.uniform(2, 4.5), rng.uniform(1.5, 3), 0.5), 45.0, "vessel")
    _spine_side(body)
    cava = body.blood + rng.uniform(-0.3, 1.2) * body.contrast
    if rng.random() < 0.4:
        _arch(body, rng, cava)
        return "aortic arch"
    spread = rng.normal(0, 2.0, (2, 4, 2))
    right = smooth(np.array([(24, -26), (8, -5), (-20, 0), (-46, 3)]) + spread[0], closed=False)
    left = smooth(np.array([(26, -34), (34, -16), (42, 2), (48, 12)]) + spread[1], closed=False)
    pulmonary = body.blood + rng.uniform(-0.15, 0.25) * body.contrast
    taper = np.linspace(1, 0.6, len(right)) * rng.uniform(0.85, 1.1)
    trunk = blob(rng, 27, -33, 15, 13, 0.3, 0.04)
    shown = rng.random()
    arteries = [tube(left, 21 * taper)] if shown < 0.8 else []
    arteries += [tube(right, 19 * taper)] if shown > 0.3 else []
    body.vessel([*arteries, trunk], pulmonary)
    radius = rng.uniform(14.5, 18.5)
    x, y = np.array([-8, -33]) + rng.normal(0, 1.5, 2)
    body.vessel(blob(rng, x, y, radius, radius, 0.0, 0.02), body.blood, "aorta")
    body.vessel(blob(rng, -35, -20, 9.5, 8.0, rng.uniform(0, 3), 0.08), cava)
    for line in (
        [(-4, 14), (-20, 18), (-38, 23)],
        [(4, 14), (20, 20), (37, 27)],
    ):
        path = smooth(np.array(line) + rng.normal(0, 1.2, (3, 2)), closed=False)
        width = np.linspace(14.5, 9.5, len(path)) * rng.uniform(0.85, 1.05)
        body.organ(tube(path, width + 3.0), 20.0, "airway")
        canvas.fill(tube(path, width), -1000.0, label=LABEL["airway"])
    return "pulmonary arteries"


def _arch(body: Body, rng: np.random.Generator, cava: float) -> None:
    """Above the pulmonary trunk: the aortic arch sweeps back along the left of the windpipe."""
    points = np.array([(-10, -32), (6, -26), (20, -6), (25, 20), (25, 42)]) + rng.normal(
        0, 1.5, (5, 2)
    )
    line = smooth(points, closed=False)
    width = np.linspace(30, 24, len(line)) * rng.uniform(0.85, 1.0)
    body.vessel(tube(line, width), body.blood, "aorta")
    body.vessel(blob(rng, -28, -24, 9.0, 7.5, 0.4, 0.06), cava)
    x, y = rng.uniform(-6, -1), rng.uniform(4, 10)
    windpipe = superellipse(x, y, rng.uniform(8, 10), rng.uniform(8, 10), 0.0, 2.4)
    body.organ(offset(windpipe, 1.6), 30.0, "airway")
    body.canvas.fill(windpipe, -1000.0, label=LABEL["airway"])
