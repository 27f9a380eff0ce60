"""The MRI operators against numpy, written the way fastMRI and SENSE papers write them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.physics.fourier import fft2c, ifft2c, to_channels, to_complex
from engine.physics.masks import build_mask
from engine.physics.mri import MultiCoilMRI, SingleCoilMRI
from engine.physics.sensitivity import birdcage_maps

SIZES = [(32, 32), (31, 33), (20, 27)]


def centred(transform, z):
    shifted = np.fft.ifftshift(z, axes=(-2, -1))
    return np.fft.fftshift(transform(shifted, norm="ortho"), axes=(-2, -1))


def complex_noise(*shape):
    rng = np.random.default_rng(0)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.mark.parametrize("size", SIZES)
def test_the_fourier_pair_agrees_with_numpy(size):
    z = complex_noise(2, 1, *size)
    x = to_channels(torch.from_numpy(z))
    np.testing.assert_allclose(to_complex(fft2c(x)).numpy(), centred(np.fft.fft2, z), atol=1e-12)
    np.testing.assert_allclose(to_complex(ifft2c(x)).numpy(), centred(np.fft.ifft2, z), atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_the_transform_is_the_textbook_sum(size):
    # exp(-2 pi i (u - H//2)(r - H//2) / H), written out as matrices: no shift conventions left.
    z = complex_noise(1, 1, *size)
    matrices = []
    for n in size:
        index = np.arange(n) - n // 2
        matrices.append(np.exp(-2j * np.pi * np.outer(index, index) / n) / np.sqrt(n))
    expected = matrices[0] @ z @ matrices[1].T
    ours = to_complex(fft2c(to_channels(torch.from_numpy(z)))).numpy()
    np.testing.assert_allclose(ours, expected, atol=1e-11)


@pytest.mark.parametrize("size", SIZES)
def test_both_operators_agree_with_numpy(size):
    z = complex_noise(2, 1, *size)
    x = to_channels(torch.from_numpy(z))
    mask = build_mask("fastmri", size[1], 4)
    single = SingleCoilMRI(mask, size).forward(x)
    np.testing.assert_allclose(
        to_complex(single).numpy(), mask.sampled * centred(np.fft.fft2, z), atol=1e-12
    )
    maps = birdcage_maps(5, *size, dtype=torch.complex128)
    multi = MultiCoilMRI(mask, maps).forward(x)
    expected = mask.sampled * centred(np.fft.fft2, maps.numpy() * z)
    np.testing.assert_allclose(to_complex(multi).numpy(), expected, atol=1e-12)
