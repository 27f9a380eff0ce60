"""Our metric profiles against torchmetrics and scikit-image, to 1e-4."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine import metrics
from engine.metrics.ssim import ssim_per_image
from engine.physics.units import IntensityMap

HU = IntensityMap("hu", 900.0, -50.0)


def images(channels, size, batch=3, level=0.05):
    """Smooth shapes with some noise: a range of local means and variances."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.randn(batch, channels, 9, 9, generator=generator, dtype=torch.float64)
    truth = torch.nn.functional.interpolate(coarse, size=size, mode="bicubic")
    noise = torch.randn(truth.shape, generator=generator, dtype=torch.float64)
    return truth + level * noise, truth


@pytest.mark.parametrize("size", [(128, 128), (63, 70)])
@pytest.mark.parametrize("level", [0.005, 0.2])
def test_ct_profile_agrees_with_torchmetrics(size, level):
    functional = pytest.importorskip("torchmetrics.functional.image")
    prediction, truth = images(1, size, level=level)
    ours = metrics.evaluate("ct-dcpnpdp", prediction, truth, intensity=HU)
    x, y = (HU.to_physical(image).clamp(-800, 800) / 800 for image in (prediction, truth))
    data_range = float(y.max() - y.min())
    psnr = functional.peak_signal_noise_ratio(
        x, y, data_range=data_range, dim=(1, 2, 3), reduction="elementwise_mean"
    )
    ssim = functional.structural_similarity_index_measure(x, y, data_range=data_range)
    assert ours["psnr"] == pytest.approx(float(psnr), abs=1e-4)
    assert ours["ssim"] == pytest.approx(float(ssim), abs=1e-4)
    short = metrics.quick("ct-dcpnpdp", prediction, truth, intensity=HU)
    assert short["ssim"] == pytest.approx(float(ssim), abs=1e-4)


def magnitude(image):
    return np.abs(image[:, 0].numpy() + 1j * image[:, 1].numpy())


@pytest.mark.parametrize("size", [(320, 320), (61, 72)])
def test_fastmri_profile_agrees_with_scikit_image(size):
    skimage = pytest.importorskip("skimage.metrics")
    prediction, truth = images(2, size)
    ours = metrics.evaluate("fastmri", prediction, truth)
    x, y = magnitude(prediction), magnitude(truth)
    psnr = skimage.peak_signal_noise_ratio(y, x, data_range=y.max())
    ssim = np.mean(
        [skimage.structural_similarity(b, a, data_range=y.max()) for a, b in zip(x, y, strict=True)]
    )
    assert ours["psnr"] == pytest.approx(float(psnr), abs=1e-4)
    assert ours["ssim"] == pytest.approx(float(ssim), abs=1e-4)
    assert ours["nrmse"] == pytest.approx(
        float(skimage.normalized_root_mse(y, x, normalization="euclidean"))
    )


@pytest.mark.parametrize(("size", "factor"), [((320, 320), 1), ((512, 512), 2), ((61, 72), 1)])
def test_inversebench_profile_agrees_with_scikit_image_set_up_like_piq(size, factor):
    skimage = pytest.importorskip("skimage.metrics")
    measure = pytest.importorskip("skimage.measure")
    prediction, truth = images(2, size)
    ours = metrics.evaluate("mri-inversebench", prediction, truth)
    psnrs, ssims = [], []
    for x, y in zip(magnitude(prediction), magnitude(truth), strict=True):
        peak = y.max()
        clipped = np.clip(x, 0, peak)
        psnrs.append(-10 * np.log10(np.mean(((clipped - y) / peak) ** 2) + 1e-8))
        small = [measure.block_reduce(z, factor, np.mean) / peak for z in (clipped, y)]
        ssims.append(
            skimage.structural_similarity(
                *small,
                data_range=1.0,
                gaussian_weights=True,
                sigma=1.5,
                use_sample_covariance=False,
            )
        )
    assert ours["psnr"] == pytest.approx(np.mean(psnrs), abs=1e-4)
    assert ours["ssim"] == pytest.approx(np.mean(ssims), abs=1e-4)


def test_the_reflected_window_agrees_with_torchmetrics_on_every_slice():
    functional = pytest.importorskip("torchmetrics.functional.image")
    prediction, truth = images(1, (40, 31), level=0.3)
    theirs = functional.structural_similarity_index_measure(
        prediction, truth, data_range=3.0, reduction="none"
    )
    ours = ssim_per_image(prediction, truth, 3.0, reflect=True)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
