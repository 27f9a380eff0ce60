"""Stripes, bad pixels and beam hardening are taken out, and nothing else with them."""

import numpy as np
import pytest
import sinogram_files as files

from engine.data.sinogram.detector_repair import Repair, fill_in, find_bad, without_rings
from engine.data.source import open_input
from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

HU = IntensityMap("hu", 1000.0, 0.0)
NOISE = 0.01
SCAN = files.scan("parallel", 120, 180.0, detectors=160, offset_bins=0.0)
SCAN = type(SCAN).from_dict(SCAN.to_dict() | {"pitch_mm": 0.5})
CLEAN = files.sinogram(SCAN)


def noisy(seed=0):
    noise = np.random.default_rng(seed).normal(0, NOISE, CLEAN.shape)
    return (CLEAN + noise).astype(np.float32)


def opened(folder, values, told=None, **options):
    np.save(folder / "scan.npy", values)
    files.sidecar(folder / "scan.json", **files.told(SCAN, **(told or {})))
    return open_input(str(folder / "scan.npy"), InputOptions(**options))


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def test_a_good_detector_has_no_bad_pixels():
    for seed in range(5):
        assert find_bad(noisy(seed)).sum() <= 2  # of 19200


def test_stuck_and_hot_pixels_are_found_and_filled_in():
    values, random = noisy(), np.random.default_rng(1)
    spoiled = np.zeros(values.shape, bool)
    spoiled[:, [30, 31, 100]] = True
    spoiled[20:50, 80] = True
    for view, bin_ in zip(random.integers(0, 120, 15), random.integers(5, 25, 15), strict=True):
        spoiled[view, bin_] = True
    values[spoiled] = 5.0
    found = find_bad(values)
    assert found[spoiled].all()
    assert (found & ~spoiled).sum() <= 5
    assert rms((fill_in(values, found) - CLEAN)[spoiled]) < 3 * NOISE


def test_a_thin_wire_is_no_bad_pixel():
    values = noisy()
    middle, radius = 79.5, 60.0
    for view, angle in enumerate(SCAN.angles_rad):
        values[view, round(middle + radius * np.cos(angle))] += 1.0
    assert find_bad(values).mean() < 2e-3


def test_bad_values_have_no_weight_and_nan_among_them_is_mended(tmp_path):
    values = noisy()
    values[30:90, 60] = 7.0
    values[5, 20] = np.nan
    dataset = opened(tmp_path, values, scan_bad_pixels=True)
    assert rms(dataset.read(0) - CLEAN) < 1.2 * NOISE
    problem = dataset.problem([0], {}, HU, 0)
    weights = problem.weights[0, 0].numpy()
    assert (weights[30:90, 60] == 0).all()
    assert weights[5, 20] == 0
    assert (weights[:, 61] > 0).all()
    thinned = dataset.problem([0], {"views": 60}, HU, 0)
    assert thinned.weights.shape == thinned.measurement.shape
    assert (thinned.weights[0, 0, 16:44, 60] == 0).all()


def test_named_bins_are_left_out_as_they_are_counted_in_the_file(tmp_path):
    values = noisy()
    values[:, 12] = 3.0
    dataset = opened(tmp_path, values, {"bad_bins": [12], "scan_flip": True})
    weights = dataset.problem([0], {}, HU, 0).weights[0, 0].numpy()
    assert (weights[:, 160 - 1 - 12] == 0).all()
    assert (weights == 0).sum() == len(values)
    with pytest.raises(RequestError, match="beyond 159"):
        opened(tmp_path, values, {"bad_bins": [160]})


def test_stripes_are_removed_and_the_object_stays(tmp_path):
    """Every tenth bin reads 3 to 8 % of a line integral too much, in all views."""
    stripes = np.zeros(160, np.float32)
    stripes[5::10] = np.random.default_rng(3).uniform(0.03, 0.08, 16)
    clean = opened(tmp_path, noisy()).preview(0)
    values = noisy() + stripes
    plain = opened(tmp_path, values)
    corrected = opened(tmp_path, values, scan_rings=9)
    left = corrected.read(0) - CLEAN
    assert rms(left.mean(axis=0)) < 0.5 * rms((plain.read(0) - CLEAN).mean(axis=0))
    assert rms(left) < 0.7 * rms(plain.read(0) - CLEAN)
    assert rms(corrected.preview(0) - clean) < 0.6 * rms(plain.preview(0) - clean)


def test_ring_removal_of_a_smooth_scan_changes_little():
    assert rms(without_rings(CLEAN, 9) - CLEAN) < 0.02 * rms(CLEAN)


def test_the_beam_hardening_polynomial_straightens_what_hardening_bent(tmp_path):
    """Measured q with p = 1.1 q + 0.05 q^2: the roots of a quadratic."""
    bent = (-1.1 + np.sqrt(1.1**2 + 0.2 * CLEAN)) / 0.1
    dataset = opened(tmp_path, bent.astype(np.float32), scan_hardening="1.1,0.05")
    np.testing.assert_allclose(dataset.read(0), CLEAN, atol=1e-5)
    assert any(fact.value == "1.1 p + 0.05 p^2" for fact in dataset.facts)


@pytest.mark.parametrize("text", ["", "x", "1,nan", "0,1", "-1", ",".join(["1"] * 9)])
def test_a_polynomial_that_is_none_is_refused(tmp_path, text):
    with pytest.raises(RequestError, match="--scan-hardening"):
        opened(tmp_path, CLEAN, scan_hardening=text)


def test_air_at_the_ends_of_the_detector_becomes_zero_in_every_view(tmp_path):
    drift = np.linspace(-0.1, 0.3, len(CLEAN), dtype=np.float32)[:, None]
    dataset = opened(tmp_path, noisy() + drift, scan_air_bins=12)
    assert rms(dataset.read(0) - CLEAN) < 1.2 * NOISE
    with pytest.raises(RequestError, match="leaves no object"):
        opened(tmp_path, noisy(), scan_air_bins=80)


def test_the_rotation_centre_of_an_array_is_found_when_asked(tmp_path):
    moved = files.scan("parallel", 120, 180.0, offset_bins=5.3)
    np.save(tmp_path / "scan.npy", files.sinogram(moved))
    told = files.told(moved)
    del told["scan_offset_mm"]
    files.sidecar(tmp_path / "scan.json", **told)
    path = str(tmp_path / "scan.npy")
    assert open_input(path, InputOptions()).geometry.detector_offset_mm == 0
    found = open_input(path, InputOptions(scan_find_centre=True))
    assert found.geometry.detector_offset_mm == pytest.approx(5.3, abs=0.2)
    said = open_input(path, InputOptions(scan_find_centre=True, scan_offset_mm=1.0))
    assert said.geometry.detector_offset_mm == 1.0


def test_nothing_is_corrected_unasked_and_what_is_goes_into_facts_and_record(tmp_path):
    assert opened(tmp_path, noisy()).repair == Repair()
    dataset = opened(tmp_path, noisy(), scan_rings=5, scan_bad_pixels=True, scan_air_bins=4)
    names = {fact.name for fact in dataset.facts}
    assert {"rings", "bad pixels", "air level"} <= names
    corrections = dataset.problem([0], {}, HU, 0).provenance["corrections"]
    assert corrections["rings"] == 5
    assert corrections["bad_pixels"]
    before = dataset.uncorrected()
    np.testing.assert_array_equal(before.read(0), opened(tmp_path, noisy()).read(0))


def test_a_detector_that_is_mostly_bad_is_refused(tmp_path):
    values = noisy()
    told = {"bad_bins": list(range(60))}
    with pytest.raises(RequestError, match="not a detector to be mended"):
        opened(tmp_path, values, told).read(0)
