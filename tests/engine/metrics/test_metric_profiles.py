"""The named profiles: what each compares, in which range, and what it refuses."""

from __future__ import annotations

import json
import math
import time

import pytest
import torch

from engine import metrics
from engine.physics.masks import build_mask
from engine.physics.mri import SingleCoilMRI
from engine.physics.units import IntensityMap
from engine.spec.errors import DualscopeError, RequestError

HU = IntensityMap("hu", 1000.0, 24.0)
MR = IntensityMap("mr", 3.0)


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def ct_slices(*ranges_hu, size=32):
    """Normalised slices, each a ramp between two HU values."""
    ramp = torch.linspace(0, 1, size * size, dtype=torch.float64).reshape(1, 1, size, size)
    return HU.to_normalised(torch.cat([low + (high - low) * ramp for low, high in ranges_hu]))


def ct(prediction, reference, **kwargs):
    return metrics.evaluate("ct-dcpnpdp", prediction, reference, intensity=HU, **kwargs)


def test_each_profile_describes_itself_completely():
    for name, profile in metrics.PROFILES.items():
        record = json.loads(json.dumps(metrics.describe(name)))
        assert record == profile.describe()
        assert record["name"] == name
        for key in ("domain", "data_range", "clip", "crop", "reduction", "psnr", "ssim"):
            assert record[key]


def test_the_default_profile_follows_the_modality():
    assert metrics.default_profile("CT") == "ct-dcpnpdp"
    assert metrics.default_profile("MR") == "mri-inversebench"
    with pytest.raises(RequestError, match="modality"):
        metrics.default_profile("PET")


def test_ct_compares_hounsfield_units_over_the_800_window():
    reference = ct_slices((-900, 700))
    result = ct(reference + 16 / 1000, reference)
    # 16 HU off inside the window is 0.02 of a range of 2; outside nothing is seen to change.
    inside = ((HU.to_physical(reference) > -800).double().mean()).item()
    assert result["psnr"] == pytest.approx(40 - 10 * math.log10(inside), abs=0.05)
    assert result["hu_mae"] == pytest.approx(16)
    assert result["data_range"] == 2.0


def test_ct_mean_absolute_error_is_in_hounsfield_units_and_unclipped():
    reference = ct_slices((-1000, 3000))
    far = torch.where(HU.to_physical(reference) > 2000, reference + 0.5, reference)
    result = ct(far, reference)
    assert result["psnr"] == math.inf
    assert result["hu_mae"] == pytest.approx(125, rel=0.01)
    assert result["nrmse"] > 0


def test_ct_nrmse_is_relative_to_attenuation():
    reference = ct_slices((-1000, 1000))
    attenuation = HU.to_physical(reference) + 1000
    prediction = HU.to_normalised(1.1 * attenuation - 1000)
    assert ct(prediction, reference)["nrmse"] == pytest.approx(0.1)


def test_ct_range_is_the_stack_s_own_but_two_for_a_single_slice():
    reference = ct_slices((-400, 400), (-800, 0))
    assert ct(reference + 0.01, reference)["data_range"] == pytest.approx(1.5)
    assert ct(reference[:1] + 0.01, reference[:1])["data_range"] == 2.0
    given = ct(reference[:1] + 0.01, reference[:1], data_range=1.5)
    assert given["data_range"] == 1.5
    wider = ct(reference[:1] + 0.01, reference[:1])["psnr"]
    assert wider - given["psnr"] == pytest.approx(20 * math.log10(2 / 1.5))


def test_ct_leaves_slices_with_a_constant_reference_out():
    reference = ct_slices((-800, 800), (0, 0), (-1000, -900))
    prediction = reference + 0.016
    assert ct(prediction, reference)["psnr"] == ct(prediction[:1], reference[:1])["psnr"]


@pytest.mark.parametrize("name", ["mri-inversebench", "fastmri"])
def test_mr_compares_magnitudes_whatever_the_phase_and_the_scale(name):
    reference = noise(2, 2, 32, 33)
    prediction = reference + 0.1 * noise(2, 2, 32, 33, seed=1)
    result = metrics.evaluate(name, prediction, reference, intensity=MR)
    turned = torch.stack((-prediction[:, 1], prediction[:, 0]), dim=1)
    assert metrics.evaluate(name, turned, reference)["psnr"] == pytest.approx(result["psnr"])
    scaled = metrics.evaluate(name, 7 * prediction, 7 * reference)
    assert scaled["psnr"] == pytest.approx(result["psnr"])
    assert scaled["ssim"] == pytest.approx(result["ssim"])
    magnitude = reference.norm(dim=1, keepdim=True)
    assert metrics.evaluate(name, prediction, magnitude)["psnr"] == pytest.approx(result["psnr"])


def test_inversebench_takes_the_range_per_slice_and_clips_the_prediction_to_it():
    reference = torch.zeros(2, 1, 32, 32)
    reference[0, 0, 4, 4], reference[1, 0, 4, 4] = 1.0, 10.0
    prediction = reference.clone()
    prediction[:, 0, 4, 4] = 100.0
    clipped = metrics.evaluate("mri-inversebench", prediction, reference)
    assert clipped["psnr"] == pytest.approx(80.0)
    assert clipped["data_range"] == pytest.approx(5.5)
    # One pixel of 1024 off by a fifth of the peak in both slices.
    prediction[:, 0, 4, 4] = 0.8 * reference[:, 0, 4, 4]
    off = metrics.evaluate("mri-inversebench", prediction, reference)
    assert off["psnr"] == pytest.approx(-10 * math.log10(0.04 / 1024 + 1e-8))


def test_inversebench_leaves_empty_slices_out():
    reference = noise(2, 2, 32, 32)
    reference[1] = 0
    prediction = reference + 0.1
    both = metrics.evaluate("mri-inversebench", prediction, reference)
    assert both == metrics.evaluate("mri-inversebench", prediction[:1], reference[:1])


def test_fastmri_takes_the_range_over_the_volume_and_does_not_clip():
    reference = torch.zeros(2, 1, 32, 32)
    reference[0, 0, 4, 4], reference[1, 0, 4, 4] = 1.0, 10.0
    result = metrics.evaluate("fastmri", reference + 0.1, reference)
    assert result["data_range"] == pytest.approx(10)
    assert result["psnr"] == pytest.approx(40, abs=1e-4)
    assert result["nrmse"] == pytest.approx(0.1 * math.sqrt(2048 / 101), rel=1e-5)
    slice_ = metrics.evaluate("fastmri", reference[:1] + 0.1, reference[:1], data_range=10.0)
    assert slice_["psnr"] == pytest.approx(40, abs=1e-4)


@pytest.mark.parametrize("name", list(metrics.PROFILES))
def test_identical_images_are_perfect_and_every_value_is_a_float(name):
    channels, intensity = (1, HU) if name.startswith("ct") else (2, MR)
    x = 0.3 * noise(2, channels, 32, 32).float()
    result = metrics.evaluate(name, x, x, intensity=intensity)
    assert result["ssim"] == pytest.approx(1)
    assert result["nrmse"] == 0
    assert result["psnr"] == (pytest.approx(80) if name == "mri-inversebench" else math.inf)
    assert all(type(value) is float for value in result.values())


@pytest.mark.parametrize("name", list(metrics.PROFILES))
def test_the_quick_form_agrees_with_the_full_one(name):
    channels, intensity = (1, HU) if name.startswith("ct") else (2, MR)
    x = 0.3 * noise(3, channels, 48, 40)
    y = x + 0.03 * noise(3, channels, 48, 40, seed=1)
    full = metrics.evaluate(name, y, x, intensity=intensity)
    short = metrics.quick(name, y, x, intensity=intensity)
    assert set(short) == {"psnr", "ssim"}
    assert short["psnr"] == pytest.approx(full["psnr"], abs=1e-3)
    assert short["ssim"] == pytest.approx(full["ssim"], abs=1e-5)


@pytest.fixture
def one_thread():
    """Processor time is only a fair clock on a busy machine when no thread waits for another."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", list(metrics.PROFILES))
def test_the_quick_form_is_quick_enough_for_every_iteration(name, one_thread):
    channels, intensity = (1, HU) if name.startswith("ct") else (2, MR)
    x = 0.3 * noise(1, channels, 256, 256).float()
    metrics.quick(name, 1.01 * x, x, intensity=intensity)
    best = math.inf
    for _ in range(10):
        start = time.process_time()
        metrics.quick(name, 1.01 * x, x, intensity=intensity)
        best = min(best, time.process_time() - start)
    # About 5 ms; the bound is loose for slow machines.
    assert best < 0.05


GOOD = torch.linspace(0, 1, 32 * 32).reshape(1, 1, 32, 32)


@pytest.mark.parametrize("function", [metrics.evaluate, metrics.quick])
@pytest.mark.parametrize(
    ("profile", "prediction", "reference", "options", "says"),
    [
        ("psnr", GOOD, GOOD, {}, "Unknown metric profile"),
        ("ct-dcpnpdp", GOOD, GOOD, {}, "in HU"),
        ("ct-dcpnpdp", GOOD, GOOD, {"intensity": MR}, "in HU"),
        ("ct-dcpnpdp", GOOD.expand(1, 2, 32, 32), GOOD, {"intensity": HU}, "one channel"),
        ("ct-dcpnpdp", GOOD, 0 * GOOD, {"intensity": HU}, "blank"),
        ("mri-inversebench", GOOD, GOOD, {"intensity": HU}, "for MR images"),
        ("mri-inversebench", GOOD, 0 * GOOD, {}, "blank"),
        ("fastmri", GOOD, 0 * GOOD, {}, "blank"),
        ("fastmri", GOOD.expand(1, 3, 32, 32), GOOD, {}, "two for complex"),
        ("fastmri", GOOD, GOOD[..., 1:], {}, "sizes differ"),
        ("fastmri", GOOD[0], GOOD[0], {}, "sizes differ"),
        ("fastmri", GOOD, GOOD / 0, {}, "reference holds NaN"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    function, profile, prediction, reference, options, says
):
    with pytest.raises(RequestError, match=says):
        function(profile, prediction, reference, **options)


def test_a_range_that_makes_no_sense_is_refused():
    with pytest.raises(RequestError, match="positive"):
        metrics.evaluate("ct-dcpnpdp", GOOD, GOOD, HU, data_range=0.0)
    with pytest.raises(RequestError, match="per slice"):
        metrics.evaluate("mri-inversebench", GOOD, GOOD, data_range=1.0)


def test_an_image_of_nan_is_an_error_and_not_a_number():
    broken = GOOD.clone()
    broken[0, 0, 3, 3] = float("nan")
    with pytest.raises(DualscopeError, match="NaN"):
        metrics.quick("fastmri", broken, GOOD)


def test_relative_residual_is_zero_for_the_truth_and_one_for_nothing():
    operator = SingleCoilMRI(build_mask("fastmri", 32, 4), (32, 32))
    x = noise(2, 2, 32, 32)
    y = operator.forward(x)
    assert metrics.relative_residual(operator, x, y) == 0
    assert metrics.relative_residual(operator, 0 * x, y) == pytest.approx(1)
    assert metrics.relative_residual(operator, 1.25 * x, y) == pytest.approx(0.25)
    assert metrics.relative_residual(operator, x, 0 * y) == math.inf
    assert metrics.relative_residual(operator, 0 * x, 0 * y) == 0
