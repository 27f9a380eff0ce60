"""The body being drawn: its canvas, its tissues in HU, where there is room, and its skeleton."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.ndimage
import scipy.spatial

from engine.physics.phantoms.phantom import Lesion
from engine.physics.phantoms.shapes import (
    Array,
    Canvas,
    Warp,
    arc,
    blob,
    ellipse,
    flip,
    offset,
    smooth,
    tube,
)
from engine.physics.phantoms.texture import field, stream

AIR_HU = -1000.0
NAMES = (
    "outside",
    "fat",
    "muscle",
    "skin",
    "bone",
    "marrow",
    "vertebra",
    "canal",
    "cartilage",
    "lung",
    "airway",
    "heart",
    "aorta",
    "vessel",
    "oesophagus",
    "liver",
    "spleen",
    "kidney",
    "stomach",
    "bowel",
    "gas",
    "pancreas",
    "gallbladder",
    "mediastinum",
    "lesion",
    "table",
)
LABEL = {name: value for value, name in enumerate(NAMES)}


class Body:
    """What the painters of chest and abdomen share.

    `contrast` is the enhancement of arterial blood in HU over plain blood (0: no contrast medium).
    """

    def __init__(self, seed: int, size: int, fov_mm: float, warp: Warp) -> None:
        self.seed, self.size, self.fov_mm = seed, size, fov_mm
        self.canvas = Canvas(size, fov_mm, AIR_HU, warp)
        # organs leave their mark here so that bowel, vessels and lesions find free places;
        # its grid is fixed, which makes the choice independent of the image size
        self.room = Canvas(128, fov_mm, 0.0)
        self.lesions: list[Lesion] = []
        # points on the larger vessels of lung and liver, which lesions keep clear of
        self.vessels: list[Array] = []
        rng = self.rng("tissue")
        self.contrast = float(rng.uniform(100, 190)) if rng.random() < 0.6 else 0.0
        self.soft = self.field("soft", 5.0, 40.0, power=1.0)
        self.fine = self.field("fine", 2.6, 12.0)
        septa = np.exp(-((self.field("septa", 9.0, 60.0) / 0.10) ** 2))
        patchy = self.field("patchy", 25.0).clip(0, 1.5)
        self.fat = rng.uniform(-108, -96) + 4 * self.soft + 38 * septa * patchy
        self.visceral_fat = self.fat + 6 + 7 * self.fine * patchy
        strands = np.exp(-((self.field("strands", 6.0, 40.0) / 0.14) ** 2))
        self.muscle = rng.uniform(48, 58) + 3 * self.soft - 48 * strands * patchy
        self.marrow = rng.uniform(150, 250) + 40 * self.fine + 20 * self.soft
        self.blood = rng.uniform(40, 48) + self.contrast

    def rng(self, name: str) -> np.random.Generator:
        return stream(self.seed, name)

    def field(self, name: str, fine: float, coarse: float = 1e9, power: float = 0.0) -> Array:
        return field(self.rng(name), self.size, self.fov_mm, fine, coarse, power)

    def enhanced(self, plain: float, uptake: float) -> float:
        """HU of a tissue that takes up a share of the contrast medium."""
        return plain + uptake * self.contrast

    def organ(
        self,
        outline: Array | Sequence[Array],
        hu: float | Array,
        name: str,
        texture: float = 4.0,
        within: Array | None = None,
    ) -> None:
        """Fill with gently uneven tissue and keep the place."""
        value = hu if isinstance(hu, np.ndarray) else hu + texture * self.soft + 2 * self.fine
        self.canvas.fill(outline, value, within, LABEL[name])
        self.room.fill(outline, 1.0, label=LABEL[name])

    def bone(self, outline: Array, core: Array, cortex_hu: float, name: str = "bone") -> None:
        """A cortical shell around trabecular bone."""
        self.canvas.fill(outline, cortex_hu + 60 * self.soft, label=LABEL["bone"])
        self.canvas.fill(core, self.marrow, label=LABEL["marrow" if name == "bone" else name])
        self.room.fill(outline, 1.0, label=LABEL["bone"])

    def bone_tube(self, line: Array, width: float, cortex: float, cortex_hu: float) -> None:
        self.bone(tube(line, width), tube(line, max(width - 2 * cortex, 0.5)), cortex_hu)

    def vessel(self, outline: Array | Sequence[Array], hu: float, name: str = "vessel") -> None:
        """A vessel in its thin sheath of fat, without which it would melt into its neighbour."""
        many = [outline] if isinstance(outline, np.ndarray) else list(outline)
        self.canvas.fill([offset(o, 1.2) for o in many], self.visceral_fat)
        self.organ(many, hu, name, texture=2.0)

    def distance_inside(self, name: str, barred: Array | None = None) -> tuple[Array, Array]:
        """Distance in mm to the border of what carries this label, and the grid's (x, y) in mm."""
        here = self.room.labels == LABEL[name]
        distance = scipy.ndimage.distance_transform_edt(here if barred is None else here & ~barred)
        return np.asarray(distance) * self.room.pixel_mm, np.stack(self.room.grid(), axis=-1)

    def spot(self, rng: np.random.Generator, name: str, radius_mm: float) -> Array | None:
        """A random place for a round lesion inside the tissue of that name, clear of vessels."""
        distance, grid = self.distance_inside(name)
        places = grid[distance > radius_mm + 3]
        if self.vessels:
            tree = scipy.spatial.cKDTree(np.concatenate(self.vessels))
            places = places[tree.query(places)[0] > radius_mm + 2]
        return places[rng.integers(len(places))] if len(places) else None

    def add_lesion(self, kind: str, centre: Array, radius_mm: float, contrast: float) -> None:
        x, y = self.canvas.place(centre)[0]
        self.lesions.append(Lesion(kind, float(y - 0.5), float(x - 0.5), radius_mm, contrast))


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
