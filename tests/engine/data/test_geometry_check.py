"""Wrong signs, flips and centres are found; what data cannot tell is said."""

from dataclasses import replace

import numpy as np
import pytest
import sinogram_files as files
import torch

from engine.data.sinogram.geometry_check import cannot_tell, check_geometry
from engine.data.sinogram.rotation_centre import estimate_offset
from engine.data.source import open_input
from engine.physics.fbp import fbp
from engine.physics.field_of_view import field_of_view
from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

NOISE = 0.01


def write(folder, geometry, values, **wrong):
    """A file with a sidecar that says something wrong; the numbers have noise."""
    noise = np.random.default_rng(1).normal(0, NOISE, values.shape).astype(np.float32)
    np.save(folder / "scan.npy", values + noise)
    files.sidecar(folder / "scan.json", **files.told(geometry, **wrong))
    return open_input(str(folder / "scan.npy"), InputOptions())


def truth(geometry, dataset):
    right = replace(geometry, image_size=dataset.image_size, pixel_mm=dataset.pixel_mm[0])
    y = torch.from_numpy(files.sinogram(geometry))[None, None]
    mu = fbp(y, right, "hann") * field_of_view(right)
    return 1000 * (mu[0, 0].numpy() / dataset.mu_water - 1)


def turns(image):
    """The image, turned and mirrored in every way."""
    return [np.rot90(side, k) for side in (image, image[:, ::-1]) for k in range(4)]


def distance(a, b):
    size = min(len(a), len(b))

    def middle(image):
        first = (len(image) - size) // 2
        return image[first : first + size, first : first + size]

    return float(np.abs(middle(a) - middle(b)).mean())


FAN_CASES = [
    (span, error)
    for span in (180.0, 360.0)
    for error in ("sign", "flip", "sign and centre", "flip and centre", "centre", "both")
]


@pytest.mark.parametrize(("span", "error"), FAN_CASES)
def test_fan_errors_are_found_and_mended(tmp_path, span, error):
    """After the proposed change the image is the true one, perhaps mirrored or turned."""
    offset = 3.3 if "centre" in error else 0.0
    geometry = files.scan("fan", 48, span, start=0.0, offset_bins=offset)
    values = files.sinogram(geometry)
    if "flip" in error or error == "both":
        values = values[:, ::-1]
    wrong = {"scan_offset_mm": 0.0}
    if "sign" in error or error == "both":
        wrong["scan_direction"] = "cw"
    dataset = write(tmp_path, geometry, values, **wrong)
    best = dataset.check_geometry()[0]
    mismatch = "sign" in error or "flip" in error
    assert (best.reverse != best.flip) == mismatch
    assert best.unchanged == (error == "both")
    mended = dataset.with_changes(**dataset.changes_for(best))
    geometry_offset = abs(mended.geometry.detector_offset_mm) / geometry.pitch_mm
    assert geometry_offset == pytest.approx(offset, abs=0.2)
    right = truth(geometry, mended)
    now, before = mended.preview(0), dataset.preview(0)
    closest = min(distance(now, one) for one in turns(right))
    if error != "both":
        assert closest < 0.8 * min(distance(before, one) for one in turns(right))
    assert closest < 25


@pytest.mark.parametrize("span", [180.0, 360.0])
@pytest.mark.parametrize("bins", [-7.4, 0.6, 3.3])
def test_parallel_centres_are_found_to_a_fifth_of_a_bin(tmp_path, span, bins):
    geometry = files.scan("parallel", 60, span, offset_bins=bins)
    dataset = write(tmp_path, geometry, files.sinogram(geometry), scan_offset_mm=0.0)
    proposals = dataset.check_geometry()
    assert not proposals[0].unchanged
    assert proposals[0].offset_mm == pytest.approx(bins, abs=0.2)
    given = next(one for one in proposals if one.unchanged)
    assert given.residual > proposals[0].residual
    assert "offset" in proposals[0].words
    assert "%" in proposals[0].words


@pytest.mark.parametrize("span", [180.0, 360.0])
def test_a_parallel_flip_shows_as_a_centre_on_the_other_side(tmp_path, span):
    geometry = files.scan("parallel", 60, span, offset_bins=4.2)
    dataset = write(tmp_path, geometry, files.sinogram(geometry)[:, ::-1])
    best = dataset.check_geometry()[0]
    assert best.offset_mm == pytest.approx(-4.2, abs=0.2)
    mended = dataset.with_changes(**dataset.changes_for(best))
    right = np.rot90(truth(geometry, mended), 2)  # half a turn: nothing in the data shows it
    assert distance(mended.preview(0), right) < 25


@pytest.mark.parametrize("span", [180.0, 360.0])
def test_a_parallel_direction_only_mirrors_and_that_is_said(tmp_path, span):
    geometry = files.scan("parallel", 60, span, start=25.0)
    dataset = write(tmp_path, geometry, files.sinogram(geometry), scan_direction="cw")
    as_is, mirrored = dataset.check_geometry()
    assert as_is.unchanged
    assert mirrored.reverse
    assert as_is.residual == mirrored.residual
    assert "cannot tell" in cannot_tell(dataset.geometry)
    right = truth(geometry, dataset)
    assert distance(dataset.preview(0), right[::-1]) < 25  # upside down
    mended = dataset.with_changes(**dataset.changes_for(mirrored))
    assert distance(mended.preview(0), right) < 25


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_a_right_geometry_is_left_alone(tmp_path, kind):
    geometry = files.scan(kind, 60, 360.0, offset_bins=2.0)
    dataset = write(tmp_path, geometry, files.sinogram(geometry))
    best = dataset.check_geometry()[0]
    assert best.unchanged
    assert dataset.changes_for(best) == {}
    assert best.words.startswith("As it is")


def test_exchanged_views_and_detectors_are_found(tmp_path):
    geometry = files.scan("parallel", 80, 180.0)
    values = files.sinogram(geometry)
    dataset = write(tmp_path, geometry, np.ascontiguousarray(values.T))
    best = dataset.check_geometry()[0]
    assert best.transposed
    mended = dataset.with_changes(**dataset.changes_for(best))
    assert np.abs(mended.read(0) - values).max() < 6 * NOISE
    oblong = files.scan("parallel", 60, 180.0)
    assert check_geometry(files.sinogram(oblong).T, oblong)[0].transposed


@pytest.mark.parametrize("bins", [-15.25, -0.4, 0.0, 6.75])
def test_the_rotation_centre_is_estimated_to_a_fifth_of_a_bin(bins):
    geometry = files.scan("parallel", 181, 181.0, offset_bins=bins, detectors=300)
    geometry = replace(geometry, pitch_mm=0.3, detector_offset_mm=0.3 * bins)
    found = estimate_offset(files.sinogram(geometry), replace(geometry, detector_offset_mm=0.0))
    assert found.mm / 0.3 == pytest.approx(bins, abs=0.2)
    assert not found.at_edge


def test_a_short_arc_is_said_to_tell_little():
    assert "60 degrees only" in cannot_tell(files.scan("fan", 30, 60.0))


def test_a_sinogram_of_another_shape_is_refused():
    geometry = files.scan("parallel", 20)
    with pytest.raises(RequestError, match="shape"):
        check_geometry(np.zeros((3, 4)), geometry)
    with pytest.raises(RequestError, match="too large"):
        check_geometry(np.full((20, 80), 1e38), geometry)
    with pytest.raises(RequestError, match="not finite"):
        check_geometry(np.full((20, 80), np.nan), geometry)


def ranged(folder, values, geometry, **more):
    """Told by a range, as a person does who has no list of angles."""
    told = {**files.told(geometry), "scan_range": 180.0, **more}
    del told["angles_deg"]
    np.save(folder / "scan.npy", values)
    files.sidecar(folder / "scan.json", **told)
    return open_input(str(folder / "scan.npy"), InputOptions())


@pytest.mark.parametrize("views", [60, 130])
def test_exchanged_axes_are_found_whatever_the_numbers_of_views_and_bins(tmp_path, views):
    geometry = files.scan("parallel", views, 180.0, offset_bins=1.5)
    values = files.sinogram(geometry)
    values += np.random.default_rng(0).normal(0, NOISE, values.shape).astype(np.float32)
    dataset = ranged(tmp_path, np.ascontiguousarray(values.T), geometry, scan_offset_mm=0.0)
    best = dataset.check_geometry()[0]
    assert best.transposed
    assert "exchange views and detectors" in best.words.lower()
    mended = dataset.with_changes(**dataset.changes_for(best))
    np.testing.assert_array_equal(mended.read(0), values)
    assert mended.geometry.detector_offset_mm == pytest.approx(1.5, abs=0.3)
    check = next(one for one in dataset.checks if one.name == "geometry")
    assert check.verdict == "doubtful"
    assert "--axes detector,view" in check.fix


@pytest.mark.parametrize("span", [180.0, 360.0])
def test_a_range_in_radians_is_recognised_and_mended(tmp_path, span):
    geometry = files.scan("parallel", 90, span)
    wrong = {"scan_range": float(np.deg2rad(span))}
    dataset = ranged(tmp_path, files.sinogram(geometry), geometry, **wrong)
    best = dataset.check_geometry()[0]
    assert best.radians
    assert "radians" in best.words
    changes = dataset.changes_for(best)
    assert changes["scan_range"] == pytest.approx(span)
    mended = dataset.with_changes(**changes)
    assert mended.check_geometry()[0].unchanged


def test_when_nothing_fits_it_is_said(tmp_path):
    """A picture that is no sinogram of anything."""
    geometry = files.scan("parallel", 80, 180.0)
    random = np.random.default_rng(0)
    blocks = np.kron(random.random((10, 10)), np.ones((8, 8))).astype(np.float32)
    dataset = ranged(tmp_path, blocks, geometry)
    dataset.check_geometry()
    check = next(one for one in dataset.checks if one.name == "geometry")
    assert check.verdict == "doubtful"
    assert "None of the readings fits" in check.sentence


def test_a_run_says_what_the_geometry_check_knows(tmp_path):
    geometry = files.scan("parallel", 60, 180.0, offset_bins=6.0)
    dataset = write(tmp_path, geometry, files.sinogram(geometry), scan_offset_mm=0.0)
    assert not any(one.name == "geometry" for one in dataset.checks)  # opening is quick
    dataset.problem([0], {}, IntensityMap("hu", 1000.0, 0.0), 0)
    check = next(one for one in dataset.checks if one.name == "geometry")
    assert check.verdict == "doubtful"
    proposed = float(check.fix.split("--scan-offset-mm ")[1].split()[0])
    assert proposed == pytest.approx(6.0, abs=0.2)


def test_a_short_arc_gives_no_false_alarm(tmp_path):
    """Over 60 degrees a wrong centre may fit better than the right one."""
    geometry = files.scan("fan", 60, 60.0)
    dataset = write(tmp_path, geometry, files.sinogram(geometry))
    dataset.check_geometry()
    check = next(one for one in dataset.checks if one.name == "geometry")
    assert check.verdict == "good"
    assert "says little" in check.sentence


@pytest.mark.parametrize("bins", [-5.2, 3.4])
def test_the_centre_of_an_mrc_stack_is_found(tmp_path, bins):
    geometry = files.scan("parallel", 90, 180.0, offset_bins=bins)
    stack = files.two_rows(files.sinogram(geometry))
    path = files.mrc(tmp_path / "a.mrc", stack, 2)
    told = {"unit": "line-integral", "scan_range": 180.0}
    dataset = open_input(str(path), InputOptions(**told))
    assert dataset.geometry.detector_offset_mm == pytest.approx(bins, abs=0.2)
    check = next(one for one in dataset.checks if one.name == "centre")
    assert check.verdict == "corrected"
    plain = open_input(str(path), InputOptions(**told, scan_find_centre=False))
    assert plain.geometry.detector_offset_mm == 0


def test_a_tilt_series_of_a_short_arc_keeps_the_middle_and_says_so(tmp_path):
    geometry = files.scan("parallel", 60, 120.0, offset_bins=4.0)
    path = files.mrc(tmp_path / "a.mrc", files.two_rows(files.sinogram(geometry)), 2)
    dataset = open_input(str(path), InputOptions(unit="line-integral", scan_range=120.0))
    assert dataset.geometry.detector_offset_mm == 0
    check = next(one for one in dataset.checks if one.name == "centre")
    assert check.verdict == "doubtful"
    assert "do not tell it" in check.sentence
