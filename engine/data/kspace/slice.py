"""One slice of measured k-space, and what mixing its coils does to all its parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.data.kspace.grid import Kspace, Plane


@dataclass
class KspaceSlice:
    """One slice: ``kspace`` complex64 ``[coils, H, W]``, zero where ``sampled`` is false.

    ``sampled`` is ``(W,)`` or ``(H, W)``; ``calibration`` are separate lines, with the same
    two arrays, that serve the maps only; ``maps`` are the file's own ``[coils, H, W]``.
    """

    kspace: Kspace
    sampled: Plane
    calibration: tuple[Kspace, Plane] | None = None
    maps: Kspace | None = None

    def mixed(self, matrix: NDArray) -> KspaceSlice:
        """The slice as coils ``matrix @ y`` see it; maps follow, for y = F S x."""

        def mix(array: Kspace) -> Kspace:
            flat = matrix.astype(np.complex64) @ array.reshape(len(array), -1)
            return flat.reshape(len(matrix), *array.shape[1:])

        return KspaceSlice(
            mix(self.kspace),
            self.sampled,
            None if self.calibration is None else (mix(self.calibration[0]), self.calibration[1]),
            None if self.maps is None else mix(self.maps),
        )
