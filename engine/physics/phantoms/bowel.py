"""Stomach and bowel contents, loops of bowel and the small vessels of the mesentery."""

from __future__ import annotations

import numpy as np

from engine.physics.phantoms.shapes import Array, blob, ellipse, offset, smooth, tube, xy
from engine.physics.phantoms.tissue import LABEL, Body


def contents(
    body: Body,
    rng: np.random.Generator,
    inner: Array,
    kinds: list[str],
    name: str,
    gas: float = 0.6,
) -> None:
    """Fluid, stool or food with gas above it: the patient lies on the back, so gas is anterior."""
    canvas = body.canvas
    kind = kinds[int(rng.integers(len(kinds)))]
    if kind == "stool":
        bubbles = (body.field("bubbles", 4.0, 12.0) - 0.9).clip(0, 0.8) * 900
        value = 35.0 + 18 * body.fine - bubbles
    elif kind == "food":
        value = 28.0 + 14 * body.fine + 12 * body.soft
    elif kind == "oral contrast":
        value = rng.uniform(150, 350) + 10 * body.soft
    else:
        value = rng.uniform(5, 22) + 3 * body.soft
    inside = canvas.cover(inner)
    canvas.paint(inside, value, LABEL[name])
    top, bottom = inner[:, 1].min(), inner[:, 1].max()
    share = rng.uniform(0.15, 0.6) if rng.random() < gas else 0.0
    if kind == "gas":
        share = 1.0
    if share > 0:
        level = top + share * (bottom - top)
        left, right = inner[:, 0].min() - 2, inner[:, 0].max() + 2
        box = [(left, top - 2), (right, top - 2), (right, level), (left, level)]
        above = canvas.cover(np.array(box))
        canvas.paint(inside * above, -985.0 + 8 * body.soft, LABEL["gas"])


def loops(body: Body, cavity: Array, count: int) -> None:
    rng = body.rng("bowel")
    inside = offset(cavity, -4)
    outside = body.room.cover(inside) < 0.5
    oral = rng.random() < 0.25
    for _ in range(count):
        distance, grid = body.distance_inside("outside", outside)
        # the retroperitoneum keeps its fat
        distance[grid[..., 1] > 30] = 0
        fits = np.argwhere(distance > 6)
        if len(fits) == 0:
            return
        row, col = fits[rng.integers(len(fits))]
        r = min(float(distance[row, col]) - 0.3, rng.uniform(8, 20))
        x, y = grid[row, col]
        large = r > 13
        if large:
            shape = blob(rng, x, y, r, r * rng.uniform(0.8, 1.0), rng.uniform(0, 3), 0.07, orders=9)
        else:
            shape = _loop(body, rng, np.array([x, y]), r, outside)
        body.organ(shape, body.enhanced(38, 0.35), "bowel")
        inner = offset(shape, -rng.uniform(1.6, 2.8))
        if large:
            contents(body, rng, inner, ["stool", "stool", "gas", "fluid"], "bowel")
        elif rng.random() < 0.55:
            small = "oral contrast" if oral else "fluid"
            contents(body, rng, inner, [small, "food", "food"], "bowel", gas=0.15)


def _loop(body: Body, rng: np.random.Generator, start: Array, r: float, barred: Array) -> Array:
    """A piece of small bowel: a bent sausage that creeps on while there is room."""
    distance, _ = body.distance_inside("outside", barred)
    angle, points = rng.uniform(0, 2 * np.pi), [start]
    r = min(r, rng.uniform(7.5, 11.5))
    for _ in range(int(rng.integers(2, 9))):
        angle += rng.normal(0, 0.45)
        nxt = points[-1] + 5.0 * np.array([np.cos(angle), np.sin(angle)])
        col, row = np.floor(body.room.place(nxt)[0]).astype(int).clip(0, body.room.size - 1)
        if distance[row, col] < 0.75 * r:
            break
        points.append(nxt)
    if len(points) < 3:
        return blob(rng, *xy(start), r, r * rng.uniform(0.75, 1.0), rng.uniform(0, 3), 0.08)
    line = smooth(np.array(points), closed=False, per_segment=4)
    feathered = 1 + 0.07 * np.sin(np.arange(len(line)) * rng.uniform(0.8, 1.4))
    return tube(line, 1.9 * r * feathered)


def mesentery(body: Body, cavity: Array) -> None:
    """Small vessels in the fat, cut across or along."""
    rng = body.rng("mesentery")
    free = (body.canvas.labels == LABEL["fat"]) * body.canvas.cover(offset(cavity, -3))
    pieces = []
    for _ in range(150):
        x, y = rng.uniform(-115, 115), rng.uniform(-70, 60)
        a, length = rng.uniform(0, np.pi), rng.gamma(1.2, 4.0)
        pieces.append(ellipse(x, y, 0.8 + length / 2, rng.uniform(0.6, 1.6), a, n=18))
    weights = rng.uniform(0.3, 0.9, len(pieces))
    body.canvas.fill(pieces, body.enhanced(42, 0.6), free, LABEL["vessel"], weights)
