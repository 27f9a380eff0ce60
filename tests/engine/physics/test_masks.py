"""Sampling masks hold the lines their rules promise, and refuse what cannot be."""

from __future__ import annotations

import json

import numpy as np
import pytest

from engine.physics.masks import MASK_NAMES, SamplingMask, build_mask, given
from engine.spec.errors import RequestError

RULES = [name for name in MASK_NAMES if name != "given"]


@pytest.mark.parametrize(
    ("acceleration", "lines", "true"), [(4, 99, 3.23), (6, 76, 4.21), (8, 52, 6.15), (10, 44, 7.27)]
)
def test_fastmri_line_counts_at_320(acceleration, lines, true):
    mask = build_mask("fastmri", 320, acceleration)
    assert mask.sampled.sum() == lines
    assert mask.true_acceleration == pytest.approx(true, abs=0.005)


@pytest.mark.parametrize(
    ("acceleration", "lines", "acs", "true"),
    [(4, 99, 25, 3.23), (6, 75, 25, 4.27), (8, 51, 12, 6.27), (10, 43, 12, 7.44)],
)
def test_inversebench_line_counts_at_320(acceleration, lines, acs, true):
    mask = build_mask("inversebench", 320, acceleration)
    assert mask.sampled.sum() == lines
    assert mask.acs_lines == acs
    assert mask.true_acceleration == pytest.approx(true, abs=0.005)
    assert mask.sampled[(320 - acs) // 2 : (320 + acs) // 2].all()


def test_inversebench_spacing_is_broken_across_the_calibration_block():
    mask = build_mask("inversebench", 320, 6)
    right = np.flatnonzero(mask.sampled)
    right = right[right >= 172]
    # 147 lines precede the block; the remaining list resumes mid-stride (147 = 24 * 6 + 3).
    assert right[0] == 172 + 3
    assert set(np.diff(right)) == {6}


def test_pure_equispaced_is_exactly_every_rth_line():
    mask = build_mask("equispaced", 320, 8, offset=3)
    assert np.array_equal(np.flatnonzero(mask.sampled), np.arange(3, 320, 8))
    assert mask.acs_lines == 0
    assert mask.true_acceleration == 8


def test_fraction_variant_keeps_the_requested_acceleration():
    for acceleration in (4, 6, 8, 10):
        mask = build_mask("fastmri-fraction", 320, acceleration)
        assert mask.true_acceleration == pytest.approx(acceleration, rel=0.06)


def test_random_mask_spends_exactly_its_budget_and_repeats_with_its_seed():
    mask = build_mask("random", 320, 6, seed=3)
    assert mask.sampled.sum() == 320 // 6
    assert mask.sampled[147:172].all()
    assert mask == build_mask("random", 320, 6, seed=3)
    assert mask != build_mask("random", 320, 6, seed=4)


def test_random_mask_does_not_touch_the_global_generator():
    np.random.seed(1)  # noqa: NPY002 - the point is the legacy global state
    expected = np.random.rand()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    build_mask("random", 320, 6, seed=3)
    assert np.random.rand() == expected  # noqa: NPY002


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("n", [320, 321])
def test_acs_lines_override_every_rule_and_contain_the_zero_frequency(name, n):
    mask = build_mask(name, n, 6, acs_lines=31)
    assert mask.acs_lines == 31
    block = np.flatnonzero(mask.sampled)
    start = next(s for s in block if mask.sampled[s : s + 31].all() and s <= n // 2 < s + 31)
    assert abs(start + 15 - n // 2) <= 1


@pytest.mark.parametrize("name", RULES)
def test_no_acceleration_means_every_line(name):
    mask = build_mask(name, 33, 1)
    assert mask.sampled.all()
    assert mask.true_acceleration == 1


@pytest.mark.parametrize("name", RULES)
def test_a_mask_survives_its_json_record(name):
    mask = build_mask(name, 321, 5, seed=2)
    record = json.loads(json.dumps(mask.to_dict()))
    again = SamplingMask.from_dict(record)
    assert again == mask
    assert np.array_equal(again.sampled, mask.sampled)
    assert len(json.dumps(record)) < 700


def test_a_two_dimensional_mask_survives_its_record_compactly():
    rng = np.random.default_rng(0)
    mask = given(rng.random((64, 63)) < 0.3)
    record = json.loads(json.dumps(mask.to_dict()))
    assert np.array_equal(SamplingMask.from_dict(record).sampled, mask.sampled)
    assert len(record["packed"]) < 64 * 63 / 5


def test_lines_are_recorded_readably():
    assert given([1, 0, 1, 1, 1, 0, 0, 1]).to_dict()["lines"] == "0,2-4,7"


def test_a_given_mask_reports_its_measured_acceleration_and_calibration_block():
    source = build_mask("fastmri", 320, 8)
    mask = build_mask("given", 320, 8, array=source.sampled.astype(np.float32))
    assert mask.acceleration == mask.true_acceleration == source.true_acceleration
    assert mask.acs_lines == source.acs_lines


def test_masks_are_immutable():
    mask = build_mask("fastmri", 32, 4)
    with pytest.raises(ValueError, match="read-only"):
        mask.sampled[0] = False


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"name": "fastmri", "n": 320, "acceleration": 0.5}, "1 or more"),
        ({"name": "fastmri", "n": 320, "acceleration": float("nan")}, "1 or more"),
        ({"name": "equispaced", "n": 16, "acceleration": 17}, "leaves no line"),
        ({"name": "fastmri", "n": 320, "acceleration": 4, "acs_lines": 321}, "more than"),
        ({"name": "fastmri", "n": 320, "acceleration": 4, "acs_lines": -1}, "negative"),
        ({"name": "fastmri", "n": 320, "acceleration": 4, "offset": 4}, "offset"),
        ({"name": "random", "n": 320, "acceleration": 40}, "fewer than"),
        ({"name": "random", "n": 320, "acceleration": 4, "seed": -1}, "seed"),
        ({"name": "fastmri-fraction", "n": 320, "acceleration": 4, "acs_lines": 80}, "exceeds"),
        ({"name": "inversebench", "n": 0, "acceleration": 4}, "at least one line"),
        ({"name": "spiral", "n": 320, "acceleration": 4}, "Unknown mask"),
        ({"name": "given", "n": 320, "acceleration": 4}, "needs the array"),
        ({"name": "given", "n": 4, "acceleration": 4, "array": [0, 1, 1]}, "3 lines"),
        ({"name": "given", "n": 3, "acceleration": 4, "array": [0, 0.5, 1]}, "0 and 1"),
        ({"name": "given", "n": 3, "acceleration": 4, "array": [0, 0, 0]}, "no k-space line"),
        ({"name": "given", "n": 3, "acceleration": 4, "array": np.ones((1, 2, 3))}, "two axes"),
    ],
)
def test_impossible_requests_are_refused_in_one_sentence(request_, says):
    with pytest.raises(RequestError, match=says) as caught:
        build_mask(**request_)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"lines": "0-400"},
        {"lines": "a"},
        {"lines": "5-3"},
        {"shape": [10**6, 10**6]},
        {"shape": [32, 32], "packed": "not base64!"},
        {"shape": [32, 32], "packed": "eJwDAAAAAAE="},
        {"shape": []},
        {"acceleration": None},
    ],
)
def test_a_damaged_record_is_refused(change):
    record = {**build_mask("fastmri", 320, 4).to_dict(), **change}
    with pytest.raises(RequestError, match="cannot be read"):
        SamplingMask.from_dict(record)
