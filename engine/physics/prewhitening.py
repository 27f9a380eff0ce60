"""Making the noise of receive coils equal and independent, from samples of noise alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# With fewer samples per coil the covariance itself is noise.
MIN_SAMPLES_PER_COIL = 10
UNEQUAL = 1.5  # ratio of noise SDs that is worth a correction


@dataclass(frozen=True)
class Prewhitening:
    """``matrix @ y`` has noise of one SD in every coil, real and imaginary part each.

    The matrix has determinant 1 in size, so the data keep their scale.
    """

    matrix: NDArray[np.complex64]
    sigma: float

    def apply(self, kspace: NDArray[np.complex64]) -> NDArray[np.complex64]:
        """``kspace`` is ``[coils, ...]``."""
        flat = self.matrix @ kspace.reshape(len(kspace), -1)
        return flat.reshape(kspace.shape).astype(np.complex64)


def prewhitening(noise: NDArray[np.complex64], variance_ratio: float = 1.0) -> Prewhitening | None:
    """From noise samples ``[coils, n]``; None when they cannot tell.

    ``variance_ratio`` is the noise variance of the imaging data over that of these samples:
    the dwell time of the noise scan over that of the imaging scan, for the variance is
    proportional to the bandwidth.
    """
    samples = noise.astype(np.complex128)
    if not np.isfinite(noise).all():
        return None
    count = max(1, noise.shape[1])
    return whitening_of(samples @ samples.conj().T / count, noise.shape[1], variance_ratio)


def whitening_of(
    covariance: NDArray[np.complex128], count: int, variance_ratio: float = 1.0
) -> Prewhitening | None:
    """From the covariance E n n^H of the coils, estimated from ``count`` samples."""
    if count < MIN_SAMPLES_PER_COIL * len(covariance):
        return None
    values, vectors = np.linalg.eigh(covariance)
    if not values[0] > 1e-10 * values[-1] > 0:
        return None
    sd = float(np.exp(np.log(values).mean() / 2))
    matrix = sd * (vectors / np.sqrt(values)) @ vectors.conj().T
    # E|n|^2 = 2 sigma^2 for complex noise.
    return Prewhitening(matrix.astype(np.complex64), sd * float(np.sqrt(variance_ratio / 2)))


def is_white(covariance: NDArray[np.complex128], count: int) -> bool:
    """Whether the coils differ no more than ``count`` samples of equal coils would.

    The eigenvalues of the covariance of white noise lie between (1 -+ sqrt(coils / count))^2.
    """
    values = np.linalg.eigvalsh(covariance)
    share = float(np.sqrt(len(values) / max(count, len(values) + 1)))
    chance = ((1 + share) / (1 - share)) ** 2
    return bool(values[-1] <= UNEQUAL**2 * chance * values[0])


def correlation_spread(covariance: NDArray[np.complex128]) -> float:
    """Largest over smallest SD of a combination of coils, each coil scaled to the same SD."""
    sd = np.sqrt(np.maximum(np.diag(covariance).real, 1e-300))
    values = np.linalg.eigvalsh(covariance / np.outer(sd, sd))
    return float(np.sqrt(values[-1] / max(float(values[0]), 1e-12)))
