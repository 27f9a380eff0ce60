"""The noise of line integrals, from the measurement alone.

Fine differences between neighbouring rays hold noise and the object's own edges and grain. Of
these only the noise follows the law of counted photons, variance = exp(y) / I0 for a line integral
y, from the air beside the object to its thickest part. So the rays are sorted by y, each group
says how much noise its differences allow at most, and the group that allows least is believed.

Where flat and dark frames were taken several times, they tell it without the object (photon
transfer, Janesick 2007): a pixel's variance over the frames is gain^2 photons + electronic^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter, uniform_filter1d

Floats = NDArray[np.float32] | NDArray[np.float64]

GROUPS = 12  # of rays by their line integral
FEWEST = 200  # differences or samples in a group; the SD of fewer is itself uncertain by > 5 %
MEDIAN_OF_SQUARE = 0.4549  # of a standard normal number: the median of its square
# relative SD, times the root of their number, of a variance from that median: fourth differences
# of neighbours share most of their values
MEDIAN_SPREAD, AGREE = 3.6, 1.2
BINOMIAL = np.sqrt(70.0)  # norm of the fourth difference 1, -4, 6, -4, 1
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


SMOOTH = 31  # bins: what changes over more than these from frame to frame is the beam
STRAY = 20.0  # times the usual variance for its brightness: not noise (a bad pixel, a zinger)


@dataclass(frozen=True)
class Detector:
    """What a detector makes of photons: ``gain`` counts of each, and noise of its own, in counts.

    ``light`` is the mean of the flat frames above the dark ones, by bin.
    """

    gain: float
    electronic: float
    light: NDArray[np.float64]

    @property
    def photons(self) -> NDArray[np.float64]:
        """Per ray in air, by bin; zero where the bin is dead."""
        return np.clip(np.nan_to_num(self.light), 0, None) / self.gain


def photon_transfer(flats: NDArray, darks: NDArray | None) -> Detector | None:
    """From frames ``[n, bins]``; None when they are too few or do not differ.

    Differences of one frame and the next hold neither the pattern of the detector nor, with the
    beam's brightness evened out, its fluctuations. Electronic noise is that of the dark frames;
    without several of them none is assumed.
    """
    flat = np.asarray(flats, np.float64)
    if flat.ndim != 2 or (len(flat) - 1) * flat.shape[1] < FEWEST:
        return None
    dark = np.zeros((1, flat.shape[1])) if darks is None else np.asarray(darks, np.float64)
    above = flat - dark.mean(0)
    light = above.mean(0)
    lit = light > 0
    if not lit.any():
        return None
    level = np.median(above[:, lit] / light[lit], axis=1, keepdims=True)
    if not (level > 0).all():
        return None
    variance = _over_frames(above / level)
    own = _over_frames(dark) if len(dark) > 1 else np.zeros_like(variance)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = variance / light
        usual = np.isfinite(ratio) & (light > 0) & np.isfinite(own)
        usual &= ratio <= STRAY * np.median(ratio[usual]) if usual.any() else usual
    if usual.sum() * (len(flat) - 1) < FEWEST:
        return None
    electronic = float(own[usual].mean())
    gain = float((variance[usual] - own[usual]).sum() / light[usual].sum())
    return Detector(gain, float(np.sqrt(electronic)), light) if gain > 0 else None


def _over_frames(frames: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance of each bin from pairs of frames, without what changes smoothly along the bins."""
    pairs = np.diff(frames, axis=0)
    left = 1.0
    if pairs.shape[1] > 2 * SMOOTH:
        pairs = pairs - median_filter(np.nan_to_num(pairs), (1, SMOOTH), mode="mirror")
        left = 1 - (2 - np.pi / 2) / SMOOTH  # of the variance: 1 + var(median) - 2 cov
    return np.asarray((pairs**2).mean(0) / (2 * left))
