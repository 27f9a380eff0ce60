"""The noise of a measurement, from the measurement alone.

CT: fine differences between neighbouring rays hold noise and the object's own edges and grain. Of
these only the noise follows the law of counted photons, variance = exp(y) / I0 for a line integral
y, from the air beside the object to its thickest part. So the rays are sorted by y, each group
says how much noise its differences allow at most, and the group that allows least is believed.

MRI: the outermost samples of k-space hold hardly anything but noise. They are taken in shells,
from the centre outwards, and the shell of least power is believed: a scanner's filter or zeros
beyond the measured range leave nothing there, and such shells do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

Floats = NDArray[np.float32] | NDArray[np.float64]

GROUPS = 12  # of rays by their line integral
FEWEST = 200  # differences or samples in a group; the SD of fewer is itself uncertain by > 5 %
MEDIAN_OF_SQUARE = 0.4549  # of a standard normal number: the median of its square
# relative SD, times the root of their number, of a variance from that median: fourth differences
# of neighbours share most of their values
MEDIAN_SPREAD, AGREE = 3.6, 1.2
BINOMIAL = np.sqrt(70.0)  # norm of the fourth difference 1, -4, 6, -4, 1
SHELLS = 12  # of k-space, by distance from the centre
INNERMOST = 0.4  # of the distance to the edge: nearer samples are signal
FEWEST_BINS = 9
FEWEST_VIEWS = 45  # else the object itself changes too much from view to view
ZEROS = 0.05  # a group with more exact zeros than this was filled in, not measured


def photon_noise(y: Floats) -> float | None:
    """I0 of a sinogram ``[views, detectors]``; None when it is too small to tell.

    Differences along the detector are blind to noise that neighbouring bins share, those along
    the views are not but see more of the object: the larger of the two noises is taken.
    """
    found = [
        _variance_in_air(np.moveaxis(np.asarray(y, np.float64), axis, -1))
        for axis, fewest in ((1, FEWEST_BINS), (0, FEWEST_VIEWS))
        if y.shape[axis] >= fewest
    ]
    largest = max((variance for variance in found if variance is not None), default=0.0)
    return 1 / largest if largest > 0 else None


def _variance_in_air(y: Floats) -> float | None:
    """From differences along the last axis."""
    square = (np.diff(y, 4) / BINOMIAL).ravel() ** 2
    mean = uniform_filter1d(y, 5)[..., 2:-2].ravel()
    groups = min(GROUPS, square.size // FEWEST)
    allowed, sizes = [], []
    for group in np.array_split(np.argsort(mean), groups) if groups else ():
        here = square[group]
        if np.mean(here == 0) < ZEROS:
            allowed.append(np.median(here) / MEDIAN_OF_SQUARE * np.exp(-np.median(mean[group])))
            sizes.append(here.size)
    return _least_agreeing(np.sort(allowed), min(sizes)) if allowed else None


def _least_agreeing(ordered: NDArray[np.float64], size: int) -> float:
    """The mean of the lowest values that differ by no more than chance.

    The lowest of many estimates is too small by chance alone, the others hold the object's edges.
    """
    spread = MEDIAN_SPREAD / np.sqrt(size)
    count = min(2, ordered.size)
    while count < ordered.size and ordered[count] < ordered[:count].mean() * (1 + AGREE * spread):
        count += 1
    return float(ordered[:count].mean())


@dataclass(frozen=True)
class ThermalNoise:
    """``samples`` ``[coils, n]`` of k-space that are noise."""

    samples: NDArray[np.complex64]

    @property
    def sigma(self) -> float:
        """SD of the real and of the imaginary part, as the root of the mean over coils."""
        power = np.median(np.abs(self.samples) ** 2, axis=1) / np.log(2)
        return float(np.sqrt(power.mean() / 2))


def thermal_noise(kspace: NDArray[np.complex64], sampled: NDArray[np.bool_]) -> ThermalNoise | None:
    """From k-space ``[coils, H, W]`` and what of it was measured; None when it is too little."""
    height, width = kspace.shape[-2:]
    rows = np.abs(np.arange(height) - height // 2)[:, None] / max(1, height // 2)
    columns = np.abs(np.arange(width) - width // 2)[None, :] / max(1, width // 2)
    measured = np.broadcast_to(sampled, (height, width)) & (np.abs(kspace).sum(axis=0) > 0)
    distance = np.hypot(rows, columns)[measured]
    samples = kspace[:, measured]
    far = distance > INNERMOST * distance.max(initial=0)
    distance, samples = distance[far], samples[:, far]
    count = min(SHELLS, distance.size // FEWEST)
    if count == 0:
        return None
    shells = np.array_split(np.argsort(distance), count)
    power = [float(np.median(np.abs(samples[:, shell]) ** 2)) for shell in shells]
    return ThermalNoise(samples[:, shells[int(np.argmin(power))]])
