"""Measured k-space as a Dataset: masks kept, coils combined or encoded, the MR scale estimated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from engine.acquisition import MRIAcquisition
from engine.data.dataset import Dataset, Fact
from engine.data.kspace_grid import Kspace, Plane, is_complete, line_gaps, measured_lines
from engine.errors import RequestError
from engine.physics.fourier import centred_fft2, centred_ifft2, to_channels
from engine.physics.masks import SamplingMask, build_mask, given
from engine.physics.mri import MultiCoilMRI, SingleCoilMRI
from engine.physics.noise import complex_gaussian
from engine.physics.operator import Operator
from engine.physics.sensitivity import MIN_LINES, central_block, estimate_maps, principal_coil
from engine.priors.prior import IntensityMap
from engine.problem import Problem
from engine.random import MEASUREMENT, make_generator
from engine.simulate import mr_scale

# Fewer lines than this, or none at the centre, are no scan.
FEWEST_LINES = 8
# Lines weighted by the gap they stand for give an image with as much fine structure as the
# true one, but with aliases; unweighted ones give too little of both. Between the two the
# 0.99 quantile comes out right within a tenth, 3 % low on average (see the tests).
GAP_EXPONENT = 0.75
THINNING = ("acceleration", "mask", "acs_lines")


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


@dataclass
class _Scan:
    """What a problem is made of: the full measured planes and how images become them."""

    kspace: Tensor  # complex [B, coils, H, W]
    maps: Tensor | None  # complex [B, coils, H, W]
    source: str  # of the maps, or what the virtual coil is

    def operator(self, mask: SamplingMask) -> Operator:
        height, width = self.kspace.shape[-2:]
        if self.maps is None:
            return SingleCoilMRI(mask, (height, width))
        return MultiCoilMRI(mask, self.maps)


@dataclass
class KspaceDataset(Dataset):
    """Cartesian k-space, phase encode along the last axis, zero frequency at N // 2.

    Attributes
    ----------
    load_slice : reads a slice
    coil_use : 'sense' (a map per coil) or 'combine' (one virtual coil)
    crop_size : the middle part of the image that the scanner would show, when it is smaller
    noise_sigma : SD of the noise per component in the file's units; 0 when unknown
    """

    kind: ClassVar[str] = "kspace"
    load_slice: Callable[[int], KspaceSlice] = lambda number: KspaceSlice(
        np.zeros((1, 1, 1), np.complex64), np.zeros(1, bool)
    )
    coils: int = 1
    coil_use: str = "sense"
    crop_size: tuple[int, int] | None = None
    noise_sigma: float = 0.0

    def read(self, number: int) -> Kspace:
        return self.read_slice(number).kspace

    def mask(self, number: int) -> SamplingMask | None:
        """The file's own mask; None when the slice is fully sampled."""
        sampled = self.read_slice(number).sampled
        return None if sampled.all() else given(sampled)

    def maps(self, number: int) -> Kspace | None:
        return self.read_slice(number).maps

    def read_slice(self, number: int) -> KspaceSlice:
        """A slice, checked: whatever follows may rely on finite numbers and some signal."""
        part = self.load_slice(number)
        for array in (part.kspace, part.maps, part.calibration and part.calibration[0]):
            if array is not None and not np.isfinite(array).all():
                raise RequestError(
                    f"{self.description}: slice {number} (counted from 0) holds NaN or infinity."
                )
        if not part.sampled.any() or not part.kspace.any():
            raise RequestError(f"{self.description}: slice {number} is empty.")
        return part

    def preview(self, number: int) -> np.ndarray:
        """Zero-filled, the root of the summed squares of all coils."""
        images = centred_ifft2(torch.from_numpy(self.read(number)))
        return images.abs().square().sum(dim=0).sqrt().numpy()

    def problem(
        self,
        numbers: Sequence[int],
        acquisition: dict[str, Any],
        intensity: IntensityMap,
        seed: int,
    ) -> Problem:
        asked = MRIAcquisition.from_dict(acquisition)
        if "coils" in acquisition and asked.coils != self.coils:
            raise RequestError(
                f"{self.description} was measured with {self.coils} coils; "
                f"--coils {asked.coils} is for simulated scans."
            )
        parts = [self.read_slice(number) for number in numbers]
        sampled = self._common_mask(numbers, parts)
        self._warn_off_centre(numbers[0], parts[0].kspace)
        complete = is_complete(sampled)
        mask = self._kept(sampled, complete, acquisition, seed)
        scan = self._scan(numbers, parts, mask, complete)
        operator = scan.operator(mask)
        reference = None
        if complete:
            reference = scan.operator(given(sampled)).pseudo_inverse(to_channels(scan.kspace))
        scale, scale_from = self._scale(scan, operator, mask, reference)
        y = to_channels(scan.kspace * mask.to_tensor()) / scale
        noise_sigma = self.noise_sigma / scale
        if asked.kspace_noise > 0:
            y = torch.cat(
                [
                    complex_gaussian(
                        y[i : i + 1],
                        asked.kspace_noise,
                        make_generator(seed, stream=MEASUREMENT + number),
                        mask,
                    )
                    for i, number in enumerate(numbers)
                ]
            )
            noise_sigma = float(np.hypot(noise_sigma, asked.kspace_noise))
        return Problem(
            operator=operator,
            measurement=y,
            intensity=IntensityMap("mr", scale),
            modality="MR",
            noise_sigma=noise_sigma,
            reference=None if reference is None else reference / scale,
            pixel_mm=self.pixel_mm,
            slices=tuple(numbers),
            provenance={
                "simulated": False,
                "scale": scale,
                "scale_from": scale_from,
                "retrospective": complete and not np.array_equal(mask.sampled, sampled),
                "emulated_single_coil": complete and self._combines,
                "coils": self.coils,
                "maps": scan.source,
                "crop": list(self.crop_size) if self.crop_size else None,
            },
        )

    @property
    def _combines(self) -> bool:
        return self.coil_use == "combine" and self.coils > 1

    def _common_mask(self, numbers: Sequence[int], parts: list[KspaceSlice]) -> Plane:
        first = parts[0].sampled
        for number, part in zip(numbers, parts, strict=True):
            if not np.array_equal(part.sampled, first):
                raise RequestError(
                    f"{self.description}: slices {numbers[0]} and {number} were sampled on "
                    "different lines; reconstruct them one at a time (--slice)."
                )
        return first

    def _kept(
        self, sampled: Plane, complete: bool, acquisition: dict[str, Any], seed: int
    ) -> SamplingMask:
        """The lines to use: the file's own, thinned by what was asked for."""
        own = given(sampled)
        asked = MRIAcquisition.from_dict(acquisition)
        thin = any(name in acquisition for name in THINNING)
        if not complete and not thin:
            self._say("mask", f"its own, {_times(own)}", "the file")
            return own
        if not complete and asked.acceleration <= own.true_acceleration:
            self._warn(
                f"The scan is accelerated {own.true_acceleration:.2f} times already; "
                f"--acceleration {asked.acceleration:g} takes nothing away."
            )
            return own
        rule = build_mask(
            asked.mask,
            own.width,
            asked.acceleration,
            acs_lines=asked.acs_lines,
            seed=seed,
        )
        both = rule.sampled & sampled
        lines = measured_lines(both)
        if not complete and (lines.sum() < FEWEST_LINES or not lines[own.width // 2]):
            raise RequestError(
                f"{self.description}: only {int(lines.sum())} measured lines belong to the "
                f"'{asked.mask}' mask of acceleration {asked.acceleration:g} too; "
                "ask for less acceleration or keep the file's own mask."
            )
        mask = replace(rule, sampled=both)
        value = f"{asked.mask}, asked for {asked.acceleration:g}, {_times(mask)}"
        self._say("mask", value, "option" if thin else "default, for the scan is fully sampled")
        if not complete:
            measured = int(measured_lines(sampled).sum())
            self._warn(f"{int(lines.sum())} of the {measured} measured lines are used.")
        return mask

    def _scan(
        self,
        numbers: Sequence[int],
        parts: list[KspaceSlice],
        mask: SamplingMask,
        complete: bool,
    ) -> _Scan:
        kspace = torch.from_numpy(np.stack([part.kspace for part in parts]))
        if self.coils == 1:
            return _Scan(kspace, None, "one coil")
        if self._combines and not complete:
            return self._compressed(kspace)
        pairs = [
            self._maps_of(number, part, None if self._combines else mask, complete)
            for number, part in zip(numbers, parts, strict=True)
        ]
        maps = torch.stack([pair[0] for pair in pairs])
        source = pairs[0][1]
        self._say("coil maps", source, "the file" if parts[0].maps is not None else "estimated")
        if not self._combines:
            return _Scan(kspace, maps, source)
        operator = MultiCoilMRI(given(parts[0].sampled), maps)
        image = operator.pseudo_inverse(to_channels(kspace))
        combined = torch.complex(image[:, :1], image[:, 1:])
        self._say(
            "coils", f"{self.coils}, combined to one image, measured anew by one coil", "option"
        )
        self._warn(
            "One virtual coil: its k-space is computed from the combined image of all coils; "
            "it is an emulation, not a measurement."
        )
        return _Scan(centred_fft2(combined), None, source)

    def _maps_of(
        self, number: int, part: KspaceSlice, mask: SamplingMask | None, complete: bool
    ) -> tuple[Tensor, str]:
        """Sensitivities of a slice, from the best there is; ``mask`` None allows all data."""
        what = f"{self.description}: slice {number}"
        if part.maps is not None:
            return torch.from_numpy(part.maps), "from the file"
        if part.calibration is not None:
            kspace, sampled = part.calibration
            found = estimate_maps(torch.from_numpy(kspace), sampled, what)
            return found.maps, f"{found.method}, from {found.lines} separate calibration lines"
        sampled = part.sampled if mask is None else mask.sampled
        columns = central_block(sampled)[1]
        if complete and columns.stop - columns.start < MIN_LINES:
            self._warn(
                "The mask leaves too few central lines for coil maps; "
                "they were estimated from the fully sampled data."
            )
            sampled = part.sampled
        found = estimate_maps(torch.from_numpy(part.kspace), sampled, what)
        return found.maps, f"{found.method}, from {found.lines} central lines"

    def _compressed(self, kspace: Tensor) -> _Scan:
        """Undersampled coils cannot be combined exactly: the virtual coil with most signal."""
        flat = kspace.movedim(1, 0).flatten(1)
        weights = principal_coil(flat).to(kspace.dtype)
        virtual = torch.einsum("c,bchw->bhw", weights.conj(), kspace)[:, None]
        share = float(virtual.abs().square().sum() / kspace.abs().square().sum())
        text = f"{self.coils}, compressed to one virtual coil with {share:.0%} of the energy"
        self._say("coils", text, "option")
        self._warn(
            f"One virtual coil keeps {share:.0%} of the energy of {self.coils} coils: the image "
            "is shaded by its sensitivity, and what the other coils know is lost."
        )
        return _Scan(virtual, None, "one virtual coil of most energy")

    def _scale(
        self, scan: _Scan, operator: Operator, mask: SamplingMask, reference: Tensor | None
    ) -> tuple[float, str]:
        """The magnitude a prior sees as 1, and what it was taken from."""
        if reference is not None:
            images, source = reference, "the fully sampled image"
        else:
            weights = torch.from_numpy(line_gaps(mask.sampled) ** GAP_EXPONENT).float()
            images = operator.pseudo_inverse(to_channels(scan.kspace * weights))
            source = "the zero-filled image, lines weighted by their gaps"
        scale = mr_scale(images)
        self._say("MR scale", f"{scale:.4g} (0.99 quantile of the magnitude)", source)
        return scale, source

    def _warn_off_centre(self, number: int, kspace: Kspace) -> None:
        power = np.square(np.abs(kspace)).sum(axis=0)
        peak = np.unravel_index(int(power.argmax()), power.shape)
        far = [abs(p - n // 2) > n / 8 for p, n in zip(peak, power.shape, strict=True)]
        if any(far):
            self._warn(
                f"The strongest sample of slice {number} lies at {int(peak[0])}, {int(peak[1])}, "
                "far from the centre: is the zero frequency in the middle of these data?"
            )

    def _say(self, name: str, value: str, origin: str) -> None:
        """A fact that a later problem of the same data replaces."""
        self.facts = [fact for fact in self.facts if fact.name != name]
        self.facts.append(Fact(name, value, origin))

    def _warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)


def _times(mask: SamplingMask) -> str:
    lines = int(measured_lines(mask.sampled).sum())
    return f"{lines} of {mask.width} lines ({mask.true_acceleration:.2f} times accelerated)"
