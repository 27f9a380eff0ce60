"""The thermal noise of measured k-space, from the measurement alone.

Two places of a scan hold hardly anything but noise: k-space far from its centre, and what lies
beside the object. Lines that are complete along one axis show the second even when the scan is
accelerated along the other: transformed along themselves, and far from the centre across, they
are noise wherever the object is not. Signal can only add to the noise, so both places are cut
into groups and the groups of least power are believed.

Noise is told from leftover signal by its distribution: the squared magnitude of complex Gaussian
noise is exponential, that of signal has far more large values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.complex64]
Plane = NDArray[np.bool_]

GROUPS = 24
LOWEST = 2  # groups that say how little power there is; the others of like power join them
ALIKE = 3.0  # standard deviations of a group's power
FEWEST = 200  # samples of a coil in a group; the SD of fewer is itself uncertain by > 5 %
INNERMOST = 0.4  # of the way to the edge of the measured range: nearer samples are signal
EDGE = 0.03  # of a line, at both ends: the receiver's own filter falls off there
LN2 = float(np.log(2))  # the median of an exponential distribution of mean 1
SPREAD = float(np.log(10) / np.log(2))  # its 0.9 quantile over its median
ROUNDING = 1e-6  # of the largest sample: less is the rounding of numbers, not noise


@dataclass(frozen=True)
class ThermalNoise:
    """``samples`` ``[coils, n]`` that are noise, and ``place``, where they were found."""

    samples: Samples
    place: str

    @property
    def power(self) -> NDArray[np.float64]:
        """E|n|^2 of each coil; the median does not mind a few samples of signal."""
        return np.asarray(np.median(_square(self.samples), axis=1) / LN2)

    @property
    def sigma(self) -> float:
        """SD of the real and of the imaginary part, as the root of the mean over coils."""
        return float(np.sqrt(self.power.mean() / 2))

    @property
    def purity(self) -> float:
        """Near 1 when the samples are distributed as noise is, less the more signal they hold."""
        square = _square(self.samples)
        median = np.median(square, axis=1)
        alive = median > 0
        if not alive.any():
            return 0.0
        ratio = np.quantile(square[alive], 0.9, axis=1) / median[alive]
        return float(min(1.0, SPREAD / np.median(ratio)))

    @property
    def covariance(self) -> NDArray[np.complex128]:
        """Between coils, from the samples that no signal sticks out of in any coil."""
        square, power = _square(self.samples), np.maximum(self.power, 1e-300)[:, None]
        # of exponential numbers all but one in a million lie below 14 times the mean
        kept = self.samples[:, (square < 14 * power).all(axis=0)].astype(np.complex128)
        return np.asarray(kept @ kept.conj().T / max(1, kept.shape[1]))


def thermal_noise(kspace: Samples, sampled: Plane) -> ThermalNoise | None:
    """From k-space ``[coils, H, W]`` and what of it was measured; None when it is too little.

    A ``sigma`` of exactly 0 says that there is no noise: what lies beside the object is as empty
    as only a computed image leaves it.
    """
    plane = np.broadcast_to(sampled, kspace.shape[-2:]) & (kspace != 0).any(axis=0)
    found = [
        ThermalNoise(_lowest(groups), place)
        for place, groups in (
            ("k-space far from the centre", _shells(kspace, plane)),
            ("lines beside the object", _beside(kspace, plane)),
            ("lines beside the object", _beside(kspace.swapaxes(1, 2), plane.T)),
        )
        if groups
    ]
    if not found:
        return None
    best = min(found, key=lambda noise: float(noise.power.mean()))
    if best.sigma < ROUNDING * float(np.abs(kspace).max()):
        return ThermalNoise(np.zeros_like(best.samples), best.place)
    return best


def outer_noise(samples: Samples, distance: NDArray[np.float64]) -> ThermalNoise | None:
    """From samples ``[coils, n]`` anywhere in k-space, ``distance`` ``[n]`` from its centre."""
    measured = (samples != 0).any(axis=0)
    groups = _by_distance(samples[:, measured], distance[measured])
    if not groups:
        return None
    found = ThermalNoise(_lowest(groups), "k-space far from the centre")
    if found.sigma < ROUNDING * float(np.abs(samples).max()):
        return ThermalNoise(np.zeros_like(found.samples), found.place)
    return found


def _square(samples: Samples) -> NDArray[np.float64]:
    return np.square(samples.real, dtype=np.float64) + np.square(samples.imag, dtype=np.float64)


def _lowest(groups: list[Samples]) -> Samples:
    """The samples of the groups of least power; every coil counts alike, however loud it is.

    The least of many groups is too small by chance, so all that differ from it by chance only
    are taken.
    """
    power = np.stack([np.median(_square(group), axis=1) for group in groups])
    usual = np.median(power, axis=0)
    score = (power / np.where(usual > 0, usual, 1)).mean(axis=1)
    # the median of n exponential numbers has a relative SD of 1 / (ln 2 sqrt n)
    chance = ALIKE / (LN2 * np.sqrt(min(group.size for group in groups)))
    least = np.sort(score)[:LOWEST].mean()
    chosen = np.flatnonzero(score <= (1 + chance) * least)
    return np.concatenate([groups[i] for i in chosen], axis=1)


def _from_centre(measured: Plane) -> NDArray[np.float64]:
    """Distance of each index from the zero frequency, over that of the farthest measured one."""
    k = np.abs(np.arange(len(measured)) - len(measured) // 2)
    return np.asarray(k / max(1, int(k[measured].max(initial=0))))


def _shells(kspace: Samples, plane: Plane) -> list[Samples]:
    """Outer samples in shells of equal size, from the inside out."""
    rows, columns = (_from_centre(np.asarray(plane.any(axis=axis))) for axis in (1, 0))
    return _by_distance(kspace[:, plane], np.hypot(rows[:, None], columns)[plane])


def _by_distance(samples: Samples, distance: NDArray[np.float64]) -> list[Samples]:
    order = np.argsort(distance, kind="stable")
    order = order[distance[order] > INNERMOST * distance.max(initial=0)]
    count = min(GROUPS, order.size // FEWEST)
    return [samples[:, shell] for shell in np.array_split(order, count)] if count else []


def _beside(kspace: Samples, plane: Plane) -> list[Samples]:
    """Places along the first axis, for the lines complete along it and far out across it."""
    rows = np.asarray(plane.any(axis=1))
    used = np.flatnonzero(rows)
    if not len(used) or used[-1] - used[0] + 1 != len(used):
        return []
    complete = np.asarray(plane[rows].all(axis=0))
    lines = complete & (_from_centre(complete) > INNERMOST)
    height = kspace.shape[1]
    if not lines.any():
        return []
    k = np.fft.ifftshift(kspace[:, :, lines], axes=1)
    along = np.fft.fftshift(np.fft.ifft(k, axis=1, norm="ortho"), axes=1)
    along = (along * np.sqrt(height / len(used))).astype(np.complex64)  # zeros hold no noise
    margin = round(EDGE * height)
    places = np.arange(margin, height - margin)
    size = max(-(-FEWEST // int(lines.sum())), -(-len(places) // GROUPS))
    return list(_blocks(along, places, size))


def _blocks(along: Samples, places: NDArray[np.int_], size: int) -> Iterator[Samples]:
    for start in range(0, len(places) - size + 1, size):
        yield along[:, places[start : start + size]].reshape(len(along), -1)
