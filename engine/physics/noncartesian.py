"""MRI along radial, spiral or any other paths through k-space; one coil, or many with maps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.physics.ct import LinearMap, check_shape
from engine.physics.fourier import to_channels, to_complex
from engine.physics.mri import SENSITIVITY_FLOOR
from engine.physics.nufft import Nufft, density, toeplitz_spectrum
from engine.physics.operator import Operator
from engine.spec.errors import RequestError

LEAST_DENSITY = 0.3  # samples per cell of the Fourier grid, in the preconditioner


class NonCartesianMRI(Operator):
    """A = M F S: each coil's image, Fourier transformed at the positions of the samples.

    Parameters
    ----------
    positions : ``[2, spokes, samples]``
        In cycles per field of view, along rows and along columns. Samples beyond the pixels'
        highest frequency do not count as measured.
    shape : (H, W)
        Image size.
    maps : complex Tensor, optional
        Sensitivities ``[coils, H, W]``, or ``[B, coils, H, W]`` when each slice has its own.

    Notes
    -----
    Coil c of the measurement lies at channels 2c (real) and 2c + 1 (imaginary).
    """

    part, part_axis = "spoke", -2

    def __init__(
        self,
        positions: NDArray[np.float64],
        shape: tuple[int, int],
        maps: Tensor | None = None,
    ) -> None:
        if positions.ndim != 3 or len(positions) != 2 or not np.isfinite(positions).all():
            raise RequestError("A trajectory must be finite numbers [2, spokes, samples].")
        if maps is not None:
            maps = maps if maps.ndim == 4 else maps[None]
            if not maps.is_complex() or tuple(maps.shape[-2:]) != shape:
                raise RequestError(
                    f"Sensitivity maps {list(maps.shape)} do not fit images of {list(shape)}."
                )
        self.positions, self.maps = np.asarray(positions, np.float64), maps
        self.coils = 1 if maps is None else int(maps.shape[1])
        self.image_shape = (2, *shape)
        self.measurement_shape = (2 * self.coils, *positions.shape[1:])
        half = np.array(shape)[:, None, None] / 2
        counted = (np.abs(positions) <= half + 1e-6).all(axis=0)
        if not counted.any():
            raise RequestError("No sample of the trajectory lies within the image's k-space.")
        self._counted = torch.from_numpy(counted)[None, None]
        self._nufft = Nufft(shape, self.positions.reshape(2, -1))
        self._areas: Tensor | None = None
        self._toeplitz: Tensor | None = None
        self._density: Tensor | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent elsewhere as its recipe: the interpolation weights are large and soon made."""
        maps = None if self.maps is None else self.maps.cpu()
        return NonCartesianMRI, (self.positions, self.image_shape[1:], maps)

    @property
    def device(self) -> torch.device:
        return self._counted.device

    def to(self, device: torch.device | str) -> NonCartesianMRI:
        self._counted = self._counted.to(device)
        self._nufft.to(device)
        for name in ("maps", "_areas", "_toeplitz", "_density"):
            stored = getattr(self, name)
            setattr(self, name, None if stored is None else stored.to(device))
        return self

    def of_slice(self, i: int) -> NonCartesianMRI:
        if self.maps is None or len(self.maps) == 1:
            return self
        return NonCartesianMRI(self.positions, self.image_shape[1:], self.maps[i])

    def sampled(self) -> Tensor | None:
        return None if bool(self._counted.all()) else self._counted

    def forward(self, x: Tensor) -> Tensor:
        check_shape(x, self.image_shape, "image")
        return LinearMap.apply(x, self._forward, self._adjoint)

    def adjoint(self, y: Tensor) -> Tensor:
        check_shape(y, self.measurement_shape, "measurement")
        return LinearMap.apply(y, self._adjoint, self._forward)

    def _forward(self, x: Tensor) -> Tensor:
        seen = self._seen(x)
        samples = self._nufft.forward(seen.flatten(0, 1))
        y = samples.reshape(*seen.shape[:2], *self.measurement_shape[1:])
        return to_channels(y * self._counted)

    def _adjoint(self, y: Tensor) -> Tensor:
        samples = to_complex(y) * self._counted
        images = self._nufft.adjoint(samples.flatten(2).flatten(0, 1))
        return self._combined(images.unflatten(0, (len(y), self.coils)))

    def _seen(self, x: Tensor) -> Tensor:
        """The images of all coils, complex ``[B, coils, H, W]``."""
        return to_complex(x) if self.maps is None else self.maps * to_complex(x)

    def _combined(self, images: Tensor) -> Tensor:
        if self.maps is not None:
            images = (self.maps.conj() * images).sum(dim=1, keepdim=True)
        return to_channels(images)

    def normal(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        """A^T A x by one filter on a padded grid, without the samples; with weights by them."""
        if weights is not None:
            return super().normal(x, weights)
        height, width = self.image_shape[1:]
        spectrum = torch.fft.fft2(self._seen(x), s=(2 * height, 2 * width))
        images = torch.fft.ifft2(spectrum * self._filter())[..., :height, :width]
        return self._combined(images)

    def _filter(self) -> Tensor:
        if self._toeplitz is None:
            counted = self._counted.cpu().numpy().ravel()
            size = (self.image_shape[1], self.image_shape[2])
            spectrum = toeplitz_spectrum(size, self.positions.reshape(2, -1), counted)
            self._toeplitz = spectrum.to(self.device)
        return self._toeplitz

    def preconditioner(self, rho: Tensor | float) -> Callable[[Tensor], Tensor]:
        """Division by the density of samples: they crowd at the centre and are rare outside.

        Where they are rarer than `LEAST_DENSITY` the coils see what lies between them.
        """
        if self._density is None:
            self._density = density(self._filter()).clamp_min(LEAST_DENSITY)
        inverse = 1 / (self._density + rho)
        seen = self.support()

        def solve(r: Tensor) -> Tensor:
            # Nothing is known outside the maps, and nothing is to be spread there.
            r = r if seen is None else r * seen
            s = to_channels(torch.fft.ifft2(torch.fft.fft2(to_complex(r)) * inverse))
            return s if seen is None else s * seen

        return solve

    def areas(self) -> Tensor:
        """Density compensation: the area of k-space of each sample, ``[1, 1, spokes, samples]``."""
        if self._areas is None:
            areas = self._nufft.cell_areas().reshape(1, 1, *self.measurement_shape[1:])
            self._areas = areas * self._counted
        return self._areas

    def coverage(self) -> float:
        """The share of the disc of k-space that the samples stand for."""
        reach = float((np.hypot(*self.positions) * self._counted[0, 0].cpu().numpy()).max())
        return min(1.0, float(self.areas().sum()) / (np.pi * reach**2))

    def support(self) -> Tensor | None:
        """Where some coil sees the image; maps that are zero nowhere have no such place."""
        if self.maps is None:
            return None
        seen = self.maps.abs().square().sum(dim=1, keepdim=True) > 0
        return None if bool(seen.all()) else seen

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        """Gridding: the adjoint of samples weighted by their areas, over sum |S|^2."""
        image = self.adjoint(y * self.areas())
        if self.maps is None:
            return image
        energy = self.maps.abs().square().sum(dim=1, keepdim=True)
        floor = SENSITIVITY_FLOOR * energy.amax(dim=(-2, -1), keepdim=True)
        return image / torch.maximum(energy, floor.clamp_min(torch.finfo(energy.dtype).tiny))

    def describe(self) -> dict[str, Any]:
        spokes, samples = self.measurement_shape[1:]
        described: dict[str, Any] = {
            "kind": "mri-non-cartesian",
            "image_shape": list(self.image_shape),
            "measurement_shape": list(self.measurement_shape),
            "coils": self.coils,
            "trajectory": {
                "spokes": spokes,
                "samples": samples,
                "counted": int(self._counted.sum()),
                "reach": float(np.hypot(*self.positions).max()),
                "sha256": hashlib.sha256(self.positions.tobytes()).hexdigest(),
            },
        }
        if self.maps is not None:
            raw = self.maps.detach().cpu().contiguous().numpy().tobytes()
            described["maps_sha256"] = hashlib.sha256(raw).hexdigest()
        return described
