"""Coil sensitivities: smooth synthetic ones, or from the fully sampled centre of k-space.

ESPIRiT's idea (Uecker et al., 2014): every small block of multi-coil k-space lies in a space of
low dimension, which the calibration block reveals. Demanding that all blocks lie in it is a
convolution in k-space, hence a matrix H(r) at each pixel, and the sensitivities are the
eigenvector of H(r) with eigenvalue 1. Where no signal was, no eigenvalue comes near 1, and the
maps are cut to zero.

Maps are unique up to one phase per pixel. Here that phase is chosen such that the principal
virtual coil (the combination of coils with most energy in the calibration block) sees the
image without any phase of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.physics.fourier import centred_ifft2
from engine.spec.errors import RequestError

CALIBRATION = 24  # samples of the centre used at most, each way
SINGULAR_CUT = 0.02  # of the largest singular value: smaller ones are noise
NOISE_CUT = 1.2  # of the largest singular value that noise of known SD would have
EIGENVALUE_CUT = 0.9
OBJECT_CUT = 0.03  # low-resolution maps: share of the brightest pixel that still is object
MIN_LINES = 4  # fewer say nothing about sensitivities
LEAST_SEEN = 0.02  # of the image: fewer pixels than this are no object
ITERATIONS = 12
BLOCK_BYTES = 1 << 26


@dataclass(frozen=True)
class CoilMaps:
    """``maps`` complex64 ``[coils, H, W]`` with sum |S|^2 = 1 inside the object, 0 outside."""

    maps: Tensor
    method: str  # 'ESPIRiT-style' or 'low resolution'
    lines: int  # across the calibration block, where it is narrowest


def central_block(sampled: NDArray[np.bool_]) -> tuple[slice, slice]:
    """The fully measured rectangle around the zero frequency of ``(W,)`` or ``(H, W)``.

    Of a plane it is the one that gives most samples for calibration, so at most `CALIBRATION`
    rows to either side of the centre are looked at.
    """
    plane = np.atleast_2d(sampled)
    if len(plane) == 1:
        return slice(0, 1), _run_around_centre(plane[0])
    centre = len(plane) // 2
    best, found = (0, 0), (slice(centre, centre), slice(0, 0))
    for top in range(max(0, centre - CALIBRATION), centre + 1):
        complete = plane[top : centre + 1].all(axis=0)
        for bottom in range(centre + 1, min(len(plane), centre + CALIBRATION) + 1):
            complete = complete & plane[bottom - 1]
            columns = _run_around_centre(complete)
            height, width = bottom - top, columns.stop - columns.start
            if not width:
                break
            size = (min(height, CALIBRATION) * min(width, CALIBRATION), height * width)
            if size > best:
                best, found = size, (slice(top, bottom), columns)
    return found


def _run_around_centre(measured: NDArray[np.bool_]) -> slice:
    centre = len(measured) // 2
    if not measured[centre]:
        return slice(centre, centre)
    gaps = np.flatnonzero(~measured)
    before, after = gaps[gaps < centre], gaps[gaps > centre]
    return slice(
        int(before[-1]) + 1 if len(before) else 0, int(after[0]) if len(after) else len(measured)
    )


def estimate_maps(
    kspace: Tensor, sampled: NDArray[np.bool_], what: str = "The data", sigma: float = 0.0
) -> CoilMaps:
    """Sensitivities of one slice ``[coils, H, W]`` from the samples around its centre.

    ``what`` names the slice in the sentence that says why it cannot be done; ``sigma`` is the SD
    of the noise per component, so that noise is not taken for a sensitivity.
    """
    coils, height, width = kspace.shape
    rows, columns = central_block(sampled)
    if len(np.atleast_2d(sampled)) == 1:
        rows = slice(0, height)
    rows, columns = _limited(rows, height), _limited(columns, width)
    lines = min(columns.stop - columns.start, rows.stop - rows.start)
    if lines < MIN_LINES or rows.stop - rows.start < MIN_LINES:
        raise RequestError(
            f"{what} has {lines} fully sampled lines at the centre of k-space; coil sensitivities "
            f"need at least {MIN_LINES}: give maps (⟦maps⟧ FILE), or use one virtual coil "
            "(⟦coil_use⟧ combine)."
        )
    block = kspace[:, rows, columns].to(torch.complex128)
    if not bool(block.abs().amax() > 0):
        raise RequestError(f"{what} is zero at the centre of k-space.")
    low = _low_resolution(block, rows, columns, (height, width))
    maps, method, kernel = _over_rss(low), "low resolution", _kernel_size(coils)
    if min(block.shape[1:]) >= 2 * kernel:
        found = _eigenvectors(_pixel_convolution(block, kernel, sigma), low)
        # In calibration data that are little but noise no eigenvalue comes near 1 anywhere.
        if float((found != 0).any(dim=0).float().mean()) > LEAST_SEEN:
            maps, method = found, "ESPIRiT-style"
    return CoilMaps(_fix_phase(maps, principal_coil(block)), method, lines)


def principal_coil(block: Tensor) -> Tensor:
    """Weights ``[coils]`` of the virtual coil w^H y that holds most of the block's energy."""
    return principal_coils(block, 1)[:, 0]


def principal_coils(kspace: Tensor, count: int) -> Tensor:
    """``[coils, count]``: the orthonormal combinations of coils that hold most energy."""
    samples = kspace.flatten(1).to(torch.complex128)
    return torch.linalg.eigh(samples @ samples.mH).eigenvectors[:, -count:].flip(1)


def _limited(block: slice, n: int) -> slice:
    """At most `CALIBRATION` samples, about the centre as far as the block allows."""
    start = max(block.start, n // 2 - CALIBRATION // 2)
    stop = min(block.stop, start + CALIBRATION)
    return slice(max(block.start, min(start, stop - CALIBRATION)), stop)


def _kernel_size(coils: int) -> int:
    """Smaller for many coils: the matrix has coils * size^2 columns."""
    return 6 if coils <= 16 else (5 if coils <= 32 else 4)


def _low_resolution(block: Tensor, rows: slice, columns: slice, size: tuple[int, int]) -> Tensor:
    """Coil images of the block alone, under a Hann window against ringing."""
    window_rows = torch.from_numpy(_hann(rows, size[0]))
    window_columns = torch.from_numpy(_hann(columns, size[1]))
    padded = torch.zeros((len(block), *size), dtype=torch.complex64)
    padded[:, rows, columns] = (block * window_rows[:, None] * window_columns).to(torch.complex64)
    return centred_ifft2(padded)


def _hann(block: slice, n: int) -> NDArray[np.float64]:
    """Falls to zero just outside the block's farther edge, is 1 at the zero frequency."""
    k = np.arange(block.start, block.stop) - n // 2
    reach = max(-k[0], k[-1]) + 1
    return 0.5 * (1 + np.cos(np.pi * k / reach))


def _over_rss(low: Tensor) -> Tensor:
    rss = low.abs().square().sum(dim=0).sqrt()
    inside = rss > OBJECT_CUT * rss.amax()
    return torch.where(inside, low / rss.clamp_min(torch.finfo(rss.dtype).tiny), 0)


def _pixel_convolution(block: Tensor, kernel: int, sigma: float) -> Tensor:
    """h[c, d, a, b]: the projection of blocks as a convolution, lags -(k-1) .. k-1 both ways.

    With P the projector on the space of blocks, y_c(q) = sum_d sum_lag h_cd(lag) y_d(q + lag)
    where h_cd(lag) is the mean of P[(c, i), (d, i + lag)] over the block positions i.
    """
    coils = len(block)
    patches = block.unfold(1, kernel, 1).unfold(2, kernel, 1)  # [C, p, q, k, k]
    matrix = patches.permute(1, 2, 0, 3, 4).reshape(-1, coils * kernel * kernel)
    # Rows of `matrix` are patches, so their space is spanned by the eigenvectors of M^T conj(M).
    values, vectors = torch.linalg.eigh(matrix.T @ matrix.conj())
    # The largest singular value of a P x Q matrix of noise is its SD times sqrt P + sqrt Q.
    noise = 2 * sigma**2 * float(sum(n**0.5 for n in matrix.shape)) ** 2
    cut = max(SINGULAR_CUT**2 * float(values[-1]), NOISE_CUT**2 * noise)
    kept = vectors[:, values > min(cut, 0.5 * float(values[-1]))]
    basis = kept.T.reshape(-1, coils, kernel, kernel)
    # Correlation of the basis with itself, through a transform long enough not to wrap.
    size = 2 * kernel - 1
    spectrum = torch.fft.fft2(basis, s=(size, size))
    product = torch.einsum("ncab,ndab->cdab", spectrum.conj(), spectrum)
    lags = torch.fft.fftshift(torch.fft.ifft2(product), dim=(-2, -1))
    # sum_i v_c(i) conj(v_d(i + lag)) is the conjugate of the correlation just made.
    return lags.conj() / kernel**2


def _eigenvectors(gram: Tensor, start: Tensor) -> Tensor:
    """The dominant eigenvector of H(r) at every pixel, by power iteration from ``start``.

    H(r) = sum_lag h(lag) exp(-2 pi i lag . r / N); a few rows at a time, for H is large. The
    low-resolution coil images are close to the answer already.
    """
    coils, height, width = start.shape
    reach = gram.shape[-1] // 2
    lag = torch.arange(-reach, reach + 1, dtype=torch.float64)
    wave_rows = _waves(lag, height)
    wave_columns = _waves(lag, width)
    along_rows = torch.einsum("cdab,bw->acdw", gram, wave_columns).to(torch.complex64)
    maps = torch.zeros_like(start)
    step = max(1, BLOCK_BYTES // (8 * coils * coils * width))
    for first in range(0, height, step):
        rows = slice(first, min(first + step, height))
        wave = wave_rows[:, rows].to(torch.complex64)
        matrices = torch.einsum("ah,acdw->hwcd", wave, along_rows)
        maps[:, rows] = _power_iteration(matrices, start[:, rows].permute(1, 2, 0)).permute(2, 0, 1)
    return maps


def _waves(lag: Tensor, n: int) -> Tensor:
    position = torch.arange(n, dtype=torch.float64) - n // 2
    angle = -2 * torch.pi * lag[:, None] * position / n
    return torch.polar(torch.ones_like(angle), angle)


def _power_iteration(matrices: Tensor, start: Tensor) -> Tensor:
    """Unit eigenvectors ``[h, w, C]``; zero where the eigenvalue stays below the cut."""
    tiny = torch.finfo(torch.float32).tiny
    vectors = start[..., None]
    norm = torch.zeros(())
    for _ in range(ITERATIONS):
        vectors = vectors / vectors.abs().square().sum(dim=-2, keepdim=True).sqrt().clamp_min(tiny)
        vectors = matrices @ vectors
        norm = vectors.abs().square().sum(dim=-2, keepdim=True).sqrt()
    return torch.where(norm > EIGENVALUE_CUT, vectors / norm.clamp_min(tiny), 0)[..., 0]


def _fix_phase(maps: Tensor, weights: Tensor) -> Tensor:
    """Turn each pixel such that w^H S is real and positive."""
    seen = torch.einsum("c,chw->hw", weights.conj().to(maps.dtype), maps)
    return (maps * torch.exp(-1j * seen.angle())).to(torch.complex64)


def birdcage_maps(
    coils: int,
    height: int,
    width: int,
    *,
    relative_radius: float = 1.5,
    fine: int = 1,
    dtype: torch.dtype = torch.complex64,
) -> Tensor:
    """Sensitivities ``[coils, H, W]`` of loops on a ring, normalised to sum |S|^2 = 1.

    Each coil sits at an equal angle on a ring around the image, in units of half its side. Its
    strength falls with distance and its phase turns with the direction to the coil, as the
    transverse field of a loop does. ``fine`` parts every pixel into so many in both directions.
    """
    if coils < 1 or height < 1 or width < 1:
        raise RequestError(
            f"Coil maps need at least one coil and one pixel, not {coils} x {height} x {width}."
        )
    if not relative_radius > 1:
        # A coil inside the image would put a singularity on a pixel.
        raise RequestError(f"The coil ring must lie outside the image, not at {relative_radius}.")
    angle = 2 * math.pi * torch.arange(coils, dtype=torch.float64)[:, None, None] / coils
    y = _centred(height, fine)[None, :, None]
    x = _centred(width, fine)[None, None, :]
    # The corners of the square are at sqrt(2); the ring must clear them.
    radius = relative_radius * math.sqrt(2)
    dx = x - radius * torch.cos(angle)
    dy = y - radius * torch.sin(angle)
    maps = torch.polar(1 / torch.hypot(dx, dy), torch.atan2(dx, -dy))
    return (maps / maps.abs().square().sum(dim=0).sqrt()).to(dtype)


def _centred(n: int, fine: int) -> Tensor:
    places = (torch.arange(n * fine, dtype=torch.float64) + 0.5) / fine - 0.5
    return (places - (n - 1) / 2) / max((n - 1) / 2, 1)
