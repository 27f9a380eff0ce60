"""A stack of CT slices that change smoothly from one to the next: the demo of whole volumes.

One slice of the trunk is bent a little further from slice to slice by slow waves, and round
structures of a few millimetres come and go in it. Its texture bends along, so that a coronal cut
shows the anatomy and nothing that flickers.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.ndimage

from engine.physics.phantoms.phantom import Phantom
from engine.physics.phantoms.shapes import Array
from engine.physics.phantoms.texture import stream
from engine.physics.phantoms.tissue import AIR_HU
from engine.physics.phantoms.torso import FOV_MM, ct_phantom

WAVES, WAVE_MM = 6, 2.5  # how many bend the body, and by how much each (SD)
BALLS = 60
SOFT_HU = (-120.0, 130.0)  # where balls may lie


class TorsoStack:
    """Slices of one phantom, drawn when they are asked for: ``image(number)`` in HU."""

    def __init__(
        self, seed: int, size: int = 256, count: int = 60, spacing_mm: float = 3.0
    ) -> None:
        self.seed, self.size, self.count, self.spacing_mm = seed, size, count, spacing_mm

    @cached_property
    def base(self) -> Phantom:
        return ct_phantom(self.seed, self.size, "abdomen")

    @cached_property
    def balls(self) -> Array:
        """Rows of (x, y, z, radius, contrast): mm from the centre and the first slice, and HU."""
        rng = stream(self.seed, "balls")
        low, high = SOFT_HU
        rows, columns = np.nonzero((self.base.image > low) & (self.base.image < high))
        chosen = rng.integers(len(rows), size=BALLS)
        x, y = ((axis[chosen] + 0.5) * self.base.pixel_mm - FOV_MM / 2 for axis in (columns, rows))
        z = rng.uniform(0, self.count * self.spacing_mm, BALLS)
        contrast = rng.uniform(30, 120, BALLS) * rng.choice([-1.0, 1.0], BALLS)
        return np.stack([x, y, z, rng.uniform(4, 14, BALLS), contrast], axis=-1)

    def image(self, number: int) -> Array:
        z, pixel = number * self.spacing_mm, self.base.pixel_mm
        axis = (np.arange(self.size) + 0.5) * pixel - FOV_MM / 2
        y, x = np.meshgrid(axis, axis, indexing="ij")
        image = self.base.image.astype(np.float64)
        near = np.abs(self.balls[:, 2] - z) < self.balls[:, 3] + pixel
        for ball_x, ball_y, ball_z, radius, contrast in self.balls[near]:
            distance = np.sqrt((x - ball_x) ** 2 + (y - ball_y) ** 2 + (z - ball_z) ** 2)
            # a soft edge of about a pixel, and no lump of tissue in the air
            cover = ((radius - distance) / (1.5 * pixel) + 0.5).clip(0, 1)
            image += contrast * cover * (self.base.image > -500)
        dx, dy = self._bend(x, y, z)
        rows, columns = ((at + FOV_MM / 2) / pixel - 0.5 for at in (y + dy, x + dx))
        bent = scipy.ndimage.map_coordinates(image, [rows, columns], order=3, cval=AIR_HU)
        return bent.clip(AIR_HU, 3000.0).astype(np.float32)

    def _bend(self, x: Array, y: Array, z: float) -> tuple[Array, Array]:
        """How far to the side a slice takes its tissue from, in mm."""
        rng = stream(self.seed, "bend")
        moved = []
        for _ in range(2):
            total = np.zeros_like(x)
            for _ in range(WAVES):
                length = rng.uniform(120, 400, 2) * rng.choice([-1.0, 1.0], 2)
                along_z, phase = 2 * np.pi / rng.uniform(120, 360), rng.uniform(0, 2 * np.pi)
                wave = np.cos(2 * np.pi * (x / length[0] + y / length[1]) + along_z * z + phase)
                total += WAVE_MM * rng.normal() * wave
            moved.append(total)
        return moved[0], moved[1]
