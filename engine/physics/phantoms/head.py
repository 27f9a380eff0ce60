"""The head being drawn: its canvas and the signal of its tissues in each MR contrast."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import scipy.ndimage
import scipy.spatial

from engine.physics.phantoms.phantom import Lesion
from engine.physics.phantoms.shapes import Array, Canvas, Warp, arc, normals, offset, smooth, tube
from engine.physics.phantoms.texture import field, stream

CONTRASTS = ("T1", "T2", "FLAIR")
FOV_MM = 230.0

# signal of each tissue in T1, T2 and FLAIR weighting, before the bias field and the scaling
SIGNAL = {
    "skin": (0.42, 0.22, 0.17),
    "fat": (0.95, 0.46, 0.22),
    "skull": (0.035, 0.03, 0.03),
    "muscle": (0.30, 0.14, 0.20),
    "marrow": (0.45, 0.22, 0.16),
    "csf": (0.13, 1.00, 0.08),
    "grey": (0.38, 0.52, 0.62),
    "white": (0.56, 0.34, 0.48),
    "nucleus": (0.455, 0.44, 0.57),
    "pallidum": (0.52, 0.31, 0.46),
    "vein": (0.08, 0.06, 0.08),
    "plexus": (0.36, 0.62, 0.50),
    "plaque": (0.41, 0.66, 0.82),
    "oedema": (0.43, 0.70, 0.80),
    "tumour rim": (0.85, 0.58, 0.72),
    "tumour core": (0.24, 0.86, 0.42),
}
NAMES = ("outside", *SIGNAL)
LABEL = {name: value for value, name in enumerate(NAMES)}


class Head:
    """A head being drawn in one contrast."""

    def __init__(self, seed: int, size: int, contrast: str) -> None:
        self.seed, self.size, self.column = seed, size, CONTRASTS.index(contrast)
        rng = self.rng("head")
        warp = Warp(
            self.rng("warp"),
            amplitude_mm=rng.uniform(1.5, 3.5),
            scale=(rng.uniform(0.92, 1.04), rng.uniform(0.92, 1.04)),
            shift_mm=(rng.normal(0, 2), rng.normal(0, 3)),
            turn_rad=rng.normal(0, 0.04),
        )
        self.canvas = Canvas(size, FOV_MM, 0.0, warp)
        # where lesions may grow: 0 in the brain, 1 outside and in ventricles and nuclei; a fixed
        # grid, so that the choice does not depend on the image size
        self.barred = Canvas(128, FOV_MM, 1.0)
        self.mottle = self.field("mottle", 4.0, 60.0, power=1.0)
        self.fine = self.field("fine", 2.0, 9.0)
        self.jitter = {name: rng.uniform(0.95, 1.05) for name in SIGNAL}
        self.jitter["fat"] *= rng.uniform(0.7, 1.35)
        self.lesions: list[Lesion] = []

    def rng(self, name: str) -> np.random.Generator:
        return stream(self.seed, "brain " + name)

    def field(self, name: str, fine: float, coarse: float = 1e9, power: float = 0.0) -> Array:
        return field(self.rng(name), self.size, FOV_MM, fine, coarse, power)

    def signal(self, name: str) -> float:
        return SIGNAL[name][self.column] * self.jitter[name]

    def fill(
        self,
        outline: Array | list[Array],
        name: str,
        within: Array | None = None,
        weights: list[float] | float = 1.0,
        soft_mm: float = 0.0,
    ) -> None:
        """Paint a tissue; `soft_mm` blurs its border (nuclei and plaques have no sharp one)."""
        many = [outline] if isinstance(outline, np.ndarray) else outline
        cover = self.canvas.cover(*many, weights=weights)
        if soft_mm:
            cover = scipy.ndimage.gaussian_filter(cover, soft_mm / self.canvas.pixel_mm)
        self.paint(cover if within is None else cover * within, name)

    def deep(self, outline: Array, name: str, soft_mm: float = 0.0) -> None:
        """A ventricle or a nucleus: drawn, and barred to lesions."""
        self.fill(outline, name, soft_mm=soft_mm)
        self.barred.fill(outline, 1.0)

    def paint(self, cover: Array, name: str) -> None:
        value = self.signal(name) * (1 + 0.025 * self.mottle + 0.02 * self.fine)
        self.canvas.paint(cover, value, LABEL[name])


# The folded cortex: sulci as explicit curves, grey matter at a fixed distance from them.
#
# Real cortex is a sheet of nearly constant thickness. Drawing the sulci and taking everything
# within about 3 mm of them (or of the surface) as grey matter gives gyri with white matter fingers.

STEP_MM = 2.2


@dataclass
class Sulci:
    """Centre lines with their widths in mm; `keep_out` are ellipses no sulcus grows into."""

    keep_out: list[tuple[float, float, float, float]]
    widening: float
    points: Array = dataclasses.field(default_factory=lambda: np.zeros((0, 2)))
    tubes: list[Array] = dataclasses.field(default_factory=list)
    weights: list[float] = dataclasses.field(default_factory=list)

    def add(self, line: Array, width: Array | float, weight: float = 1.0) -> None:
        self.points = np.concatenate([self.points, line])
        self.tubes.append(tube(line, np.maximum(np.asarray(width) * self.widening, 0.35)))
        self.weights.append(weight)

    def grow(
        self,
        rng: np.random.Generator,
        start: Array,
        heading: float,
        length: float,
        width: float,
        apart_mm: float,
    ) -> None:
        """A meandering sulcus from `start`, often forked at its floor, as long as there is room."""
        points, angle = [start], heading
        curl, swing = rng.normal(0, 0.05), rng.uniform(0.05, 0.30)
        phase, pace = rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 0.9)
        for _ in range(max(int(length / STEP_MM), 2)):
            angle += curl + rng.normal(0, 0.16) + swing * np.sin(phase + len(points) * pace)
            angle += 0.10 * np.sin(heading - angle)
            nxt = points[-1] + STEP_MM * np.array([np.cos(angle), np.sin(angle)])
            if self._barred(nxt) or self._crowded(nxt, start, apart_mm):
                break
            points.append(nxt)
        if len(points) < 3:
            return
        line = smooth(np.array(points), closed=False, per_segment=4)
        along = np.linspace(0, 1, len(line))
        # wide at the mouth, the banks nearly touching below, a little wider again at the floor
        profile = 0.5 + 1.5 * np.exp(-along * length / 2.5) + 0.25 * along**3
        self.add(line, width * profile, rng.uniform(0.4, 1))
        if length > 13 and rng.random() < 0.6:
            at = line[int(len(line) * rng.uniform(0.45, 0.95))]
            for side in (-1.0, 1.0):
                if rng.random() < 0.6:
                    turn = angle + side * rng.uniform(0.7, 1.4)
                    self.grow(rng, at, turn, rng.uniform(6, 12), 0.5 * width, apart_mm)

    def _barred(self, p: Array) -> bool:
        return any(
            ((p[0] - x) / a) ** 2 + ((p[1] - y) / b) ** 2 < 1 for x, y, a, b in self.keep_out
        )

    def _crowded(self, p: Array, start: Array, apart_mm: float) -> bool:
        """Folds keep two sheets of grey matter apart, except close to where one leaves another."""
        near = min(apart_mm, 0.85 * float(np.linalg.norm(p - start)))
        return bool(np.min(np.sum((self.points - p) ** 2, axis=1)) < near**2)

    def distance(self, canvas: Canvas, where: Array) -> Array:
        """Distance in mm of the image's pixels (inside `where`) to the nearest sulcus."""
        rows, cols = np.nonzero(where)
        full = np.full(where.shape, 100.0, dtype=np.float32)
        centres = np.stack([cols + 0.5, rows + 0.5], axis=-1)
        full[rows, cols] = self.clearance(canvas, centres)
        return full

    def clearance(self, canvas: Canvas, pixels: Array) -> Array:
        """Distance in mm of points given in pixel coordinates to the nearest sulcus."""
        found, _ = scipy.spatial.cKDTree(canvas.place(self.points)).query(pixels)
        return np.asarray(found) * canvas.pixel_mm


def fold(
    rng: np.random.Generator,
    hull: Array,
    fissures: list[Array],
    keep_out: list[tuple[float, float, float, float]],
    widening: float,
) -> Sulci:
    """All sulci of a slice: around the hull, along the midline, and pieces cut off by the plane."""
    sulci = Sulci(keep_out, widening)
    closed = arc(hull, 0, 1, 400)
    sulci.points = closed
    for line in fissures:
        sulci.add(line, 1.2)
    length = float(np.sum(np.linalg.norm(np.diff(closed, axis=0), axis=1)))
    out = normals(closed, closed=True)
    if np.mean(np.sum(out * closed, axis=1)) < 0:
        out = -out
    count = int(length / 8.8)
    starts = (np.arange(count) + rng.uniform(-0.35, 0.35, count)) / count
    # deep sulci first: the shallow ones take the room that is left
    for rank, place in enumerate(rng.permutation(starts)):
        i = int(np.mod(place, 1.0) * 399)
        if abs(closed[i, 0]) < 5:
            continue
        inward = np.arctan2(-out[i, 1], -out[i, 0]) + rng.normal(0, 0.30)
        depth = rng.uniform(17, 33) if rank < 0.55 * count else rng.uniform(7, 14)
        sulci.grow(rng, closed[i], inward, depth, rng.uniform(0.7, 1.9), rng.uniform(6.3, 7.8))
    for line in fissures:
        for side in (0.0, np.pi):
            y = line[0, 1] + rng.uniform(4, 9)
            while y < line[-1, 1] - 3:
                start = np.array([np.interp(y, line[:, 1], line[:, 0]), y])
                heading = side + rng.normal(0, 0.6)
                sulci.grow(rng, start, heading, rng.uniform(8, 24), rng.uniform(0.5, 1.1), 6.8)
                y += rng.uniform(8, 14)
    rim = offset(hull, -rng.uniform(26, 33))
    inner = scipy.spatial.cKDTree(rim)
    for p in rng.uniform(hull.min(0), hull.max(0), (600, 2)):
        # inside the folded rim: nearer to the hull than the inner border is deep
        to_rim, i = inner.query(p)
        if np.dot(p, p) > np.dot(rim[i], rim[i]) and to_rim < 24:
            clear = np.min(np.sum((sulci.points - p) ** 2, axis=1))
            if clear > 6.9**2 and not sulci._barred(p):
                heading = rng.uniform(0, 2 * np.pi)
                sulci.grow(rng, p, heading, rng.uniform(6, 16), rng.uniform(0.4, 0.8), 6.6)
    return sulci
