"""Measured radial or spiral k-space as a Dataset: units, coil maps, scale and noise of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor

from engine.data.kspace.grid import mix_coils
from engine.data.kspace.measured import (
    FULL,
    NOT_KNOWN,
    PURE,
    SCANNED,
    MeasuredKspace,
    SliceNoise,
    root_sum_of_squares,
)
from engine.data.kspace.readout_errors import readout_errors
from engine.data.kspace.trajectory import Trajectory
from engine.physics.fourier import centred_fft2, to_channels
from engine.physics.noncartesian import NonCartesianMRI
from engine.physics.problem import Problem
from engine.physics.sensitivity import estimate_maps
from engine.physics.thermal_noise import outer_noise
from engine.physics.units import IntensityMap
from engine.spec.acquisition import MRIAcquisition
from engine.spec.errors import RequestError

Samples = NDArray[np.complex64]  # [coils, spokes, samples]

BLOCK = 24  # Fourier samples of the centre that coil maps are estimated from, at most
NEIGHBOUR = 1.0  # Fourier sample: a measured one this near makes it known
COMPLETE = 0.95  # of the disc of k-space: a scan that covers this much is fully sampled
REFINEMENTS = 8  # of the image of a fully sampled scan
ECHO = 1.0  # cycle per field of view: a readout's strongest sample lies closer to the centre


@dataclass
class SpokesSlice:
    """One slice; ``maps`` are sensitivities ``[coils, H, W]`` that come with it."""

    kspace: Samples
    trajectory: Trajectory
    maps: NDArray[np.complex64] | None = None

    def mixed(self, matrix: NDArray) -> SpokesSlice:
        """The slice as coils ``matrix @ y`` see it; maps follow, for y = F S x."""
        maps = None if self.maps is None else mix_coils(matrix, self.maps)
        return SpokesSlice(mix_coils(matrix, self.kspace), self.trajectory, maps)


@dataclass
class SpokesDataset(MeasuredKspace):
    """K-space along paths: the first component of a position is that along the image's rows."""

    load_slice: Callable[[int], SpokesSlice] = lambda number: SpokesSlice(
        np.zeros((1, 1, 1), np.complex64), Trajectory(np.zeros((2, 1, 1)), 8)
    )

    def read_slice(self, number: int) -> SpokesSlice:
        """A slice, checked: whatever follows may rely on finite numbers and some signal."""
        part = self.load_slice(number)
        if self.given_maps is not None:
            part.maps = self.given_maps(number)
        self.check_numbers(number, part.kspace, part.maps)
        return part

    def preview(self, number: int) -> np.ndarray:
        """Gridded, the root of the summed squares of all coils."""
        part = self.read_slice(number)
        return root_sum_of_squares(_coil_images(part.kspace, part.trajectory))

    def problem(
        self,
        numbers: Sequence[int],
        acquisition: dict[str, Any],
        intensity: IntensityMap,
        seed: int,
    ) -> Problem:
        asked = MRIAcquisition.from_dict(acquisition)
        self._refuse(acquisition, asked)
        parts = [self.read_slice(number) for number in numbers]
        full = self._common_trajectory(numbers, parts)
        self._check_echo(parts[0])
        chosen = self._kept(full, asked.acceleration if "acceleration" in acquisition else None)
        thinned = len(chosen) < full.spokes
        noises = [self._noise_of(part) for part in parts]
        wanted = 1 if self.coil_use == "combine" else self.virtual_coils
        parts = self.fewer_coils(parts, wanted)
        if wanted == 1 < self.coils:
            self.warn("One virtual coil: the image is shaded by its sensitivity.")
        shape = (full.size, full.size)
        maps, source = self._maps(numbers, parts, chosen)
        if self.correct_readouts:
            parts = self._corrected(parts, maps)
            maps, source = self._maps(numbers, parts, chosen)
        samples = torch.from_numpy(np.stack([part.kspace for part in parts]))
        operator = NonCartesianMRI(full.positions[:, chosen], shape, maps)
        y = to_channels(samples[:, :, chosen])
        self.say("coverage", f"{operator.coverage():.0%} of the disc of k-space", "trajectory")
        reference = None
        if thinned:
            whole = NonCartesianMRI(full.positions, shape, maps)
            reference = _complete_image(whole, to_channels(samples))
        bright = (operator.pseudo_inverse(y), "the gridded image")
        if reference is not None:
            bright = (reference, FULL)
        sd = torch.tensor([one.sd or 0.0 for one in noises]).view(-1, 1, 1, 1)
        return self.make_problem(
            numbers,
            operator,
            y,
            reference,
            bright,
            asked,
            (noises, sd),
            self.noise_sigma > 0,
            {
                "retrospective": thinned,
                "maps": source,
                "spokes": chosen.tolist() if thinned else None,
            },
        )

    def _corrected(self, parts: list[SpokesSlice], maps: Tensor | None) -> list[SpokesSlice]:
        """Without the delays and phases of single spokes, with the coils as ``maps`` say."""
        full = parts[0].trajectory
        if not full.is_radial():
            raise RequestError("⟦correct_readouts⟧ is for radial spokes: these are none.")
        corrected = []
        for i, part in enumerate(parts):
            own = None if maps is None else maps[i : i + 1]
            operator = NonCartesianMRI(full.positions, (full.size, full.size), own)
            found = readout_errors(operator, part.kspace)
            self.say("spokes corrected", found.words, "estimated")
            corrected.append(replace(part, kspace=found.corrected(part.kspace)))
        return corrected

    def _refuse(self, acquisition: dict[str, Any], asked: MRIAcquisition) -> None:
        self.check_coils(acquisition, asked)
        for name in ("mask", "acs_lines"):
            if name in acquisition:
                raise RequestError(
                    f"{self.description} was not measured line by line: ⟦{name}⟧ "
                    "does not apply; ⟦acceleration⟧ leaves out spokes."
                )

    def _common_trajectory(self, numbers: Sequence[int], parts: list[SpokesSlice]) -> Trajectory:
        first = parts[0].trajectory
        for number, part in zip(numbers, parts, strict=True):
            if not np.array_equal(part.trajectory.positions, first.positions):
                raise RequestError(
                    f"{self.description}: slices {numbers[0]} and {number} were measured along "
                    "different paths; reconstruct them one at a time (⟦slice⟧)."
                )
        return first

    def _kept(self, full: Trajectory, acceleration: float | None) -> NDArray[np.intp]:
        chosen = full.kept(acceleration)
        if len(chosen) == full.spokes:
            self.say("readouts used", f"all {full.spokes}", "the file")
            return chosen
        which = "the first" if chosen[-1] == len(chosen) - 1 else "evenly chosen"
        self.say("readouts used", f"{len(chosen)} of {full.spokes}, {which}", "option")
        return chosen

    def _noise_of(self, part: SpokesSlice) -> SliceNoise:
        """Of noise scans, or of the outer samples.

        Those hold some signal, which coils share: it says how much noise there is at most, but
        would be taken for a correlation of the coils' noise.
        """
        flat = part.kspace.reshape(len(part.kspace), -1)
        found = outer_noise(flat, part.trajectory.radius.ravel())
        if self.noise_sigma > 0:
            bound = None if found is None else found.sigma
            return SliceNoise(self.noise_sigma, SCANNED, bound=bound)
        if found is None:
            return SliceNoise(None, NOT_KNOWN)
        at_most = found.sigma > 0 and found.purity < PURE
        return SliceNoise(found.sigma, f"estimated from {found.place}", at_most=at_most)

    def _maps(
        self, numbers: Sequence[int], parts: list[SpokesSlice], chosen: NDArray[np.intp]
    ) -> tuple[Tensor | None, str]:
        if len(parts[0].kspace) == 1:
            return None, "one coil"
        given = [part.maps for part in parts if part.maps is not None]
        if given:
            self.say("coil maps", "from a file", "option")
            return torch.from_numpy(np.stack(given)), "from a file"
        found = []
        for number, part in zip(numbers, parts, strict=True):
            full = part.trajectory
            used = Trajectory(full.positions[:, chosen], full.size)
            centre = centred_fft2(_coil_images(part.kspace[:, chosen], used))
            what = f"{self.description}: slice {number}"
            found.append(estimate_maps(centre, covered_block(used), what))
        source = f"{found[0].method}, from {found[0].lines} central Fourier samples each way"
        self.say("coil maps", source, "estimated")
        return torch.stack([one.maps for one in found]), source

    def _check_echo(self, part: SpokesSlice) -> None:
        """The strongest samples lie at the centre of k-space, unless delays or units are wrong."""
        distance = part.trajectory.distance_of_echo(np.square(np.abs(part.kspace)).sum(axis=0))
        sentence = (
            f"The strongest sample of a readout comes {distance:.2g} cycles per field of view from "
            "the centre of k-space"
        )
        if distance <= ECHO:
            self.check("trajectory", "good", f"{sentence}.")
            return
        doubt = f"{sentence}: gradient delays, or not the trajectory of these data. Expect streaks."
        fix = "correct the trajectory, its unit (⟦trajectory_unit⟧) or the order of readouts"
        self.check("trajectory", "doubtful", doubt, fix)
        self.warn(doubt)


def _coil_images(samples: Samples, trajectory: Trajectory) -> Tensor:
    """Every coil gridded on its own, complex ``[coils, H, W]``."""
    operator = NonCartesianMRI(trajectory.positions, (trajectory.size, trajectory.size))
    images = operator.pseudo_inverse(to_channels(torch.from_numpy(samples)[:, None]))
    return torch.complex(images[:, 0], images[:, 1])


def covered_block(trajectory: Trajectory) -> NDArray[np.bool_]:
    """The square at the centre, ``[H, W]``, of Fourier samples that all have a neighbour."""
    reach = BLOCK // 2
    index = np.arange(-reach, reach)
    places = np.stack(np.meshgrid(index, index, indexing="ij"), axis=-1)
    distance = cKDTree(trajectory.positions.reshape(2, -1).T).query(places)[0]
    far = np.maximum(*np.abs(places + 0.5).transpose(2, 0, 1))[distance > NEIGHBOUR]
    half = min(reach, round(far.min(initial=reach + 0.5) - 0.5))
    block = np.zeros((trajectory.size, trajectory.size), bool)
    centre = slice(trajectory.size // 2 - half, trajectory.size // 2 + half)
    block[centre, centre] = True
    return block


def _complete_image(operator: NonCartesianMRI, y: Tensor) -> Tensor | None:
    """The image of a fully sampled scan, refined until it explains the samples; else None."""
    if operator.coverage() < COMPLETE:
        return None
    image = operator.pseudo_inverse(y)
    for _ in range(REFINEMENTS):
        image = image + operator.pseudo_inverse(y - operator.forward(image))
    return image
