"""PSNR and SSIM on images whose answer is known in closed form."""

from __future__ import annotations

import math

import pytest
import torch

from engine.metrics.ssim import pool_to_256, psnr_of_volume, psnr_per_image, ssim_per_image
from engine.spec.errors import RequestError

WINDOWS = [
    {"reflect": True},
    {"reflect": False},
    {"window": "uniform", "sample_covariance": True},
]


def images(seed=0, batch=2, size=(33, 40)):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(batch, 1, *size, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("error", "data_range", "db"), [(0.1, 1, 20), (0.02, 2, 40), (1, 1000, 60)]
)
def test_a_constant_error_gives_the_textbook_psnr(error, data_range, db):
    x = images()
    assert psnr_per_image(x + error, x, data_range).tolist() == pytest.approx([db, db])
    assert float(psnr_of_volume(x + error, x, data_range)) == pytest.approx(db)


def test_psnr_of_identical_images_is_infinite_unless_capped():
    x = images()
    assert psnr_per_image(x, x, 1.0).tolist() == [math.inf, math.inf]
    assert psnr_per_image(x, x, 1.0, epsilon=1e-8).tolist() == pytest.approx([80.0, 80.0])


def test_each_image_may_have_its_own_range():
    x = images()
    both = psnr_per_image(x + 0.1, x, torch.tensor([1.0, 10.0]))
    assert both.tolist() == pytest.approx([20.0, 40.0])
    similarity = ssim_per_image(x + 0.1 * images(1), x, torch.tensor([1.0, 10.0]))
    alone = ssim_per_image((x + 0.1 * images(1))[1:], x[1:], 10.0)
    torch.testing.assert_close(similarity[1:], alone)


def test_the_volume_psnr_averages_errors_not_decibels():
    x = images()
    y = x + torch.tensor([0.1, 0.3], dtype=torch.float64).reshape(2, 1, 1, 1)
    assert float(psnr_of_volume(y, x, 1.0)) == pytest.approx(-10 * math.log10(0.05))


@pytest.mark.parametrize("options", WINDOWS)
def test_ssim_of_identical_images_is_one(options):
    x = images()
    torch.testing.assert_close(ssim_per_image(x, x, 1.0, **options), torch.ones(2).double())
    flat = torch.full_like(x, 0.3)
    torch.testing.assert_close(ssim_per_image(flat, flat, 1.0, **options), torch.ones(2).double())


@pytest.mark.parametrize("options", WINDOWS)
def test_ssim_of_two_flat_images_is_the_luminance_term(options):
    a, b = torch.full((1, 1, 20, 20), 0.2).double(), torch.full((1, 1, 20, 20), 0.6).double()
    expected = (2 * 0.2 * 0.6 + 1e-4) / (0.2**2 + 0.6**2 + 1e-4)
    assert float(ssim_per_image(a, b, 1.0, **options)) == pytest.approx(expected)


@pytest.mark.parametrize("options", WINDOWS)
def test_ssim_is_symmetric_and_free_of_the_unit(options):
    x, y = images(0), images(1)
    one = ssim_per_image(x, y, 1.0, **options)
    torch.testing.assert_close(one, ssim_per_image(y, x, 1.0, **options))
    torch.testing.assert_close(one, ssim_per_image(800 * x, 800 * y, 800.0, **options))
    assert (one < 0.3).all()


@pytest.mark.parametrize("options", WINDOWS)
def test_single_precision_is_good_to_five_digits(options):
    x = images(size=(64, 64))
    y = x + 0.02 * images(1, size=(64, 64))
    low = ssim_per_image(x.float(), y.float(), 1.0, **options).double()
    torch.testing.assert_close(low, ssim_per_image(x, y, 1.0, **options), rtol=0, atol=1e-5)


def test_images_smaller_than_the_window_are_refused():
    x = images(size=(10, 40))
    with pytest.raises(RequestError, match="11-pixel window"):
        ssim_per_image(x, x, 1.0)


@pytest.mark.parametrize(("size", "pooled"), [(320, 320), (383, 383), (512, 256), (640, 320)])
def test_large_images_are_averaged_down_as_piq_does(size, pooled):
    # 640 / 256 = 2.5 rounds to the even 2.
    assert pool_to_256(torch.ones(1, 1, size, size + 8)).shape[-2] == pooled
