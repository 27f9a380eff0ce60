"""Outlines in millimetres and their exact area coverage on a pixel grid.

Every structure of a phantom is a closed outline. Coverage is the exact area of the outline inside
each pixel, so edges are free of stair steps and an image drawn at 512 and averaged to 256 equals
the one drawn at 256 (except where several soft edges are painted over one another).
x runs to the right (the patient's left), y downwards (posterior); the origin is the centre.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


def xy(point: Array) -> tuple[float, float]:
    return float(point[0]), float(point[1])


def smooth(points: ArrayLike, closed: bool = True, per_segment: int = 10) -> Array:
    """A Catmull-Rom curve through the points."""
    p = np.asarray(points, dtype=np.float64)
    if closed:
        ext = np.concatenate([p[-1:], p, p[:2]])
    else:
        ext = np.concatenate([2 * p[:1] - p[1:2], p, 2 * p[-1:] - p[-2:-1]])
    p0, p1, p2, p3 = (ext[i : len(ext) - 3 + i, None] for i in range(4))
    t = (np.arange(per_segment) / per_segment)[None, :, None]
    curve = 0.5 * (
        2 * p1
        + (p2 - p0) * t
        + (2 * p0 - 5 * p1 + 4 * p2 - p3) * t**2
        + (3 * p1 - 3 * p2 + p3 - p0) * t**3
    )
    curve = curve.reshape(-1, 2)
    return curve if closed else np.concatenate([curve, p[-1:]])


def mirrored(half: ArrayLike) -> Array:
    """Close a half outline, given from the front to the back at x >= 0, by its mirror image."""
    p = np.asarray(half, dtype=np.float64)
    back = p[::-1] * [-1.0, 1.0]
    return np.concatenate([p, back[np.abs(back[:, 0]) > 1e-9]])


def flip(points: ArrayLike) -> Array:
    """The same outline on the other side of the body."""
    return np.asarray(points, dtype=np.float64) * [-1.0, 1.0]


def ellipse(cx: float, cy: float, a: float, b: float, angle: float = 0.0, n: int = 48) -> Array:
    return superellipse(cx, cy, a, b, angle, power=2.0, n=n)


def superellipse(
    cx: float, cy: float, a: float, b: float, angle: float = 0.0, power: float = 2.6, n: int = 64
) -> Array:
    """|x/a|^p + |y/b|^p = 1, turned by `angle` (radians): rounder boxes for p > 2."""
    t = np.linspace(0, 2 * np.pi, n, endpoint=False)
    c, s = np.cos(t), np.sin(t)
    x = a * np.sign(c) * np.abs(c) ** (2 / power)
    y = b * np.sign(s) * np.abs(s) ** (2 / power)
    return _turned(x, y, angle) + np.array([cx, cy])


def blob(
    rng: np.random.Generator,
    cx: float,
    cy: float,
    a: float,
    b: float,
    angle: float = 0.0,
    rough: float = 0.08,
    orders: int = 6,
    n: int = 72,
) -> Array:
    """An ellipse whose radius is perturbed by Fourier orders 2..orders (r.m.s. about `rough`)."""
    t = np.linspace(0, 2 * np.pi, n, endpoint=False)
    k = np.arange(2, orders + 1)[:, None]
    amplitude = rng.normal(size=k.shape) / k
    amplitude *= rough * np.sqrt(2.0) / np.sqrt(np.sum(1.0 / k**2))
    r = 1 + np.sum(amplitude * np.cos(k * t + rng.uniform(0, 2 * np.pi, k.shape)), axis=0)
    return _turned(a * r * np.cos(t), b * r * np.sin(t), angle) + np.array([cx, cy])


def _turned(x: Array, y: Array, angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * x - s * y, s * x + c * y], axis=-1)


def normals(curve: Array, closed: bool) -> Array:
    d = np.roll(curve, -1, 0) - np.roll(curve, 1, 0) if closed else np.gradient(curve, axis=0)
    d /= np.maximum(np.linalg.norm(d, axis=1, keepdims=True), 1e-9)
    return np.stack([d[:, 1], -d[:, 0]], axis=-1)


def offset(curve: Array, mm: ArrayLike) -> Array:
    """Move a closed outline outwards (mm > 0) or inwards; meant for gentle curves."""
    sign = 1.0 if signed_area(curve) > 0 else -1.0
    return curve + sign * np.reshape(mm, (-1, 1)) * normals(curve, closed=True)


def tube(line: ArrayLike, width: ArrayLike) -> Array:
    """The outline of a band along an open centre line; `width` may vary along it."""
    c = np.asarray(line, dtype=np.float64)
    half = 0.5 * np.broadcast_to(np.asarray(width, dtype=np.float64), (len(c),))[:, None]
    n = normals(c, closed=False) * half
    # a half circle at both ends keeps joints of branching tubes closed
    turn = np.linspace(0, np.pi, 7)[1:-1]
    caps = []
    for end, side in ((-1, 1.0), (0, -1.0)):
        along = np.array([-n[end, 1], n[end, 0]])
        caps.append(
            c[end] + side * (np.outer(np.cos(turn), n[end]) + np.outer(np.sin(turn), along))
        )
    return np.concatenate([c + n, caps[0], (c - n)[::-1], caps[1]])


def arc(curve: Array, start: float, stop: float, n: int = 9) -> Array:
    """A stretch of a closed outline, from and to fractions of its length (they may wrap)."""
    closed = np.concatenate([curve, curve[:1]])
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(closed, axis=0), axis=1))])
    at = np.mod(np.linspace(start, stop, n), 1.0) * length[-1]
    return np.stack([np.interp(at, length, closed[:, i]) for i in range(2)], axis=-1)


def signed_area(p: Array) -> float:
    q = np.roll(p, -1, 0)
    return 0.5 * float(np.sum(p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]))


def _split(a: Array, b: Array, weight: Array, axis: int) -> tuple[Array, Array, Array]:
    """Cut the segments a-b wherever the given coordinate passes an integer."""
    u, v = a[:, axis], b[:, axis]
    up = v >= u
    first = np.where(up, np.floor(u), np.ceil(u))
    cuts = np.where(up, np.ceil(v) - 1 - first, first - 1 - np.floor(v)).clip(min=0).astype(int)
    index = np.repeat(np.arange(len(a)), cuts + 1)
    k = np.arange(len(index)) - np.repeat(np.cumsum(cuts + 1) - cuts - 1, cuts + 1)
    line = first[index] + np.where(up[index], k, -k)
    step = (v - u)[index]
    t = np.where(k == 0, 0.0, (line - u[index]) / np.where(step == 0, 1.0, step))
    start = a[index] + t[:, None] * (b - a)[index]
    start[k > 0, axis] = line[k > 0]
    end = np.concatenate([start[1:], start[:1]])
    last = k == cuts[index]
    end[last] = b[index[last]]
    return start, end, weight[index]


@dataclass
class Warp:
    """A smooth bend of the whole body, so that no two phantoms share their outlines."""

    rng: np.random.Generator
    amplitude_mm: float = 4.0
    scale: tuple[float, float] = (1.0, 1.0)
    shift_mm: tuple[float, float] = (0.0, 0.0)
    turn_rad: float = 0.0
    waves: int = 6

    def __post_init__(self) -> None:
        r = self.rng
        length, direction = r.uniform(110, 420, self.waves), r.uniform(0, np.pi, self.waves)
        self._k = (2 * np.pi / length) * np.stack([np.cos(direction), np.sin(direction)])
        self._phase = r.uniform(0, 2 * np.pi, self.waves)
        self._gain = r.normal(size=(self.waves, 2)) * (length / 420)[:, None]

    def __call__(self, points: Array) -> Array:
        # long waves are strong, short ones weak: the map stays one to one
        bend = np.sin(points @ self._k + self._phase) @ self._gain * self.amplitude_mm / 2
        p = (points + bend) * self.scale
        return _turned(p[:, 0], p[:, 1], self.turn_rad) + np.asarray(self.shift_mm)


@dataclass
class Canvas:
    """A square image in mm coordinates, with a label map beside it."""

    size: int
    fov_mm: float
    background: float = 0.0
    warp: Warp | None = None
    image: Array = field(init=False)
    labels: Array = field(init=False)

    def __post_init__(self) -> None:
        self.image = np.full((self.size, self.size), self.background, dtype=np.float32)
        self.labels = np.zeros((self.size, self.size), dtype=np.uint8)

    @property
    def pixel_mm(self) -> float:
        return self.fov_mm / self.size

    def place(self, points: ArrayLike) -> Array:
        """mm of the unbent anatomy -> (x, y) in pixels, 0 at the outer edge of the first pixel."""
        p = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        if self.warp is not None:
            p = self.warp(p)
        return (p / self.fov_mm + 0.5) * self.size

    def grid(self) -> tuple[Array, Array]:
        """x and y in mm of the pixel centres (of the image, not of the unbent anatomy)."""
        axis = ((np.arange(self.size) + 0.5) / self.size - 0.5) * self.fov_mm
        return np.meshgrid(axis.astype(np.float32), axis.astype(np.float32))

    def patch(
        self, outlines: Sequence[Array], weights: ArrayLike = 1.0
    ) -> tuple[tuple[slice, slice], Array]:
        """Coverage of the union (times a weight per outline) inside its bounding box."""
        n = np.array([len(o) for o in outlines])
        p = np.clip(self.place(np.concatenate(outlines)), 0, self.size)
        following = np.arange(len(p)) + 1
        ends = np.cumsum(n, dtype=np.intp)
        following[ends - 1] = ends - n
        q = p[following]
        cross = p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]
        area = np.add.reduceat(cross, (ends - n).astype(np.intp))
        w = np.broadcast_to(np.asarray(weights, dtype=np.float64), (len(n),))
        # every outline counts positively, whichever way round it was drawn
        weight = np.repeat(w * np.where(area >= 0, 1.0, -1.0), n)
        x0, y0 = np.floor(p.min(0)).astype(int).clip(max=self.size - 1)
        x1, y1 = np.ceil(p.max(0)).astype(int).clip(min=[x0 + 1, y0 + 1])
        a, b, weight = _split(p - [x0, y0], q - [x0, y0], weight, axis=1)
        a, b, weight = _split(a, b, weight, axis=0)
        width, height = x1 - x0 + 2, y1 - y0
        middle = 0.5 * (a + b)
        col = np.floor(middle[:, 0]).astype(int)
        row = np.floor(middle[:, 1]).astype(int).clip(0, height - 1)
        right = middle[:, 0] - col
        dy = -(b[:, 1] - a[:, 1]) * weight
        at = row * width + col
        total = np.bincount(at, dy * (1 - right), height * width)
        total += np.bincount(at + 1, dy * right, height * width + 1)[: height * width]
        cover = np.cumsum(total.reshape(height, width), axis=1)[:, : x1 - x0]
        cover = np.abs(cover)
        cover[cover < 1e-6] = 0.0
        return (slice(y0, y1), slice(x0, x1)), np.minimum(cover, 1.0).astype(np.float32)

    def cover(self, *outlines: Array, weights: ArrayLike = 1.0) -> Array:
        full = np.zeros((self.size, self.size), dtype=np.float32)
        where, part = self.patch(outlines, weights)
        full[where] = part
        return full

    def fill(
        self,
        outlines: Array | Sequence[Array],
        value: float | Array,
        within: Array | None = None,
        label: int | None = None,
        weights: ArrayLike = 1.0,
    ) -> None:
        """Paint the outlines over what is there, optionally only inside another coverage."""
        many = [outlines] if isinstance(outlines, np.ndarray) else list(outlines)
        if not many:
            return
        where, part = self.patch(many, weights)
        if within is not None:
            part = part * within[where]
        self.paint(part, value, label, where)

    def paint(
        self,
        cover: Array,
        value: float | Array,
        label: int | None = None,
        where: tuple[slice, slice] = (slice(None), slice(None)),
    ) -> None:
        target = self.image[where]
        paint = value[where] if isinstance(value, np.ndarray) else value
        target += cover * (paint - target)
        if label is not None:
            self.labels[where][cover > 0.5] = label
