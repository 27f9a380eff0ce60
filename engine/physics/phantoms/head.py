"""The head being drawn: its canvas and the signal of its tissues in each MR contrast."""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from engine.physics.phantoms.phantom import Lesion
from engine.physics.phantoms.shapes import Array, Canvas, Warp
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
