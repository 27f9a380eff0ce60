"""Making the noise of receive coils equal and independent, from a scan of noise alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# With fewer samples per coil the covariance itself is noise.
MIN_SAMPLES_PER_COIL = 10


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
    coils, count = noise.shape
    if count < MIN_SAMPLES_PER_COIL * coils or not np.isfinite(noise).all():
        return None
    samples = noise.astype(np.complex128)
    covariance = samples @ samples.conj().T / count
    values, vectors = np.linalg.eigh(covariance)
    if not values[0] > 1e-10 * values[-1] > 0:
        return None
    sd = float(np.exp(np.log(values).mean() / 2))
    matrix = sd * (vectors / np.sqrt(values)) @ vectors.conj().T
    # E|n|^2 = 2 sigma^2 for complex noise.
    return Prewhitening(matrix.astype(np.complex64), sd * float(np.sqrt(variance_ratio / 2)))
