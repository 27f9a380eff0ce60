"""What measured k-space of every sampling shares: coils, noise, units, the way to a Problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.data.dataset import Dataset
from engine.data.kspace.grid import Kspace, KspaceSlice
from engine.physics.fourier import to_complex
from engine.physics.operator import Operator
from engine.physics.prewhitening import correlation_spread, is_white, whitening_of
from engine.physics.problem import Problem
from engine.physics.sensitivity import principal_coils
from engine.physics.simulate import mr_scale
from engine.physics.thermal_noise import thermal_noise
from engine.physics.units import IntensityMap
from engine.spec.acquisition import MRIAcquisition
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

SCANNED = "noise scans of the file"
NOT_KNOWN = "not known"
GIVEN = "given"
NOISE_FREE = "taken for noise-free, as asked"
DECLARE = "Give the noise with ⟦kspace_noise⟧."
PURE = 0.8  # samples distributed less like noise hold signal too
IMPOSSIBLE = 1.3  # times what the measurement can hold
# Ratio of SDs between combinations of coils: noise of neighbouring coils is correlated by a half
# at most, while the signal, which smooth maps share out, is nearly the same in all.
MOST_CORRELATED = 4.0
DEAD = 1e-6  # of the noise power of the loudest coil: such a coil is not connected


@dataclass(frozen=True)
class SliceNoise:
    """``sd`` of the real and imaginary part of a sample, in the file's units; None: not known.

    Attributes
    ----------
    origin : how it is known
    whitening : makes the coils equally noisy and independent; None where they are already
    at_most : the samples it was taken from hold signal, too
    bound : what the slice itself allows at most; None where it cannot tell
    """

    sd: float | None
    origin: str
    whitening: NDArray | None = None
    at_most: bool = False
    bound: float | None = None

    @property
    def scanned(self) -> bool:
        return self.origin == SCANNED

    @property
    def is_impossible(self) -> bool:
        known = self.sd is not None and self.bound is not None and self.bound > 0
        return known and float(self.sd or 0) > IMPOSSIBLE * float(self.bound or 0)


def noise_of(part: KspaceSlice, scanned_sd: float, scanned_origin: str) -> SliceNoise:
    """What ``scanned_sd`` (of whitened coils, 0: there is none) or the slice itself says."""
    found = thermal_noise(part.kspace, part.sampled)
    if scanned_sd > 0:
        return SliceNoise(scanned_sd, scanned_origin, bound=found.sigma if found else None)
    if found is None:
        return SliceNoise(None, NOT_KNOWN)
    origin = f"estimated from {found.place}"
    alive = found.power > DEAD * found.power.max()
    covariance, count = found.covariance[np.ix_(alive, alive)], found.samples.shape[1]
    at_most = found.sigma > 0 and found.purity < PURE
    has_shape = found.sigma > 0 and count > len(covariance) > 1
    if has_shape and correlation_spread(covariance) > MOST_CORRELATED:
        # The combinations of coils that see least of this signal know the noise best.
        least = np.linalg.eigvalsh(covariance)[: len(covariance) // 2]
        return SliceNoise(float(np.sqrt(max(0.0, least.mean()) / 2)), origin, at_most=True)
    if at_most or found.sigma == 0 or is_white(covariance, count):
        return SliceNoise(found.sigma, origin, at_most=at_most)
    whitening = whitening_of(covariance, count) if alive.all() else None
    if whitening is None:
        return SliceNoise(found.sigma, origin)
    # The covariance comes from trimmed samples, the SD from all, by the median.
    mixed = np.asarray(whitening.matrix @ found.samples)
    sd = type(found)(mixed, found.place).sigma
    return SliceNoise(sd, origin, whitening.matrix)


def with_noise_of_samples(problem: Problem) -> Problem:
    """A simulated scan as if nobody knew its noise; how much of it was found is recorded."""
    sampled = problem.operator.sampled()
    assert sampled is not None
    plane = sampled.cpu().numpy().astype(bool).reshape(-1, sampled.shape[-1])
    found = [thermal_noise(one.cpu().numpy(), plane) for one in to_complex(problem.measurement)]
    known = [one.sigma for one in found if one is not None]
    if len(known) < len(found):
        return replace(problem, noise_sigma=0.0, noise_origin=NOT_KNOWN)
    sigma = torch.tensor(known).view(-1, 1, 1, 1).to(problem.measurement)
    ratio = sigma / torch.as_tensor(problem.noise_sigma).to(sigma)
    return replace(
        problem,
        noise_sigma=sigma,
        noise_origin="estimated from the measurement",
        provenance=problem.provenance | {"noise_found": ratio.flatten().tolist()},
    )


def settle_noise(
    dataset: Dataset, asked: MRIAcquisition, noises: list[SliceNoise], sd: Tensor, scale: float
) -> tuple[Tensor | float, str]:
    """SD per component in units of ``scale``, and its origin; both are said and checked.

    What was given comes first, then what was found (``sd``), unless the scan is to be taken for
    noise-free; noise scans of the file are believed even then.
    """
    if asked.kspace_noise > 0:
        dataset.say("noise", f"SD {asked.kspace_noise:.3g} of the MR scale", GIVEN)
        dataset.check("noise", "good", "The noise level was given.")
        return asked.kspace_noise, GIVEN
    if asked.noise == "none" and not any(noise.scanned for noise in noises):
        dataset.say("noise", "none", NOISE_FREE)
        return 0.0, NOISE_FREE
    origin = report_noise(dataset, noises, sd, scale)
    return (float(sd[0]) if len(sd) == 1 else sd) / scale, origin


def report_noise(dataset: Dataset, noises: list[SliceNoise], sd: Tensor, scale: float) -> str:
    """Says what is known of the noise of SD ``sd`` ``[B, 1, 1, 1]``; returns its origin."""
    first = noises[0]
    if any(noise.sd is None for noise in noises):
        dataset.say("noise", NOT_KNOWN, NOT_KNOWN)
        sentence = (
            "The noise of this scan is not known, for there are too few samples far from the "
            "centre of k-space to estimate it; the methods take it for noise-free."
        )
        dataset.warn(f"{sentence} {DECLARE}")
        dataset.check("noise", "doubtful", sentence, DECLARE)
        return NOT_KNOWN
    mean = float(sd.mean())
    words = f"SD {mean:.4g} per component, {mean / scale:.3g} of the MR scale" if mean else "none"
    if any(noise.whitening is not None for noise in noises):
        words += "; coils prewhitened"
    dataset.say("noise", words, first.origin)
    if not mean:
        sentence = "No noise was found: these data look computed, not measured."
        dataset.check("noise", "doubtful", sentence, f"If there is noise: {DECLARE}")
    elif any(noise.is_impossible for noise in noises):
        sentence = (
            f"The noise scans of the file say SD {first.sd:.3g}, but far from the centre of "
            f"k-space there is only {first.bound:.3g}: the noise may be overstated."
        )
        dataset.warn(sentence)
        dataset.check("noise", "doubtful", sentence, DECLARE)
    elif any(noise.at_most for noise in noises):
        sentence = f"The noise is at most {words}: the samples it was taken from hold signal, too."
        dataset.check("noise", "doubtful", sentence, f"If you know it: {DECLARE}")
    else:
        dataset.check("noise", "good", f"The noise is known: {words}, {first.origin}.")
    return first.origin


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
    correct_readouts : delays and phases of single spokes are found and taken away
    given_scale : the magnitude a prior sees as 1, when a person says it
    given_maps : gives the maps of a slice, when a person named a file of them
    """

    kind: ClassVar[str] = "kspace"
    coils: int = 1
    coil_use: str = "sense"
    noise_sigma: float = 0.0
    virtual_coils: int | None = None
    correct_readouts: bool = False
    given_scale: float | None = None
    given_maps: Callable[[int], Kspace] | None = None

    def take(self, options: InputOptions) -> None:
        """What a person said of coils, maps and scale."""
        self.coil_use = options.coil_use or self.coil_use
        self.virtual_coils, self.given_scale = options.virtual_coils, options.mr_scale
        self.correct_readouts = bool(options.correct_readouts)
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
