"""Measured scans as problems: units, chosen views, broken values and the image grid."""

from dataclasses import replace

import numpy as np
import pytest
import sinogram_files as files
import torch
from ct_ellipses import raster

from engine.data.sinogram.rotation_centre import SIDE
from engine.data.sinogram.view_selection import select_views
from engine.data.source import open_input
from engine.physics.field_of_view import field_of_view, field_of_view_mm
from engine.physics.matrix_cache import MatrixCache
from engine.physics.units import IntensityMap
from engine.runs.prepare import make_run, prepare
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions
from engine.spec.job import Job

INTENSITY = IntensityMap("hu", 800.0, 100.0)
PARALLEL = files.scan("parallel", 90, 180.0, start=15.0)
FAN = files.scan("fan", 120, 360.0, start=-20.0)
ANGLES = np.rad2deg(PARALLEL.angles_rad)


def open_file(path, **options):
    return open_input(str(path), InputOptions(**options))


@pytest.fixture
def fan_file(tmp_path):
    return files.fips_v5(tmp_path / "a.mat", files.sinogram(FAN), FAN, "CtData")


def test_the_problem_is_in_the_priors_units(fan_file):
    """Forward-projecting the true image in the prior's units gives the measurement."""
    dataset = open_file(fan_file, mu_water=0.02)
    problem = dataset.problem([0], {}, INTENSITY, 0)
    mu = raster(files.PHANTOM, dataset.image_size, dataset.pixel_mm[0])
    x = INTENSITY.to_normalised(torch.tensor(1000 * (mu / 0.02 - 1), dtype=torch.float32))
    predicted = problem.operator.forward(x[None, None])
    error = (predicted - problem.measurement).norm() / problem.measurement.norm()
    assert float(error) < 0.02
    assert problem.reference is None
    assert problem.provenance["simulated"] is False
    assert not any("HU assume" in text for text in dataset.warnings)


def test_the_fbp_of_the_problem_is_that_of_the_line_integrals(fan_file):
    """Air is not zero in the prior's units, and the round field of view cuts the square off."""
    dataset = open_file(fan_file)
    problem = dataset.problem([0], {"fbp_filter": "hann"}, INTENSITY, 0)
    image = problem.physical(problem.operator.pseudo_inverse(problem.measurement))
    assert np.abs(image[0, 0].numpy() - dataset.preview(0)).max() < 0.5


def test_views_are_thinned_and_recorded(fan_file):
    dataset = open_file(fan_file)
    problem = dataset.problem([0], {"views": 30, "fbp_filter": "hann"}, INTENSITY, 0)
    kept = problem.provenance["kept_views"]
    assert kept == list(range(0, 120, 4))
    assert problem.measurement.shape[-2] == 30
    full = dataset.problem([0], {}, INTENSITY, 0)
    assert torch.equal(problem.measurement, full.measurement[:, :, kept])
    assert problem.operator.describe()["fbp"]["filter"] == "hann"


def test_an_arc_of_the_measured_views(fan_file):
    dataset = open_file(fan_file)
    part = {"angular_range": 90.0, "start_angle": 70.0}
    problem = dataset.problem([0], part, INTENSITY, 0)
    angles = np.rad2deg(problem.operator.describe()["geometry"]["angles_rad"])
    assert angles == pytest.approx(70 + 3 * np.arange(30))
    with pytest.raises(RequestError, match="only 30"):
        dataset.problem([0], {**part, "views": 31}, INTENSITY, 0)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"views": 121}, "only 120 views"),
        ({"geometry": "parallel"}, "was measured"),
        ({"detectors": 10}, "was measured"),
        ({"acceleration": 4}, "acceleration"),
    ],
)
def test_what_was_not_measured_is_refused(fan_file, asked, sentence):
    with pytest.raises(RequestError, match=sentence):
        open_file(fan_file).problem([0], asked, INTENSITY, 0)


def test_a_range_beyond_the_measured_one_is_refused(tmp_path):
    path = files.nxtomo(tmp_path / "a.nxs", files.sinogram(PARALLEL), ANGLES)
    dataset = open_file(path, scan_offset_mm=0.0)
    with pytest.raises(RequestError, match="cover 180 degrees"):
        dataset.problem([0], {"angular_range": 270.0}, INTENSITY, 0)
    with pytest.raises(RequestError, match="Not all views"):
        dataset.problem([0], {"angular_range": 90.0, "start_angle": 150.0}, INTENSITY, 0)
    rest = dataset.problem([0], {"start_angle": 105.0}, INTENSITY, 0)
    assert rest.measurement.shape[-2] == 45


def test_nan_is_refused_by_slice_and_count_and_dead_bins_have_no_weight(tmp_path):
    values = files.sinogram(PARALLEL)
    files.sidecar(tmp_path / "scan.json", **files.told(PARALLEL))
    broken = values.copy()
    broken[3, 5] = np.nan
    broken[4, 6] = np.inf
    np.save(tmp_path / "scan.npy", broken)
    with pytest.raises(RequestError, match=r"slice 0 \(counted from 0\) holds 2 values"):
        open_file(tmp_path / "scan.npy").problem([0], {}, INTENSITY, 0)
    dead = values.copy()
    dead[:, 30] = np.nan
    np.save(tmp_path / "scan.npy", dead)
    dataset = open_file(tmp_path / "scan.npy")
    problem = dataset.problem([0], {"views": 45}, INTENSITY, 0)
    assert bool(torch.isfinite(problem.measurement).all())
    assert problem.weights.shape == problem.measurement.shape
    assert problem.weights[0, 0, 7].numpy().nonzero()[0].tolist() == [
        n for n in range(80) if n != 30
    ]
    assert any("1 detector bins are dead" in text for text in dataset.warnings)


def test_rays_without_light_are_counted(tmp_path):
    values = np.exp(-files.sinogram(PARALLEL))
    values[5, 40:43] = 0
    np.save(tmp_path / "scan.npy", values)
    files.sidecar(tmp_path / "scan.json", **files.told(PARALLEL, unit="transmission"))
    dataset = open_file(tmp_path / "scan.npy")
    assert np.isfinite(dataset.read(0)).all()
    assert any("3 rays" in text for text in dataset.warnings)


# -- the image grid -------------------------------------------------------------------------------


def test_the_default_grid_covers_the_field_of_view(fan_file):
    dataset = open_file(fan_file)
    pixel = FAN.pitch_mm / FAN.magnification
    reach = 150 * np.sin(np.arctan(80 / 300))
    assert dataset.pixel_mm == (pixel, pixel)
    assert dataset.image_size[0] == int(2 * reach / pixel)
    small = open_file(fan_file, size=32)
    assert small.image_size == (32, 32)
    assert small.pixel_mm[0] * 32 == pytest.approx(2 * reach)
    coarse = open_file(fan_file, pixel_mm=3.0)
    assert coarse.image_size[0] == int(2 * reach / 3.0)
    assert any(fact.name == "pixel" for fact in dataset.facts)


def test_a_wide_detector_is_binned_with_the_pixels(tmp_path):
    """1001 bins, 256 pixels: three bins make one, the last two are left out."""
    fine = files.scan("parallel", 60, 180.0, detectors=1001, offset_bins=2.0)
    fine = replace(fine, pitch_mm=0.08, detector_offset_mm=0.16)
    np.save(tmp_path / "scan.npy", files.sinogram(fine))
    files.sidecar(tmp_path / "scan.json", **files.told(fine))
    dataset = open_file(tmp_path / "scan.npy")
    geometry = dataset.geometry
    assert dataset.image_size == (256, 256)
    assert geometry.detectors == 333
    assert geometry.pitch_mm == pytest.approx(0.24)
    assert_same_rays(dataset, 1)
    assert_same_rays(dataset.with_changes(scan_flip=True, scan_offset_mm=-0.16), -1)


def assert_same_rays(dataset, sign):
    """The mean over a bin is near the value at its centre, and at no other fine bin's."""
    offset = dataset.geometry.detector_offset_mm

    def distance(shift):
        shifted = replace(dataset.geometry, detector_offset_mm=sign * (offset + shift))
        return np.abs(dataset.read(0) - files.sinogram(shifted)[:, ::sign]).mean()

    assert distance(0.0) < 0.25 * min(distance(0.08), distance(-0.08))


# -- which views ----------------------------------------------------------------------------------


def test_a_clockwise_scan_is_thinned_like_any_other():
    angles = np.deg2rad(-np.arange(0.0, 360.0, 2.0))
    kept = select_views(angles, views=36)
    assert np.diff(np.rad2deg(angles)[kept]) == pytest.approx(-10)
    assert 0 in kept


def test_both_ends_of_half_a_turn_are_not_both_kept():
    angles = np.deg2rad(np.linspace(0.0, 180.0, 181))
    assert select_views(angles, angular_range=180.0).tolist() == list(range(180))
    assert select_views(angles, views=18, angular_range=180.0).tolist() == list(range(0, 180, 10))


def test_uneven_views_are_never_counted_twice():
    angles = np.deg2rad(np.sort(np.random.default_rng(0).random(40)) ** 2 * 180)
    for views in (5, 17, 39):
        assert np.unique(select_views(angles, views=views)).size == views


# -- the field of view ----------------------------------------------------------------------------


def air_outside(dataset, image, radius_mm):
    """The values outside the circle, in HU."""
    rows, columns = dataset.image_size
    pixel = dataset.pixel_mm[0]
    y, x = (((np.arange(n) - (n - 1) / 2) * pixel) for n in (rows, columns))
    return image[np.hypot(x[None, :], y[:, None]) > radius_mm]


@pytest.mark.parametrize("thinned", [{}, {"views": 30}])
def test_outside_the_field_of_view_a_full_scan_shows_air(fan_file, thinned):
    dataset = open_file(fan_file)
    radius = 150 * np.sin(np.arctan(80 / 300))
    problem = dataset.problem([0], thinned, INTENSITY, 0)
    image = problem.physical(problem.operator.pseudo_inverse(problem.measurement))[0, 0].numpy()
    corners = air_outside(dataset, image, radius)
    assert corners.size > 0.15 * image.size
    np.testing.assert_allclose(corners, -1000, atol=0.01)
    np.testing.assert_allclose(air_outside(dataset, dataset.preview(0), radius), -1000, atol=0.01)
    centre = image[len(image) // 2 - 4 :, :][:8, 20:28]
    assert centre.mean() > -500  # the object is still there
    seen = problem.operator.support()
    assert seen.shape == (1, 1, *dataset.image_size)
    assert float(seen.mean()) == pytest.approx(np.pi / 4, abs=0.02)


def test_of_a_short_arc_only_what_no_view_sees_is_air(fan_file):
    dataset = open_file(fan_file)
    problem = dataset.problem([0], {"angular_range": 60.0}, INTENSITY, 0)
    seen = problem.operator.support()
    assert float(seen.mean()) > 0.9  # more than the circle
    image = problem.physical(problem.operator.pseudo_inverse(problem.measurement))
    np.testing.assert_allclose(image[seen == 0].numpy(), -1000, atol=0.01)


def test_a_detector_shifted_on_purpose_sees_the_wide_circle_in_a_full_turn():
    half_fan = files.scan("fan", 120, 360.0, offset_bins=30.0)
    half_fan = replace(half_fan, image_size=(64, 64), pixel_mm=2.0)
    part = replace(half_fan, angles_rad=half_fan.angles_rad[:30])
    wide, narrow = field_of_view_mm(half_fan), field_of_view_mm(part)
    assert wide == pytest.approx(150 * np.sin(np.arctan(140 / 300)))
    assert narrow == pytest.approx(150 * np.sin(np.arctan(20 / 300)))
    share = np.pi * (wide / 128) ** 2  # of the square
    assert float(field_of_view(half_fan).mean()) == pytest.approx(share, abs=0.01)


def test_fbp_of_a_measured_scan_and_its_run_build_no_matrix(fan_file, monkeypatch):
    build = MatrixCache.get

    def refuse(cache, geometry, *more):
        if max(geometry.image_size) <= SIDE:  # the geometry check's coarse copy of the scan
            return build(cache, geometry, *more)
        raise AssertionError("a matrix was asked for")

    monkeypatch.setattr(MatrixCache, "get", refuse)
    prepared = prepare(Job(str(fan_file), solver="fbp"))
    run = make_run(prepared)
    for _ in run:
        pass
    assert run.image is not None
    assert run.record.history[0]["residual_x"] > 0
    with pytest.raises(AssertionError, match="matrix"):
        prepared.problem.residual(run.image)
