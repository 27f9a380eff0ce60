"""What is wrong with a scan is said before a run, with the option that mends it."""

import h5py
import numpy as np
import pytest
import sinogram_files as files

from engine.data.source import open_input
from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

HU = IntensityMap("hu", 1000.0, 0.0)
SCAN = files.scan("parallel", 60, 180.0)
VALUES = files.sinogram(SCAN)


def scan_file(folder, values, **told):
    """An array with a sidecar, its noise that of a good scan."""
    noise = np.random.default_rng(0).normal(0, 0.004, values.shape)
    np.save(folder / "scan.npy", (values + noise * np.abs(values).max()).astype(np.float32))
    files.sidecar(folder / "scan.json", **told)
    return folder / "scan.npy"


def spread(geometry=SCAN, **more):
    """Told by a range instead of a list of angles."""
    told = files.told(geometry, scan_range=180.0, **more)
    del told["angles_deg"]
    return told


def checks(path, **options):
    return {one.name: one for one in open_input(str(path), InputOptions(**options)).checks}


def given_by(fix):
    """The options of a fix that begins with 'give', as they are typed."""
    words = fix.removeprefix("give ").split()
    return dict(zip(words[::2], words[1::2], strict=False))


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_a_good_scan_raises_no_alarm(tmp_path, kind):
    geometry = files.scan(kind, 60, 360.0)
    path = scan_file(tmp_path, files.sinogram(geometry), **files.told(geometry))
    dataset = open_input(str(path), InputOptions())
    dataset.problem([0], {}, HU, 0)
    assert {one.verdict for one in dataset.checks} == {"good"}
    assert {"units", "angles", "air", "field of view", "detector", "material", "geometry"} <= {
        one.name for one in dataset.checks
    }


def test_an_empty_slice_raises_no_alarm(tmp_path):
    """Above and below the object a stack shows only air and its noise."""
    noise = np.random.default_rng(1).normal(0, 0.01, VALUES.shape).astype(np.float32)
    np.save(tmp_path / "scan.npy", np.stack([noise, noise, VALUES]))
    files.sidecar(tmp_path / "scan.json", **files.told(SCAN))
    dataset = open_input(str(tmp_path / "scan.npy"), InputOptions())
    dataset.problem([0], {}, HU, 0)
    assert {one.verdict for one in dataset.checks} == {"good"}
    assert not any(one.name == "geometry" for one in dataset.checks)
    dataset.problem([2], {}, HU, 0)
    assert any(one.name == "geometry" for one in dataset.checks)


def test_line_integrals_ten_times_too_large_are_doubted_and_the_fix_mends_them(tmp_path):
    path = scan_file(tmp_path, 15 * VALUES, **files.told(SCAN))
    units = checks(path)["units"]
    assert units.verdict == "doubtful"
    assert given_by(units.fix)["--scan-scale"] == "0.1"
    assert checks(path, scan_scale=1 / 15)["units"].verdict == "good"
    right = scan_file(tmp_path, VALUES, **files.told(SCAN))
    expected = open_input(str(right), InputOptions()).read(0)
    scaled = scan_file(tmp_path, 15 * VALUES, **files.told(SCAN))
    mended = open_input(str(scaled), InputOptions(scan_scale=1 / 15)).read(0)
    np.testing.assert_allclose(mended, expected, atol=1e-5)


def test_transmission_taken_for_line_integrals_is_named(tmp_path):
    path = scan_file(tmp_path, np.exp(-VALUES), **files.told(SCAN))
    units = checks(path)["units"]
    assert units.verdict == "doubtful"
    assert given_by(units.fix) == {"--unit": "transmission"}
    assert checks(path, unit="transmission")["units"].verdict == "good"


def test_line_integrals_taken_for_transmission_are_named(tmp_path):
    path = scan_file(tmp_path, VALUES, **files.told(SCAN, unit="transmission"))
    assert given_by(checks(path)["units"].fix) == {"--unit": "line-integral"}


def test_counts_taken_for_line_integrals_block_the_run(tmp_path):
    path = scan_file(tmp_path, files.counts(VALUES, 50_000), **files.told(SCAN))
    units = checks(path)["units"]
    assert units.verdict == "blocking"
    assert "--unit counts" in units.fix


@pytest.mark.parametrize("air", [10_000.0, 250_000.0])
def test_an_impossible_air_value_is_found_and_the_right_one_proposed(tmp_path, air):
    counts = files.counts(VALUES, 50_000, 0)
    np.save(tmp_path / "scan.npy", counts)
    files.sidecar(tmp_path / "scan.json", **files.told(SCAN, unit="counts"))
    doubted = checks(tmp_path / "scan.npy", scan_air=air)["air"]
    assert doubted.verdict == "doubtful"
    proposed = float(given_by(doubted.fix)["--scan-air"])
    assert proposed == pytest.approx(50_000, rel=0.05)
    assert checks(tmp_path / "scan.npy", scan_air=proposed)["air"].verdict == "good"


def test_a_range_in_radians_blocks_the_run(tmp_path):
    path = scan_file(tmp_path, VALUES, **{**spread(), "scan_range": np.pi})
    angles = checks(path)["angles"]
    assert angles.verdict == "blocking"
    assert float(given_by(angles.fix)["--scan-range"]) == pytest.approx(180, rel=1e-4)
    assert checks(path, scan_range=180.0)["angles"].verdict == "good"


def test_listed_angles_in_radians_are_read_as_such_when_told(tmp_path):
    radians = list(SCAN.angles_rad)
    path = scan_file(tmp_path, VALUES, **files.told(SCAN, angles_deg=radians))
    angles = checks(path)["angles"]
    assert angles.verdict == "blocking"
    assert given_by(angles.fix) == {"--scan-angle-unit": "rad"}
    mended = open_input(str(path), InputOptions(scan_angle_unit="rad"))
    np.testing.assert_allclose(mended.geometry.angles_rad, SCAN.angles_rad, atol=1e-12)


@pytest.mark.parametrize("span", [3.0, 5.0, 6.0, 6.5])
def test_tomosynthesis_over_a_few_degrees_is_not_taken_for_radians(tmp_path, span):
    geometry = files.scan("parallel", 25, span)
    path = scan_file(tmp_path, files.sinogram(geometry), **files.told(geometry))
    assert checks(path)["angles"].verdict == "good"


def test_a_pitch_in_metres_blocks_the_run(tmp_path):
    path = scan_file(tmp_path, VALUES, **files.told(SCAN, scan_pitch_mm=5e-7))
    pitch = checks(path)["detector pitch"]
    assert pitch.verdict == "blocking"
    assert given_by(pitch.fix) == {"--scan-pitch-mm": "0.0005"}


def test_an_electron_microscope_may_have_such_a_pitch(tmp_path):
    stack = files.two_rows(VALUES)
    path = files.mrc(tmp_path / "a.mrc", stack.astype(np.float32), 2, pixel_mm=1.3e-7)
    found = checks(path, unit="line-integral", scan_range=180.0)
    assert found["detector pitch"].verdict == "good"


def test_three_views_of_many_slices_look_like_exchanged_axes(tmp_path):
    stack = np.broadcast_to(VALUES[None, :3], (60, 3, 80))
    path = scan_file(tmp_path, stack, **{**spread(), "axes": "slice,view,detector"})
    slices = checks(path)["slices"]
    assert slices.verdict == "doubtful"
    assert given_by(slices.fix) == {"--axes": "view,slice,detector"}


def test_exchanged_axes_show_as_views_that_see_nothing(tmp_path):
    geometry = files.scan("parallel", 60, 180.0, detectors=200)
    path = scan_file(tmp_path, files.sinogram(geometry).T, **spread(geometry))
    axes = checks(path)["axes"]
    assert axes.verdict == "doubtful"
    assert given_by(axes.fix) == {"--axes": "detector,view"}
    assert "axes" not in checks(path, axes="detector,view")


def test_an_object_beyond_the_detector_is_told_from_a_wrong_air_level(tmp_path):
    narrow = VALUES[:, 25:55]
    told = files.told(SCAN)
    found = checks(scan_file(tmp_path, narrow, **told))
    assert found["field of view"].verdict == "doubtful"
    assert found["air"].verdict == "good"
    dark = scan_file(tmp_path, VALUES + 0.5, **told)
    assert "--scan-air-bins" in checks(dark)["air"].fix
    found = checks(dark, scan_air_bins=2)
    assert found["field of view"].verdict == found["air"].verdict == "good"


def test_stuck_pixels_are_found_and_a_corrected_detector_says_so(tmp_path):
    stuck = VALUES.copy()
    stuck[10:50, 33] = 6.0
    path = scan_file(tmp_path, stuck, **files.told(SCAN))
    detector = checks(path)["detector"]
    assert detector.verdict == "doubtful"
    assert given_by(detector.fix) == {"--scan-bad-pixels": "on"}
    assert checks(path, scan_bad_pixels=True)["detector"].verdict == "corrected"


def test_dense_matter_is_said_not_to_be_water_like_unless_the_energy_explains_it(tmp_path):
    small = files.told(SCAN, scan_pitch_mm=0.01)
    path = scan_file(tmp_path, VALUES, **small)
    material = checks(path)["material"]
    assert material.verdict == "doubtful"
    assert "Not water-like" in material.sentence
    assert checks(path, mu_water=2.0)["material"].verdict == "good"


def test_a_slice_that_cannot_be_read_is_doubted_and_the_others_are_not_lost(tmp_path):
    stack = np.stack([VALUES, VALUES, VALUES])
    stack[1, 5, 40] = np.nan
    path = scan_file(tmp_path, np.nan_to_num(stack), **files.told(SCAN))
    np.save(path, stack)
    values = checks(path)["values"]
    assert values.verdict == "doubtful"
    assert "--scan-bad-pixels" in values.fix
    dataset = open_input(str(path), InputOptions())
    assert dataset.problem([0], {}, HU, 0).measurement.isfinite().all()
    with pytest.raises(RequestError, match="NaN"):
        dataset.read(1)


@pytest.mark.parametrize(
    ("scale", "said", "right"),
    [(0.0192, "hu", "mu"), (0.192, "hu", "mu-cm"), (0.192, "mu", "mu-cm"), (0.0192, "mu-cm", "mu")],
)
def test_images_of_attenuation_in_another_unit_are_recognised(tmp_path, scale, said, right):
    """A disc of water in air; the fix gives HU of water."""
    y, x = np.mgrid[-32:32, -32:32]
    np.save(tmp_path / "image.npy", (scale * (x**2 + y**2 < 600)).astype(np.float32))
    units = checks(tmp_path / "image.npy", unit=said)["units"]
    assert units.verdict == "doubtful"
    assert given_by(units.fix.split(",")[0]) == {"--unit": right}
    mended = open_input(str(tmp_path / "image.npy"), InputOptions(unit=right))
    assert mended.read(0)[32, 32] == pytest.approx(0, abs=1)
    assert {one.verdict for one in mended.checks} == {"good"}


def test_water_attenuates_as_tabulated_at_the_energy_told(tmp_path):
    path = scan_file(tmp_path, VALUES, **files.told(SCAN))
    assert open_input(str(path), InputOptions(energy_kev=60)).mu_water == pytest.approx(0.02059)
    between = open_input(str(path), InputOptions(energy_kev=70)).mu_water
    assert between == pytest.approx(0.0193, abs=2e-4)  # 0.0192 is assumed at about 70 keV
    both = open_input(str(path), InputOptions(energy_kev=60, mu_water=0.03))
    assert both.mu_water == 0.03


@pytest.mark.parametrize(("stored", "unit"), [(30.0, "keV"), (30_000.0, "eV")])
def test_the_energy_of_a_file_with_its_unit_gives_the_attenuation_of_water(tmp_path, stored, unit):
    path = files.nxtomo(tmp_path / "a.nxs", VALUES, np.rad2deg(SCAN.angles_rad))
    with h5py.File(path, "a") as file:
        file["entry0000/instrument/beam/incident_energy"] = stored
        file["entry0000/instrument/beam/incident_energy"].attrs["units"] = unit
    dataset = open_input(str(path), InputOptions())
    assert dataset.mu_water == pytest.approx(0.03756)
    assert not any("HU assume" in words for words in dataset.warnings)
    assert open_input(str(path), InputOptions(mu_water=0.03)).mu_water == 0.03


@pytest.mark.parametrize("unit", ["deg", "rad"])
def test_what_a_person_says_of_the_angles_counts_more_than_the_files_unit(tmp_path, unit):
    """Radians in a file, whatever unit it writes beside them."""
    degrees = np.rad2deg(SCAN.angles_rad)
    stored = degrees if unit == "rad" else np.deg2rad(degrees)  # the writer stores radians then
    path = files.nxtomo(tmp_path / "a.nxs", VALUES, stored, unit)
    read = open_input(str(path), InputOptions(scan_angle_unit="rad"))
    np.testing.assert_allclose(read.geometry.angles_rad, SCAN.angles_rad, atol=1e-9)
