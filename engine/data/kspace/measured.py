"""What measured k-space of every sampling shares: coils, units, and the way to a Problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.data.dataset import Dataset
from engine.data.kspace.grid import Kspace
from engine.data.kspace.noise import SliceNoise, settle_noise
from engine.physics.operator import Operator
from engine.physics.problem import Problem
from engine.physics.sensitivity import principal_coils
from engine.physics.simulate import mr_scale
from engine.physics.units import IntensityMap
from engine.spec.acquisition import MRIAcquisition
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions


class CoilSlice(Protocol):
    """A slice whose samples have the coils first."""

    kspace: Kspace

    def mixed(self, matrix: NDArray) -> Self: ...


AnySlice = TypeVar("AnySlice", bound=CoilSlice)
FULL = "the fully sampled image"


@dataclass
class MeasuredKspace(Dataset):
    """K-space of a scanner.

    Attributes
    ----------
    coil_use : 'sense' (a map per coil) or 'combine' (one virtual coil)
    noise_sigma : SD of the noise per component in the file's units, where noise scans say it
    virtual_coils : the coils are compressed to so many
    given_scale : the magnitude a prior sees as 1, when a person says it
    given_maps : gives the maps of a slice, when a person named a file of them
    """

    kind: ClassVar[str] = "kspace"
    coils: int = 1
    coil_use: str = "sense"
    noise_sigma: float = 0.0
    virtual_coils: int | None = None
    given_scale: float | None = None
    given_maps: Callable[[int], Kspace] | None = None

    def take(self, options: InputOptions) -> None:
        """What a person said of coils, maps and scale."""
        self.coil_use = options.coil_use or self.coil_use
        self.virtual_coils, self.given_scale = options.virtual_coils, options.mr_scale
        if options.maps is not None:
            from engine.data.readers.kspace.arrays import open_maps

            path = Path(options.maps)
            self.given_maps = open_maps(path, self.count, self.coils, self.image_size)
            self.files = (*self.files, path)

    def check_numbers(self, number: int, kspace: Kspace, *others: Kspace | None) -> None:
        """Whatever follows may rely on finite numbers and some signal."""
        for array in (kspace, *others):
            if array is not None and not np.isfinite(array).all():
                raise RequestError(
                    f"{self.description}: slice {number} (counted from 0) holds NaN or infinity."
                )
        if not kspace.any():
            raise RequestError(f"{self.description}: slice {number} is empty.")

    def check_coils(self, acquisition: dict[str, Any], asked: MRIAcquisition) -> None:
        if "coils" in acquisition and asked.coils != self.coils:
            raise RequestError(
                f"{self.description} was measured with {self.coils} coils; "
                f"⟦coils⟧ {asked.coils} is for simulated scans."
            )

    def fewer_coils(self, parts: list[AnySlice], wanted: int | None) -> list[AnySlice]:
        """The virtual coils of most energy, where fewer are wanted than there are."""
        if wanted is None or wanted >= self.coils:
            return parts
        few = [
            part.mixed(principal_coils(torch.from_numpy(part.kspace), wanted).numpy().conj().T)
            for part in parts
        ]
        energy = [sum(float(np.square(np.abs(p.kspace)).sum()) for p in ps) for ps in (few, parts)]
        text = (
            f"{self.coils}, compressed to {wanted} with {energy[0] / energy[1]:.1%} of the energy"
        )
        self.say("coils", text, "option")
        return few

    def make_problem(
        self,
        numbers: Sequence[int],
        operator: Operator,
        y: Tensor,
        reference: Tensor | None,
        bright: tuple[Tensor, str],
        asked: MRIAcquisition,
        noise: tuple[list[SliceNoise], Tensor],
        prewhitened: bool,
        provenance: dict[str, Any],
    ) -> Problem:
        """``y`` and the ``reference`` in units of the scale, with what is known of the noise.

        ``bright`` is an image and its name: its magnitude becomes what a prior sees as 1, unless
        a person says what does. ``noise`` is what each slice says, and its SD ``[B, 1, 1, 1]``.
        """
        scale, scale_from = self.given_scale, "option"
        how = ""
        if scale is None:
            scale, scale_from = mr_scale(bright[0]), bright[1]
            how = " (0.99 quantile of the magnitude)"
        self.say("MR scale", f"{scale:.4g}{how}", scale_from)
        noise_sigma, noise_origin = settle_noise(self, asked, *noise, scale)
        return Problem(
            operator=operator,
            measurement=y / scale,
            intensity=IntensityMap("mr", scale),
            modality="MR",
            noise_sigma=noise_sigma,
            noise_origin=noise_origin,
            reference=None if reference is None else reference / scale,
            pixel_mm=self.pixel_mm,
            slices=tuple(numbers),
            provenance={
                "simulated": False,
                "scale": scale,
                "scale_from": scale_from,
                "noise": {
                    "origin": noise_origin,
                    "sd": torch.as_tensor(noise_sigma).flatten().tolist(),
                    "prewhitened": prewhitened,
                },
                "coils": self.coils,
            }
            | provenance,
        )


def root_sum_of_squares(images: Tensor) -> np.ndarray:
    """The magnitude of ``[coils, H, W]`` over all coils."""
    return images.abs().square().sum(dim=0).sqrt().numpy()
