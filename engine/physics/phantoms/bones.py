"""The skeleton of the trunk: vertebrae, ribs, sternum and shoulder blades."""

from __future__ import annotations

import numpy as np

from engine.physics.phantoms.shapes import Array, arc, blob, ellipse, flip, offset, smooth, tube
from engine.physics.phantoms.tissue import LABEL, Body


def vertebra(body: Body, y: float, scale: float, transverse_mm: float) -> None:
    """A vertebra whose body is centred at (0, y), with canal, arch and processes."""
    rng = body.rng("vertebra")
    canvas = body.canvas
    w, d = 18.5 * scale, 14.0 * scale
    back = y + d
    canal_y = back + 7.5
    cortex = rng.uniform(520, 760)
    tip = back + rng.uniform(8, 18)
    for side in (-1.0, 1.0):
        reach = transverse_mm + rng.normal(0, 2)
        process = smooth(
            [[side * 12, back + 6], [side * 20, back + 11], [side * reach, tip]], closed=False
        )
        body.bone_tube(process, 8.5 * scale, 1.7, cortex)
        lamina = smooth(
            [[side * 0.72 * w, back - 3], [side * 13.5, back + 8], [side * 2, back + 18]],
            closed=False,
        )
        body.bone_tube(lamina, 7.5 * scale, 1.9, cortex + 80)
    spine_end = back + rng.uniform(26, 36)
    spinous = smooth([[0, back + 17], [rng.normal(0, 1), spine_end]], closed=False)
    body.bone_tube(spinous, rng.uniform(6.0, 8.0), 1.6, cortex)
    half = [[0, y - d], [0.55 * w, y - 0.93 * d], [0.95 * w, y - 0.45 * d], [w, y + 0.1 * d]]
    half += [[0.86 * w, y + 0.72 * d], [0.5 * w, y + 0.98 * d], [0, y + 0.9 * d]]
    right = flip(half)[::-1][1:-1]
    outline = smooth(np.concatenate([half, right]))
    rim = rng.uniform(1.2, 1.9)
    body.bone(outline, offset(outline, -rim), cortex, "vertebra")
    # the basivertebral vein leaves a darker cleft at the back of the body
    canvas.fill(ellipse(0, y + 0.62 * d, 2.5, 0.3 * d), float(rng.uniform(70, 130)))
    canvas.fill(ellipse(0, canal_y, 11.5, 8.8), cortex + 60 * body.soft, label=LABEL["bone"])
    canvas.fill(ellipse(0, canal_y, 10.0, 7.6), -40.0, label=LABEL["canal"])
    canvas.fill(ellipse(0, canal_y, 8.2, 6.2), 12.0 + 2 * body.soft, label=LABEL["canal"])
    canvas.fill(ellipse(0, canal_y, 4.6, 3.4), 40.0 + 2 * body.soft, label=LABEL["canal"])


def back_muscles(body: Body, y: float, width: float, depth: float) -> None:
    """The long muscles beside the spine, in two bellies with fat between them."""
    rng = body.rng("back")
    for side in (-1.0, 1.0):
        inner = blob(rng, side * 0.55 * width, y, 0.56 * width, depth, side * 0.12, 0.04)
        outer = blob(
            rng, side * 1.45 * width, y - 0.12 * depth, 0.52 * width, 0.9 * depth, 0.0, 0.05
        )
        for belly in (inner, outer):
            body.canvas.fill(offset(belly, rng.uniform(1.0, 2.2)), body.fat, label=LABEL["fat"])
        for belly in (inner, outer):
            body.canvas.fill(belly, body.muscle, label=LABEL["muscle"])


def ribs(body: Body, cavity: Array, first: float, last: float, count: int, head: bool) -> None:
    """Ribs cut obliquely, as curved lozenges along the wall of the cavity.

    Fractions of the outline run from the breastbone (0) over the left side to the spine (0.5).
    """
    rng = body.rng("ribs")
    wall = offset(cavity, 4.6)
    cortex = rng.uniform(750, 1050)
    for side in (-1.0, 1.0):
        centres = np.linspace(first, last, count) + rng.normal(0, 0.010, count)
        centres += rng.uniform(-0.02, 0.02)
        for centre in centres:
            half = rng.choice([1.0, 1.0, 1.6]) * rng.uniform(0.009, 0.019)
            line = arc(wall, side * (centre - half), side * (centre + half), 9)
            tilt = rng.uniform(-2.2, 2.2) * np.linspace(-1, 1, 9)
            line = line * (1 + tilt / 110)[:, None]
            width = rng.uniform(6.5, 8.5)
            taper = np.sqrt(1 - (0.93 * np.linspace(-1, 1, 9)) ** 2)
            body.bone(
                tube(line, width * taper), tube(line, np.maximum(width * taper - 3.4, 0.3)), cortex
            )
        if head:
            line = arc(wall, side * 0.405, side * 0.452, 9)
            body.bone_tube(line, 7.5, 1.6, cortex)


def sternum(body: Body, y: float) -> None:
    """The breastbone, with cartilage reaching it from both sides."""
    rng = body.rng("sternum")
    half_width = rng.uniform(14, 19)
    for side in (-1.0, 1.0):
        if rng.random() < 0.7:
            line = smooth(
                [[side * (half_width + 1), y], [side * 32, y + 1], [side * 52, y + 6]], closed=False
            )
            taper = rng.uniform(8, 11) * np.linspace(1, 0.8, len(line))
            body.organ(tube(line, taper), rng.uniform(85, 130), "cartilage", texture=8)
    outline = blob(rng, 0, y, half_width, 6.0, 0.0, 0.03)
    body.bone(outline, offset(outline, -1.5), rng.uniform(420, 600))


def shoulder_blades(body: Body) -> None:
    """The thin blades behind the upper ribs, embedded in muscle."""
    rng = body.rng("scapula")
    lift = rng.uniform(-6, 6)
    for side in (-1.0, 1.0):
        points = [[92, 92 + lift], [112, 84 + lift], [130, 68 + lift], [144, 44 + lift]]
        points = [[side * x, y + rng.normal(0, 1.2)] for x, y in points]
        line = smooth(points, closed=False)
        thick = np.interp(np.linspace(0, 1, len(line)), [0, 0.15, 0.7, 1], [6.5, 4.0, 4.5, 12.0])
        for shift in (-9.0, 8.0):
            plane = line + np.array([side * 0.55, 0.83]) * shift
            body.canvas.fill(tube(plane, rng.uniform(1.2, 2.4)), body.fat)
        body.bone(
            tube(line, thick), tube(line, np.maximum(thick - 3.2, 0.4)), rng.uniform(650, 900)
        )
        spine = smooth([line[22], line[22] + [side * 9.0, 16.0]], closed=False)
        body.bone_tube(spine, 5.0, 1.5, 700.0)
