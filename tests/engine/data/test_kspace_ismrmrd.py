"""ISMRMRD files: each oddity of a scanner is put right, and would be seen if it were not."""

import h5py
import numpy as np
import pytest
from kspace_files import (
    Line,
    fft2,
    header_xml,
    ifft2,
    lines_of,
    oversampled,
    write_mrd,
)

from engine.data.readers.hdf5.reader import open_kspace_h5
from engine.physics.phantoms import brain_mr
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

MR = IntensityMap("mr")
NOISE, CALIBRATION, CALIBRATION_AND_IMAGING, REVERSE, NAVIGATOR, PHASECORR = range(19, 25)
SHAPE = (80, 64, 1)
FOV = (200, 160, 5)
XML = header_xml(SHAPE, SHAPE, FOV, FOV)


@pytest.fixture(scope="module")
def image():
    return brain_mr(seed=5, size=80).image[:, 8:72]


@pytest.fixture(scope="module")
def kspace(image):
    """Three coils, [coil, read, phase]."""
    return fft2(birdcage_maps(3, 80, 64).numpy() * image)


def opened(path, lines, xml=XML, **options):
    return open_kspace_h5(write_mrd(path / "scan.h5", lines, xml), InputOptions(**options))


def same(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())


def test_plain_lines_in_any_order(tmp_path, kspace):
    lines = lines_of(kspace)
    np.random.default_rng(0).shuffle(lines)
    dataset = opened(tmp_path, lines)
    same(dataset.read(0), kspace)
    assert (dataset.coils, dataset.image_size, len(dataset)) == (3, (80, 64), 1)
    assert dataset.pixel_mm == (2.5, 2.5)
    assert dataset.mask(0) is None
    assert not dataset.warnings


def test_reversed_lines_are_turned_round(tmp_path, kspace):
    for mirrored_centre in (False, True):
        lines = lines_of(kspace)
        for line in lines[1::2]:
            line.samples, line.flags = line.samples[:, ::-1], (REVERSE,)
            if mirrored_centre:  # counted in the order of acquisition
                line.values = {"center_sample": 80 - 1 - 40}
        same(opened(tmp_path, lines).read(0), kspace)


def test_averages_are_averaged_each_line_by_its_own_count(tmp_path, kspace):
    lines = lines_of(kspace) + lines_of(3 * kspace, average=1) + lines_of(5 * kspace, steps=[7])
    found = opened(tmp_path, lines).read(0)
    same(np.delete(found, 7, axis=-1), 2 * np.delete(kspace, 7, axis=-1))
    same(found[..., 7], 3 * kspace[..., 7])


def test_readout_oversampling_is_removed_in_image_space(tmp_path, image):
    xml = header_xml((160, 64, 1), SHAPE, (400, 160, 5), FOV)
    dataset = opened(tmp_path, lines_of(fft2(oversampled(image))[None]), xml)
    same(ifft2(dataset.read(0)[0]), image)
    assert dataset.image_size == (80, 64)
    assert dataset.pixel_mm == (2.5, 2.5)


def test_lines_are_placed_by_the_encoding_limits(tmp_path, kspace):
    """Partial Fourier: the scanner's line 0 is column 20 of the grid."""
    xml = header_xml(SHAPE, SHAPE, FOV, FOV, limits=(0, 43, 12))
    dataset = opened(tmp_path, lines_of(kspace, steps=range(20, 64), first=20), xml)
    expected = kspace.copy()
    expected[..., :20] = 0
    same(dataset.read(0), expected)
    assert np.array_equal(dataset.mask(0).sampled, np.arange(64) >= 20)
    assert dataset.problem([0], {}, MR, seed=0).reference is None


def test_an_asymmetric_echo_is_placed_by_its_centre(tmp_path, kspace):
    lines = lines_of(kspace[:, 24:])
    for line in lines:
        line.values = {"center_sample": 40 - 24}
    dataset = opened(tmp_path, lines)
    expected = kspace.copy()
    expected[:, :24] = 0
    same(dataset.read(0), expected)
    mask = dataset.mask(0).sampled
    assert mask.shape == (80, 64)
    assert np.array_equal(mask.all(axis=1), np.arange(80) >= 24)
    assert dataset.problem([0], {}, MR, seed=0).reference is None


def test_an_asymmetric_echo_with_oversampling_keeps_its_missing_rows_missing(tmp_path, image):
    xml = header_xml((160, 64, 1), SHAPE, (400, 160, 5), FOV)
    whole = fft2(oversampled(image))[None]
    lines = lines_of(whole[:, 48:])
    for line in lines:
        line.values = {"center_sample": 80 - 48}
    dataset = opened(tmp_path, lines, xml)
    sampled = dataset.mask(0).sampled
    assert np.array_equal(sampled.all(axis=1), np.arange(80) >= 24)
    # near the edge the interpolation between rows is not exact; away from it, it is
    found, expected = dataset.read(0)[0, 30:], fft2(image)[30:]
    same(found, expected, 0.01)


def test_discarded_samples_are_not_used(tmp_path, kspace):
    for reverse in (False, True):
        lines = lines_of(kspace)
        for line in lines:
            samples = line.samples[:, ::-1].copy() if reverse else line.samples.copy()
            samples[:, :4], samples[:, -2:] = 1e6, -1e6
            line.samples, line.flags = samples, ((REVERSE,) if reverse else ())
            line.values = {"discard_pre": 4, "discard_post": 2}
        found = opened(tmp_path, lines).read(0)
        before, after = (2, 4) if reverse else (4, 2)
        expected = kspace.copy()
        expected[:, :before] = expected[:, -after:] = 0
        same(found, expected)


@pytest.mark.parametrize("flag", [NAVIGATOR, PHASECORR, 26, 27, 28, 29, 30, 31])
def test_lines_that_are_no_image_are_left_out(tmp_path, kspace, flag):
    junk = [Line(1e6 * np.ones((3, 80), complex), (flag,), {"kspace_encode_step_1": 32})]
    same(opened(tmp_path, junk + lines_of(kspace)).read(0), kspace)


def test_separate_calibration_lines_serve_the_maps_only(tmp_path, kspace):
    steps = [*range(0, 64, 3)]
    calibration = lines_of(kspace, steps=range(22, 42))
    for line in calibration:
        line.flags = (CALIBRATION,)
    dataset = opened(tmp_path, calibration + lines_of(kspace, steps=steps))
    expected = np.zeros(64, bool)
    expected[steps] = True
    assert np.array_equal(dataset.mask(0).sampled, expected)
    problem = dataset.problem([0], {}, MR, seed=0)
    assert "20 calibration lines" in problem.provenance["maps"]
    assert np.array_equal(problem.operator.mask.sampled, expected)


def test_calibration_lines_that_are_imaging_lines_too_are_both(tmp_path, kspace):
    steps = sorted({*range(0, 64, 3), *range(24, 40)})
    lines = lines_of(kspace, steps=steps)
    for line in lines:
        if 24 <= line.counters["kspace_encode_step_1"] < 40:
            line.flags = (CALIBRATION, CALIBRATION_AND_IMAGING)  # some writers set both
    dataset = opened(tmp_path, lines)
    assert np.flatnonzero(dataset.mask(0).sampled).tolist() == steps
    problem = dataset.problem([0], {}, MR, seed=0)
    assert "16 central lines" in problem.provenance["maps"]


EMBEDDED = (
    "<parallelImaging><accelerationFactor><kspace_encoding_step_1>3</kspace_encoding_step_1>"
    "<kspace_encoding_step_2>1</kspace_encoding_step_2></accelerationFactor>"
    "<calibrationMode>embedded</calibrationMode></parallelImaging>"
)


@pytest.mark.parametrize("embedded", [True, False])
def test_embedded_calibration_lines_of_both_kinds_make_one_block(tmp_path, kspace, embedded):
    """Of 24 central lines every third is an image's own, the others are there for calibration."""
    steps = set(range(2, 64, 3))
    lines = lines_of(kspace, steps=sorted(steps | set(range(20, 44))))
    for line in lines:
        step = line.counters["kspace_encode_step_1"]
        if 20 <= step < 44:
            line.flags = (CALIBRATION_AND_IMAGING if step in steps else CALIBRATION,)
    xml = XML.replace("</encoding>", EMBEDDED + "</encoding>") if embedded else XML
    dataset = opened(tmp_path, lines, xml)
    measured = np.flatnonzero(dataset.mask(0).sampled)
    assert set(measured) == (steps | set(range(20, 44)) if embedded else steps)
    problem = dataset.problem([0], {}, MR, seed=0)
    source = "24 central lines" if embedded else "24 calibration lines"
    assert source in problem.provenance["maps"]
    assert not dataset.warnings


def test_noise_scans_that_say_more_than_the_data_can_hold_are_doubted(tmp_path, kspace):
    rng = np.random.default_rng(0)
    scans = [
        Line(50 * (rng.standard_normal((3, 256)) + 1j * rng.standard_normal((3, 256))), (NOISE,))
        for _ in range(10)
    ]
    noisy = kspace + 0.1 * (
        rng.standard_normal(kspace.shape) + 1j * rng.standard_normal(kspace.shape)
    )
    dataset = opened(tmp_path, scans + lines_of(noisy))
    problem = dataset.problem([0], {}, MR, seed=0)
    assert problem.noise_origin == "noise scans of the file"
    assert any("may be overstated" in warning for warning in dataset.warnings)


def test_noise_scans_whiten_the_coils_and_give_the_noise_level(tmp_path, kspace):
    rng = np.random.default_rng(0)
    mix = np.array([[1, 0.4j, 0], [0, 2, 0.3], [0.1, 0, 0.5]])

    def noise(*shape):
        parts = rng.standard_normal((2, 3, *shape)) / np.sqrt(2)
        return np.tensordot(mix, parts[0] + 1j * parts[1], axes=1)

    # twice the dwell time of the image: half the variance
    scans = [Line(0.1 * noise(512), (NOISE,), {}, {"sample_time_us": 10.0}) for _ in range(40)]
    empty = np.sqrt(2) * 0.1 * noise(80, 64)
    dataset = opened(tmp_path, scans + lines_of(empty) + lines_of(empty, slice=1))
    found = dataset.read(0).reshape(3, -1)
    covariance = found @ found.conj().T / found.shape[1]
    np.testing.assert_allclose(
        covariance, 2 * dataset.noise_sigma**2 * np.eye(3), atol=0.08 * dataset.noise_sigma**2
    )
    problem = dataset.problem([0, 1], {}, MR, seed=0)
    assert problem.noise_sigma == pytest.approx(dataset.noise_sigma / problem.intensity.scale)
    assert opened(tmp_path, lines_of(kspace)).noise_sigma == 0


def test_slices_and_the_first_of_everything_else(tmp_path, kspace):
    lines = lines_of(9 * kspace, slice=2, repetition=1) + lines_of(2 * kspace, slice=2)
    lines += lines_of(kspace, slice=0) + lines_of(7 * kspace, slice=0, contrast=1)
    dataset = opened(tmp_path, lines)
    assert len(dataset) == 2
    same(dataset.read(0), kspace)
    same(dataset.read(1), 2 * kspace)
    assert [w for w in dataset.warnings if "2 contrasts" in w]
    assert [w for w in dataset.warnings if "2 repetitions" in w]


def volume_lines(volume, partitions):
    """Lines of [partition, coil, read, phase] images, encoded along the first axis too."""
    n = np.arange(len(volume)) - len(volume) // 2
    wave = np.exp(-2j * np.pi * np.outer(n, n) / len(n)) / np.sqrt(len(n))
    encoded = np.einsum("kz,zcxy->kcxy", wave, fft2(volume))
    return [line for k in partitions for line in lines_of(encoded[k], kspace_encode_step_2=k)]


def test_partitions_of_a_volume_become_slices(tmp_path, image):
    volume = np.stack([image, 2 * image[::-1], 0.5 * image, image[:, ::-1]])[:, None]
    limits = {"limits_2": (0, 3, 2)}
    xml = header_xml((80, 64, 4), (80, 64, 2), (200, 160, 8), (200, 160, 4), **limits)
    dataset = opened(tmp_path, volume_lines(volume, range(4)), xml)
    assert len(dataset) == 2  # two of four partitions are slice oversampling
    same(ifft2(dataset.read(0)), volume[1])
    same(ifft2(dataset.read(1)), volume[2])
    assert dataset.placements[1].position[2] - dataset.placements[0].position[2] == 2


def test_a_volume_undersampled_in_both_phase_directions_gives_slices_along_its_readout(
    tmp_path, image
):
    """Twenty partitions of forty lines; the readout of eighty samples is oversampled twice."""
    rng = np.random.default_rng(0)
    volume = np.stack([image * (1 + 0.1 * z) for z in range(20)])[:, None, :, 12:52]
    volume[:, :, :20] = volume[:, :, 60:] = 0
    sampled = rng.random((20, 40)) < 0.5
    sampled[7:13, 16:24] = True
    limits = {"limits": (0, 39, 20), "limits_2": (0, 19, 10)}
    xml = header_xml((80, 40, 20), (40, 40, 20), (160, 80, 40), (80, 80, 40), **limits)
    lines = [
        line
        for line in volume_lines(volume, range(20))
        if sampled[line.counters["kspace_encode_step_2"], line.counters["kspace_encode_step_1"]]
    ]
    dataset = opened(tmp_path, lines, xml)
    assert (len(dataset), dataset.image_size, dataset.pixel_mm) == (40, (40, 20), (2, 2))
    for number in (8, 25):
        expected = volume[:, :, 20 + number].transpose(1, 2, 0)  # [coil, line, partition]
        np.testing.assert_allclose(dataset.read(number), fft2(expected) * sampled.T, atol=1e-4)
        assert np.array_equal(dataset.mask(number).sampled, sampled.T)


def test_the_placement_comes_from_position_and_directions(tmp_path, kspace):
    lines = lines_of(kspace)
    for line in lines:
        line.values = {
            "position": (10, -20, 30),
            "read_dir": (0, 1, 0),
            "phase_dir": (1, 0, 0),
            "slice_dir": (0, 0, -1),
        }
    (placement,) = opened(tmp_path, lines).placements
    assert placement.along_row == (1, 0, 0)  # columns rise along the phase encoding
    assert placement.along_column == (0, 1, 0)
    assert placement.position == (10 - 32 * 2.5, -20 - 40 * 2.5, 30)
    assert placement.spacing_mm == (2.5, 2.5)
    assert placement.thickness_mm == 5
    for line in lines:
        line.values["read_dir"] = (0, 0, 0)
    assert opened(tmp_path, lines).placements is None


def test_one_of_several_measurements_is_chosen(tmp_path, kspace):
    path = write_mrd(tmp_path / "scan.h5", lines_of(kspace), XML)
    write_mrd(path, lines_of(2 * kspace), XML, group="second", mode="a")
    first = open_kspace_h5(path, InputOptions())
    same(first.read(0), kspace)
    assert any("2 measurements" in warning for warning in first.warnings)
    same(open_kspace_h5(path, InputOptions(dataset="second")).read(0), 2 * kspace)
    with pytest.raises(RequestError, match="no measurement"):
        open_kspace_h5(path, InputOptions(dataset="third"))


def test_a_missing_echo_centre_is_said(tmp_path, kspace):
    lines = lines_of(kspace)
    for line in lines:
        line.values = {"center_sample": 0}
    dataset = opened(tmp_path, lines)
    same(dataset.read(0), kspace)
    assert any("middle sample is assumed" in warning for warning in dataset.warnings)


@pytest.mark.parametrize(
    "storage",
    [
        {"chunks": (7,)},
        {"chunks": (64,), "compression": "gzip", "shuffle": True, "fletcher32": True},
        {},  # contiguous
    ],
)
def test_headers_are_read_however_the_records_are_stored(tmp_path, kspace, storage):
    path = write_mrd(tmp_path / "a.h5", lines_of(kspace), XML)
    with h5py.File(path) as file, h5py.File(tmp_path / "b.h5", "w") as copy:
        copy["dataset/xml"] = XML
        copy.create_dataset("dataset/data", data=file["dataset/data"][()], **storage)
    same(open_kspace_h5(tmp_path / "b.h5", InputOptions()).read(0), kspace)
