"""Measured k-space as a Dataset: masks kept, coils combined or encoded, the MR scale estimated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.data.kspace.grid import (
    Kspace,
    KspaceSlice,
    Plane,
    is_complete,
    measured_lines,
    one_sided,
)
from engine.data.kspace.maps import (
    FirstImage,
    SliceMaps,
    check_maps,
    maps_of,
    sense_image,
    weighted_image,
)
from engine.data.kspace.measured import (
    FULL,
    SCANNED,
    MeasuredKspace,
    SliceNoise,
    noise_of,
    root_sum_of_squares,
)
from engine.physics.fourier import centred_fft2, centred_ifft2, to_channels
from engine.physics.masks import SamplingMask, build_mask, given
from engine.physics.mri import MultiCoilMRI, SingleCoilMRI
from engine.physics.operator import Operator
from engine.physics.problem import Problem
from engine.physics.sensitivity import principal_coil
from engine.physics.units import IntensityMap
from engine.spec.acquisition import MRIAcquisition
from engine.spec.errors import RequestError

# Fewer lines than this, or none at the centre, are no scan.
FEWEST_LINES = 8
THINNING = ("acceleration", "mask", "acs_lines")


@dataclass
class _Scan:
    """What a problem is made of: the full measured planes and how images become them."""

    kspace: Tensor  # complex [B, coils, H, W]
    maps: Tensor | None  # complex [B, coils, H, W]
    source: str  # of the maps, or what the virtual coil is
    noise: Tensor  # [B, 1, 1, 1], SD per component of `kspace`; 0 when unknown
    slice_maps: list[SliceMaps] = field(default_factory=list)

    def operator(self, mask: SamplingMask) -> Operator:
        height, width = self.kspace.shape[-2:]
        if self.maps is None:
            return SingleCoilMRI(mask, (height, width))
        return MultiCoilMRI(mask, self.maps)


@dataclass
class KspaceDataset(MeasuredKspace):
    """Cartesian k-space, phase encode along the last axis, zero frequency at N // 2.

    Attributes
    ----------
    load_slice : reads a slice
    crop_size : the middle part of the image that the scanner would show, when it is smaller
    """

    load_slice: Callable[[int], KspaceSlice] = lambda number: KspaceSlice(
        np.zeros((1, 1, 1), np.complex64), np.zeros(1, bool)
    )
    crop_size: tuple[int, int] | None = None

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
        if self.given_maps is not None:
            part.maps = self.given_maps(number)
        self.check_numbers(number, part.kspace, part.maps, part.calibration and part.calibration[0])
        if not part.sampled.any():
            raise RequestError(f"{self.description}: slice {number} is empty.")
        return part

    def preview(self, number: int) -> np.ndarray:
        """Zero-filled, the root of the summed squares of all coils."""
        return root_sum_of_squares(centred_ifft2(torch.from_numpy(self.read(number))))

    def problem(
        self,
        numbers: Sequence[int],
        acquisition: dict[str, Any],
        intensity: IntensityMap,
        seed: int,
    ) -> Problem:
        asked = MRIAcquisition.from_dict(acquisition)
        self.check_coils(acquisition, asked)
        parts = [self.read_slice(number) for number in numbers]
        sampled = self._common_mask(numbers, parts)
        self._warn_off_centre(numbers[0], parts[0].kspace)
        complete = is_complete(sampled)
        self._say_partial(sampled)
        mask = self._kept(sampled, complete, acquisition, seed)
        noises = [noise_of(part, self.noise_sigma, SCANNED) for part in parts]
        if asked.noise == "none":  # coils stay as they are, too
            noises = [replace(noise, whitening=None) for noise in noises]
        parts = [
            part if noise.whitening is None else part.mixed(noise.whitening)
            for part, noise in zip(parts, noises, strict=True)
        ]
        scan = self._scan(
            numbers, self.fewer_coils(parts, self.virtual_coils), noises, mask, complete
        )
        operator = scan.operator(mask)
        reference = None
        if complete:
            reference = scan.operator(given(sampled)).pseudo_inverse(to_channels(scan.kspace))
        first = self._first_image(scan, operator, mask)
        return self.make_problem(
            numbers,
            operator,
            to_channels(scan.kspace * mask.to_tensor()),
            reference,
            (first.image, first.source) if reference is None else (reference, FULL),
            asked,
            (noises, scan.noise),
            any(noise.whitening is not None for noise in noises),
            {
                "retrospective": complete and not np.array_equal(mask.sampled, sampled),
                "emulated_single_coil": complete and self._combines,
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
                    "different lines; reconstruct them one at a time (⟦slice⟧)."
                )
        return first

    def _say_partial(self, sampled: Plane) -> None:
        """Partial Fourier: a range of lines, or of the readout, that stops short on one side."""
        plane = np.atleast_2d(sampled)
        for name, measured in (
            ("partial Fourier", measured_lines(plane)),
            ("asymmetric echo", measured_lines(plane.T)),
        ):
            if len(measured) > 1 and one_sided(measured):
                at = np.flatnonzero(measured) - len(measured) // 2
                value = f"measured from {at[0]} to {at[-1]} of {len(measured)} about the centre"
                self.say(name, f"{value}; the rest is left to the solver", "sampling mask")

    def _kept(
        self, sampled: Plane, complete: bool, acquisition: dict[str, Any], seed: int
    ) -> SamplingMask:
        """The lines to use: the file's own, thinned by what was asked for."""
        own = given(sampled)
        asked = MRIAcquisition.from_dict(acquisition)
        thin = any(name in acquisition for name in THINNING)
        if not complete and not thin:
            self.say("mask", f"its own, {_times(own)}", "the file")
            return own
        if not complete and asked.acceleration <= own.true_acceleration:
            self.warn(
                f"The scan is accelerated {own.true_acceleration:.2f} times already; "
                f"⟦acceleration⟧ {asked.acceleration:g} takes nothing away."
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
        self.say("mask", value, "option" if thin else "default, for the scan is fully sampled")
        if not complete:
            measured = int(measured_lines(sampled).sum())
            self.warn(f"{int(lines.sum())} of the {measured} measured lines are used.")
        return mask

    def _scan(
        self,
        numbers: Sequence[int],
        parts: list[KspaceSlice],
        noises: list[SliceNoise],
        mask: SamplingMask,
        complete: bool,
    ) -> _Scan:
        kspace = torch.from_numpy(np.stack([part.kspace for part in parts]))
        noise = torch.tensor([one.sd or 0.0 for one in noises]).view(-1, 1, 1, 1)
        if self.coils == 1:
            return _Scan(kspace, None, "one coil", noise)
        if self._combines and not complete:
            return self._compressed(kspace, noise)
        kept = None if self._combines else mask.sampled
        found = [
            maps_of(part, kept, complete, one.sd or 0.0, f"{self.description}: slice {number}")
            for number, part, one in zip(numbers, parts, noises, strict=True)
        ]
        for one in found:
            if one.warning:
                self.warn(one.warning)
        maps = torch.stack([one.maps for one in found])
        source = found[0].source
        origin = "the file" if self.given_maps is None else "option"
        self.say("coil maps", source, origin if found[0].given else "estimated")
        if not self._combines:
            return _Scan(kspace, maps, source, noise, found)
        operator = MultiCoilMRI(given(parts[0].sampled), maps)
        image = operator.pseudo_inverse(to_channels(kspace))
        combined = torch.complex(image[:, :1], image[:, 1:])
        self.say(
            "coils", f"{self.coils}, combined to one image, measured anew by one coil", "option"
        )
        self.warn(
            "One virtual coil: its k-space is computed from the combined image of all coils; "
            "it is an emulation, not a measurement."
        )
        # the noise of S^H y / sum |S|^2, spread over k-space; where no coil sees there is none
        energy = maps.abs().square().sum(dim=1, keepdim=True)
        share = torch.where(energy > 0, 1 / energy, 0).mean(dim=(2, 3), keepdim=True)
        return _Scan(centred_fft2(combined), None, source, noise * share.sqrt())

    def _compressed(self, kspace: Tensor, noise: Tensor) -> _Scan:
        """Undersampled coils cannot be combined exactly: the virtual coil with most signal."""
        flat = kspace.movedim(1, 0).flatten(1)
        weights = principal_coil(flat).to(kspace.dtype)
        virtual = torch.einsum("c,bchw->bhw", weights.conj(), kspace)[:, None]
        share = float(virtual.abs().square().sum() / kspace.abs().square().sum())
        text = f"{self.coils}, compressed to one virtual coil with {share:.0%} of the energy"
        self.say("coils", text, "option")
        self.warn(
            f"One virtual coil keeps {share:.0%} of the energy of {self.coils} coils: the image "
            "is shaded by its sensitivity, and what the other coils know is lost."
        )
        return _Scan(virtual, None, "one virtual coil of most energy", noise)

    def _first_image(self, scan: _Scan, operator: Operator, mask: SamplingMask) -> FirstImage:
        y = to_channels(scan.kspace * mask.to_tensor())
        if scan.maps is None:
            return weighted_image(operator, y, mask.sampled)
        first = sense_image(operator, y, scan.noise, mask.true_acceleration)
        check_maps(self, scan.slice_maps, first)
        return first

    def _warn_off_centre(self, number: int, kspace: Kspace) -> None:
        power = np.square(np.abs(kspace)).sum(axis=0)
        peak = np.unravel_index(int(power.argmax()), power.shape)
        far = [abs(p - n // 2) > n / 8 for p, n in zip(peak, power.shape, strict=True)]
        if any(far):
            self.warn(
                f"The strongest sample of slice {number} lies at {int(peak[0])}, {int(peak[1])}, "
                "far from the centre: is the zero frequency in the middle of these data?"
            )


def _times(mask: SamplingMask) -> str:
    lines, samples = int(measured_lines(mask.sampled).sum()), mask.sampled
    amount = f"{lines} of {mask.width} lines"
    if samples.ndim == 2:
        amount = f"{int(samples.sum())} of {samples.size} samples in two directions"
    return f"{amount} ({mask.true_acceleration:.2f} times accelerated)"
