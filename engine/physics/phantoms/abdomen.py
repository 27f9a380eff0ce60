"""Abdominal slices: liver, spleen, stomach, kidneys, bowel, great vessels and the wall."""

from __future__ import annotations

import numpy as np

from engine.physics.phantoms import bowel, tissue
from engine.physics.phantoms.shapes import (
    Array,
    arc,
    blob,
    ellipse,
    mirrored,
    offset,
    smooth,
    tube,
    xy,
)
from engine.physics.phantoms.texture import branches
from engine.physics.phantoms.tissue import LABEL, Body

WALL = [(0, -88), (35, -91), (70, -86), (106, -68), (131, -37), (141, 0), (137, 36), (119, 68)]
WALL += [(91, 87), (60, 97), (30, 101), (10, 97), (0, 93)]
CAVITY = [(0, -78), (35, -81), (69, -76), (99, -59), (119, -32), (128, 0), (124, 32), (106, 58)]
CAVITY += [(82, 71), (58, 75), (30, 72), (0, 70)]
LIVER_UPPER = [(-123, 0), (-116, -34), (-96, -62), (-60, -77), (-15, -80), (28, -74), (58, -58)]
LIVER_UPPER += [(40, -42), (14, -36), (-8, -22), (-22, 2), (-40, 16), (-48, 36), (-62, 58)]
LIVER_UPPER += [(-88, 66), (-110, 48), (-122, 24)]
LIVER_LOWER = [(-124, 4), (-117, -30), (-98, -56), (-70, -68), (-48, -62), (-46, -40), (-56, -16)]
LIVER_LOWER += [(-66, 8), (-80, 34), (-92, 56), (-108, 48), (-121, 26)]
SPLEEN = [(106, -22), (120, -4), (124, 20), (114, 46), (96, 62), (82, 58), (84, 44), (98, 26)]
SPLEEN += [(104, 4)]
STOMACH = [(18, -58), (46, -72), (80, -66), (100, -44), (102, -14), (88, 10), (66, 12), (54, -10)]
STOMACH += [(34, -30)]


def outline(body: Body, upper: bool) -> Array:
    """The outer border of the muscles."""
    return smooth(mirrored(WALL))


def paint(body: Body, upper: bool) -> str:
    rng = body.rng("abdomen")
    canvas = body.canvas
    wall, cavity = smooth(mirrored(WALL)), smooth(mirrored(CAVITY))
    broken = (0.6 + 0.6 * body.field("planes", 45.0)).clip(0, 1)
    for depth in (-4.0, -8.2):
        gap = canvas.cover(offset(wall, depth)) - canvas.cover(offset(wall, depth - 1.2))
        canvas.paint(gap * broken, body.fat)
    tissue.back_muscles(body, 84, 25, 15)
    canvas.fill(cavity, body.visceral_fat, label=LABEL["fat"])
    for side in (-1.0, 1.0):
        belly = arc(offset(wall, -5.0), side * 0.012, side * 0.105, 31)
        swell = np.sin(np.linspace(0.3, np.pi - 0.2, 31)) ** 0.5 * rng.uniform(7, 11)
        canvas.fill(offset(tube(belly, swell), 1.3), body.fat)
        canvas.fill(tube(belly, swell), body.muscle, label=LABEL["muscle"])
    canvas.fill(tube(np.array([[0.0, -90.0], [0.0, -80.0]]), 2.5), body.fat)
    tissue.ribs(body, offset(cavity, -1.0), 0.19, 0.36, 4 if upper else 3, head=False)
    spine_y = rng.uniform(36, 42)
    _great_vessels(body, spine_y)
    if not upper:
        _kidneys(body)
        _psoas(body)
    elif rng.random() < 0.6:
        _kidneys(body, small=True)
    _spleen(body, upper)
    _stomach(body, upper)
    _liver(body, upper)
    _pancreas(body, upper)
    tissue.vertebra(body, spine_y, rng.uniform(1.1, 1.25), 40)
    bowel.loops(body, cavity, 8 if upper else int(rng.integers(12, 26)))
    bowel.mesentery(body, cavity)
    return "upper abdomen" if upper else "kidneys"


def liver_lesions(body: Body) -> None:
    """Small round lesions, 10..40 HU away from the liver."""
    rng = body.rng("liver lesions")
    for _ in range(int(rng.integers(1, 4))):
        radius = float(rng.uniform(2.0, 6.0))
        centre = body.spot(rng, "liver", radius)
        if centre is None:
            return
        contrast = float(rng.uniform(10, 40) * (-1 if rng.random() < 0.8 else 1))
        shape = blob(rng, centre[0], centre[1], radius, radius, 0.0, 0.05)
        body.canvas.fill(shape, body.canvas.image + contrast, label=LABEL["lesion"])
        body.room.fill(shape, 1.0, label=LABEL["lesion"])
        body.add_lesion("liver lesion", centre, radius, contrast)


def _great_vessels(body: Body, spine_y: float) -> None:
    rng = body.rng("great vessels")
    radius = rng.uniform(8.5, 11.5)
    top = spine_y - 18
    for side in (-1.0, 1.0):
        # the crura of the diaphragm hug the aorta
        line = smooth(
            [(side * 17, spine_y), (side * 19, top - 2), (side * 9, top - 16)], closed=False
        )
        body.organ(tube(line, np.linspace(6, 4, len(line))), body.muscle, "muscle")
    aorta = np.array([rng.uniform(3, 8), top - radius - rng.uniform(1, 3)])
    body.vessel(blob(rng, *xy(aorta), radius, radius, 0.0, 0.015), body.blood, "aorta")
    if rng.random() < 0.45:
        for a in rng.uniform(0, 2 * np.pi, int(rng.integers(1, 4))):
            spot = aorta + (radius - 1.1) * np.array([np.cos(a), np.sin(a)])
            body.organ(ellipse(*xy(spot), 2.8, 1.1, a + np.pi / 2), rng.uniform(350, 800), "aorta")
    flat = rng.uniform(0.6, 0.95)
    cava = body.enhanced(43, rng.uniform(0.3, 0.8))
    body.vessel(blob(rng, -21, top - 7, 12, 12 * flat, 0.15, 0.05), cava)
    artery = aorta + np.array([rng.uniform(-2, 2), -radius - 9])
    body.vessel(ellipse(*xy(artery), 3.6, 3.6), body.blood)
    body.vessel(blob(rng, artery[0] - 13, artery[1] - 1, 6.5, 5.8), body.enhanced(42, 0.8))
    over = (float(aorta[0]), float(aorta[1] - radius - 3))
    left_renal = smooth([(-18, top - 9), over, (34, top + 2)], closed=False)
    if rng.random() < 0.4:
        body.vessel(tube(left_renal, 5.0), cava)


def _kidneys(body: Body, small: bool = False) -> None:
    rng = body.rng("kidneys")
    canvas = body.canvas
    late = rng.uniform(0.75, 0.95)
    medulla = late - rng.uniform(0.08, 0.4)
    for side in (-1.0, 1.0):
        s = rng.uniform(0.55, 0.75) if small else rng.uniform(0.82, 1.02)
        cx, cy = side * rng.uniform(64, 70), rng.uniform(40, 46)
        tilt = side * rng.uniform(0.5, 0.9)
        capsule = blob(rng, cx, cy, 30 * s, 24 * s, tilt, 0.04)
        body.organ(offset(capsule, rng.uniform(3, 7)), body.visceral_fat, "fat")
        body.organ(capsule, body.enhanced(34, late), "kidney")
        toward = np.array([-side * 0.85, -0.5])
        for a in np.linspace(-2.0, 2.0, 7) + rng.normal(0, 0.08, 7):
            # pyramids around the sinus; they fill with contrast later than the cortex
            c, sn = np.cos(a), np.sin(a)
            away = -toward @ np.array([[c, sn], [-sn, c]])
            p = np.array([cx, cy]) + away * 15.5 * s
            pyramid = blob(rng, *xy(p), 6.4 * s, 4.0 * s, np.arctan2(away[1], away[0]), 0.06)
            canvas.fill(pyramid, body.enhanced(31, medulla) + 3 * body.soft, label=LABEL["kidney"])
        if small:
            continue
        hilum = np.array([cx, cy]) + toward * 13
        mouth = np.array([cx, cy]) + toward * 34
        sinus = blob(rng, *xy(hilum), 14 * s, 9 * s, np.arctan2(toward[1], toward[0]), 0.15)
        inside = canvas.cover(capsule)
        canvas.fill(sinus, body.visceral_fat, inside, LABEL["fat"])
        path = smooth([hilum - toward * 6, hilum + toward * 8, mouth], closed=False)
        canvas.fill(tube(path, rng.uniform(4, 6)), body.enhanced(38, 0.6), label=LABEL["vessel"])
        pelvis = blob(rng, *xy(hilum - toward * 2), 6 * s, 3.6 * s, rng.uniform(0, 3), 0.15)
        canvas.fill(pelvis, 12.0 + 2 * body.soft, inside, LABEL["kidney"])


def _psoas(body: Body) -> None:
    rng = body.rng("psoas")
    for side in (-1.0, 1.0):
        s = rng.uniform(0.85, 1.15)
        body.organ(
            blob(rng, side * 34, 50, 13 * s, 17 * s, side * 0.35, 0.06), body.muscle, "muscle"
        )


def _spleen(body: Body, upper: bool) -> None:
    rng = body.rng("spleen")
    s = rng.uniform(0.9, 1.12) if upper else rng.uniform(0.5, 0.75)
    middle = np.array([110.0, 25.0])
    shape = smooth(middle + s * (np.asarray(SPLEEN) - middle) + [(1 - s) * 12, 0])
    body.organ(shape, body.enhanced(50, 0.5), "spleen", texture=3.0)


def _stomach(body: Body, upper: bool) -> None:
    rng = body.rng("stomach")
    if not upper and rng.random() < 0.5:
        return
    points = np.asarray(STOMACH, dtype=float)
    if not upper:
        points = points * [0.62, 0.42] + [18, -38]
    points = points + rng.normal(0, 3.0, points.shape)
    shape = smooth(points)
    body.organ(shape, body.enhanced(44, 0.3), "stomach")
    inner = offset(shape, -rng.uniform(3.5, 6.0))
    bowel.contents(body, rng, inner, ["fluid", "food"], "stomach")


def _liver(body: Body, upper: bool) -> None:
    rng = body.rng("liver")
    canvas = body.canvas
    points = np.asarray(LIVER_UPPER if upper else LIVER_LOWER, dtype=float)
    shape = smooth(points + rng.normal(0, 2.0, points.shape))
    fatty = rng.uniform(0, 14) if rng.random() < 0.4 else 0.0
    body.organ(shape, body.enhanced(61 - fatty, 0.34), "liver", texture=3.0)
    inside = canvas.cover(offset(shape, -4))
    portal = body.enhanced(43, rng.uniform(0.55, 0.9))
    roots = [((-42.0, 8.0), 3.4, 4.2), ((-38.0, -8.0), 3.9, 4.4), ((-60.0, 30.0), 2.7, 3.0)]
    roots += [((-30.0, -30.0), 4.4, 3.4), ((0.0, -55.0), 3.6, 2.2)]
    for root, heading, radius in roots if upper else roots[:0]:
        tree = branches(rng, root, heading + rng.normal(0, 0.25), 0.8 * radius, 24, 0.8, loss=0.25)
        tubes = [tube(line, width) for line, width, _ in tree]
        body.vessels += [line for line, _, _ in tree]
        weights = [0.8 * weight**1.6 for _, _, weight in tree]
        canvas.fill(tubes, portal + 2 * body.soft, inside, LABEL["vessel"], weights)
    dots = [
        ellipse(rng.uniform(-120, 20), rng.uniform(-75, 60), *xy(rng.uniform(0.8, 2.6, 2)), n=16)
        for _ in range(40)
    ]
    canvas.fill(dots, portal, inside, LABEL["vessel"], rng.uniform(0.4, 0.9, len(dots)))
    if upper:
        # the fissure of the falciform ligament
        cut = smooth([(-12, -24), (-8, -38), (-14, -58)], closed=False)
        canvas.fill(tube(cut, np.linspace(6, 0.8, len(cut))), body.visceral_fat, inside)
    if rng.random() < 0.5:
        x, y = (-30, -14) if upper else (-42, -28)
        bag = blob(rng, x, y, rng.uniform(9, 14), rng.uniform(14, 20), 0.4, 0.06)
        body.organ(bag, body.enhanced(42, 0.3), "gallbladder")
        canvas.fill(offset(bag, -1.6), rng.uniform(4, 14) + 2 * body.soft)


def _pancreas(body: Body, upper: bool) -> None:
    rng = body.rng("pancreas")
    base = np.array([(-28, 2), (-14, -12), (8, -20), (34, -14), (60, 2), (80, 14)], dtype=float)
    line = smooth(base + rng.normal(0, 3, base.shape) + [0, 0 if upper else 6], closed=False)
    hu = body.enhanced(42, 0.42)
    lobes = []
    for point in line[::3]:
        r = rng.uniform(4.5, 8.0, 2)
        lobes.append(blob(rng, *xy(point + rng.normal(0, 1.2, 2)), *xy(r), rng.uniform(0, 3), 0.12))
    free = (body.canvas.labels == LABEL["fat"]).astype(np.float32)
    body.organ(lobes, hu + 9 * body.fine, "pancreas", within=free)
