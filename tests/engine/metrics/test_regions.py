"""Metrics inside the body: what the body is, and that they are those of its pixels alone."""

import math

import pytest
import torch

from engine import metrics
from engine.metrics.profiles import body_mask
from engine.metrics.ssim import psnr_of_volume, psnr_per_image, ssim_per_image
from engine.physics.units import IntensityMap

HU = IntensityMap("hu", 1000.0, 24.0)
MR = IntensityMap("mr")
SIZE = 128


def grid():
    line = torch.arange(SIZE, dtype=torch.float64) - (SIZE - 1) / 2
    return torch.meshgrid(line, line, indexing="ij")


def ellipse(rows, columns, down=0.0, right=0.0):
    y, x = grid()
    return ((y - down) / rows) ** 2 + ((x - right) / columns) ** 2 <= 1


def patient():
    """HU of a body with two lungs on a table that touches it, and its true outline."""
    y, x = grid()
    body = ellipse(38, 50, down=-8)
    hu = torch.full((SIZE, SIZE), -1000.0, dtype=torch.float64)
    hu[(y > 30) & (y <= 32) & (x.abs() < 60)] = 100.0  # a thin table, touching the back
    hu[(y > 30) & (y < 46) & (x.abs() > 58) & (x.abs() < 60)] = 100.0
    hu[body] = 40.0
    hu[ellipse(22, 14, down=-10, right=24) | ellipse(22, 14, down=-10, right=-24)] = -850.0
    return hu[None, None], body[None, None]


def brain(size=SIZE):
    image = torch.zeros(1, 2, size, size, dtype=torch.float64)
    head = ellipse(50, 40)
    image[0, 0][head] = 0.05  # the skull is dark
    image[0, 1][ellipse(44, 34)] = 0.8
    image[0, 0][ellipse(50, 40) & ~ellipse(48, 38)] = 1.0
    return image, head[None, None]


def overlap(a, b):
    return float((a & b).sum() / (a | b).sum())


def test_the_body_holds_the_lungs_but_not_the_table():
    hu, body = patient()
    found = body_mask(HU.to_normalised(hu), HU)
    assert found.shape == (1, 1, SIZE, SIZE)
    assert found.dtype == torch.bool
    assert overlap(found, body) > 0.97
    assert not found[..., 104:, :].any()  # the table's legs


def test_air_between_body_and_table_is_no_body():
    y, x = grid()
    hu, body = patient()
    wall = (y > 0) & (y < 32) & (x.abs() > 50) & (x.abs() < 52)  # the table's raised edges
    hu[0, 0][wall] = 100.0
    hu[0, 0][body[0, 0]] = 40.0
    assert overlap(body_mask(HU.to_normalised(hu), HU), body) > 0.97


def test_the_foreground_of_mr_holds_the_dark_skull():
    image, head = brain()
    assert overlap(body_mask(image, MR), head) > 0.97


def test_a_turned_body_has_the_turned_outline():
    hu, _ = patient()
    x = HU.to_normalised(hu)
    turned = body_mask(x.rot90(1, (-2, -1)), HU)
    assert torch.equal(turned, body_mask(x, HU).rot90(1, (-2, -1)))


def test_air_alone_has_no_body_and_no_metrics_of_one():
    air = HU.to_normalised(torch.full((1, 1, SIZE, SIZE), -1000.0))
    assert not body_mask(air, HU).any()
    speck = air.clone()
    speck[..., 3, 3] = 0.0
    found = metrics.evaluate("ct-dcpnpdp", speck, speck, HU)
    assert "psnr" in found
    assert not any(name.endswith("_body") for name in found)


def test_an_error_in_the_air_does_not_count_in_the_body():
    hu, body = patient()
    wrong = torch.where(body, hu, hu + 300)
    found = metrics.evaluate("ct-dcpnpdp", HU.to_normalised(wrong), HU.to_normalised(hu), HU)
    assert found["psnr"] < 26
    assert found["psnr_body"] > found["psnr"] + 10
    assert found["hu_mae_body"] < 5


def test_an_error_in_the_body_counts_as_it_is():
    hu, body = patient()
    wrong = torch.where(body, hu + 50, hu)
    found = metrics.evaluate("ct-dcpnpdp", HU.to_normalised(wrong), HU.to_normalised(hu), HU)
    assert found["hu_mae_body"] == pytest.approx(50, rel=0.02)
    assert found["hu_mae"] < 25
    soft = hu[body] > -800  # lungs lie outside the metric's window
    share = float(soft.double().mean())
    expected = -10 * math.log10(share * (50 / 1600) ** 2)
    assert found["psnr_body"] == pytest.approx(expected, abs=0.1)


def test_identical_images_are_infinitely_good_in_the_body_too():
    x = HU.to_normalised(patient()[0])
    found = metrics.evaluate("ct-dcpnpdp", x, x, HU)
    assert found["psnr_body"] == math.inf
    assert found["ssim_body"] == pytest.approx(1)
    assert found["hu_mae_body"] == 0


@pytest.mark.parametrize("profile", ["mri-inversebench", "fastmri"])
def test_profiles_of_mr_have_a_body_and_a_field_of_view(profile):
    image, head = brain()
    wrong = image + 0.1 * ~head  # outside the head alone
    seen = ellipse(30, 30)[None, None]
    found = metrics.evaluate(profile, wrong, image, support=seen)
    assert found["psnr_body"] > found["psnr"] + 5
    assert found["psnr_fov"] > 79
    assert found["ssim_fov"] == pytest.approx(1)
    assert "hu_mae_body" not in found


def test_a_body_counts_only_where_the_scan_sees_it():
    hu, _ = patient()
    left = torch.zeros(1, 1, SIZE, SIZE, dtype=torch.bool)
    left[..., :64] = True
    wrong = hu.clone()
    wrong[..., 70:] += 200
    x, y = HU.to_normalised(wrong), HU.to_normalised(hu)
    assert metrics.evaluate("ct-dcpnpdp", x, y, HU, support=left)["psnr_body"] == math.inf


def test_where_everything_counts_the_metrics_are_the_plain_ones():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand((2, 2, 1, 40, 40), generator=generator, dtype=torch.float64)
    everywhere = torch.ones_like(x, dtype=torch.bool)
    for reflect in (False, True):
        whole = ssim_per_image(x, y, 1.0, reflect=reflect)
        torch.testing.assert_close(
            ssim_per_image(x, y, 1.0, reflect=reflect, where=everywhere), whole
        )
    torch.testing.assert_close(
        psnr_per_image(x, y, 1.0, where=everywhere), psnr_per_image(x, y, 1.0)
    )
    assert psnr_of_volume(x, y, 1.0, where=everywhere) == psnr_of_volume(x, y, 1.0)
