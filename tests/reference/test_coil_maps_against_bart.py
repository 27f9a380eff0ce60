"""Our coil maps beside those of BART's ecalib, on the same calibration data."""

import shutil
import subprocess

import numpy as np
import pytest
import torch
from kspace_files import fft2, write_cfl

from engine.data.readers.kspace.bart import open_pair
from engine.physics.masks import build_mask
from engine.physics.phantoms import brain_mr
from engine.physics.sensitivity import birdcage_maps, estimate_maps

BART = shutil.which("bart")
pytestmark = pytest.mark.skipif(BART is None, reason="BART is not installed")
SIZE, SNR = 96, 40


def plane():
    sampled = np.random.default_rng(1).random((SIZE, SIZE)) < 0.2
    sampled[36:60, 36:60] = True
    return sampled


@pytest.mark.parametrize("sampled", [build_mask("fastmri", SIZE, 3, acs_lines=24).sampled, plane()])
def test_our_maps_leave_no_more_unexplained_than_those_of_bart(tmp_path, sampled):
    image = brain_mr(seed=3, size=SIZE).image
    coil_images = birdcage_maps(8, SIZE, SIZE).numpy() * image
    sd = float(np.quantile(np.abs(image), 0.99)) / SNR
    parts = np.random.default_rng(0).standard_normal((2, *coil_images.shape))
    noisy = fft2(coil_images) + sd * (parts[0] + 1j * parts[1])
    kspace = (noisy * sampled).astype(np.complex64)
    path = write_cfl(tmp_path / "scan", kspace.transpose(1, 2, 0)[None])
    command = [BART, "ecalib", "-m1", str(path.with_suffix("")), str(tmp_path / "maps")]
    subprocess.run(command, check=True, capture_output=True)
    theirs = open_pair(tmp_path / "maps.cfl").reshape(SIZE, SIZE, 8, order="F").transpose(2, 0, 1)
    ours = estimate_maps(torch.from_numpy(kspace), sampled, sigma=sd).maps.numpy()
    inside = np.abs(image) > 0.05 * np.abs(image).max()

    def unexplained(maps):
        power = np.square(np.abs(maps)).sum(axis=0)
        unit = maps / np.sqrt(np.maximum(power, 1e-12))
        left = coil_images - unit * (unit.conj() * coil_images).sum(axis=0)
        return np.linalg.norm(left[:, inside]) / np.linalg.norm(coil_images[:, inside])

    assert unexplained(ours) < 0.03
    assert unexplained(ours) < 1.1 * unexplained(theirs)
