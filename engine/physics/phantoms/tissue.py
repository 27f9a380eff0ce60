"""The body being drawn: its canvas, its tissues in HU and where there is still room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.ndimage
import scipy.spatial

from engine.physics.phantoms.phantom import Lesion
from engine.physics.phantoms.shapes import Array, Canvas, Warp, offset, tube
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
