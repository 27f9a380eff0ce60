"""MR parts that belong together become complex images; those that do not are left alone."""

import numpy as np
import pytest
from dicom_files import COLUMNS, ROWS, picture, write_enhanced, write_series, write_slice

from engine.data.readers.dicom.reader import open_dicom
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

HEIGHTS = (0.0, 3.0)


def opened(path, **options):
    return open_dicom(path, InputOptions(**options))


def said(dataset):
    return " | ".join(dataset.notices)


def parts(folder, kind, stored, heights=HEIGHTS, pixels=None, **tags):
    for number, height in enumerate(heights):
        write_slice(
            folder / f"{number}.dcm",
            "MR",
            stored(number),
            pixels=pixels,
            ImageType=["ORIGINAL", "PRIMARY", kind],
            ImagePositionPatient=[-20.0, -30.0, height],
            InstanceNumber=9 - number,
            **tags,
        )


def angles(number):
    row, column = np.mgrid[:ROWS, :COLUMNS]
    return 0.3 * number + 2.4 * row / ROWS - 2.6 * column / COLUMNS  # within half a turn either way


def expected(number):
    return picture(number) * np.exp(1j * angles(number))


# how makers store phases: (name, stored values of an angle, tags, pixel options, tolerance)
CONVENTIONS = [
    (
        "Siemens",
        lambda a: np.round((a / np.pi * 4096 + 4096) / 2),
        {"RescaleSlope": 2, "RescaleIntercept": -4096},
        {"bits": 12},
    ),
    (
        "Philips",
        lambda a: np.round((a * 1000 + 3142) / 1.5343),
        {"RescaleSlope": 1.5343, "RescaleIntercept": -3142},
        {"bits": 12},
    ),
    ("GE", lambda a: np.round(a * 1000), {}, {"signed": True}),
    ("plain", lambda a: np.round((a / np.pi + 1) * 2048), {}, {"bits": 12}),
    (
        "radians",
        lambda a: np.round((a + np.pi) / (2 * np.pi / 65536)),
        {"RescaleSlope": 2 * np.pi / 65536, "RescaleIntercept": -np.pi},
        {},
    ),
]


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c[0])
def test_magnitude_and_phase_of_two_series(tmp_path, convention):
    _, store, tags, pixels = convention
    short = {key: float(f"{value:.12g}") for key, value in tags.items()}
    parts(tmp_path / "m", "M", picture, SeriesInstanceUID="1.1", SeriesNumber=1)
    parts(
        tmp_path / "p",
        "P",
        lambda number: store(angles(number)).astype(int),
        pixels=pixels,
        SeriesInstanceUID="1.2",
        SeriesNumber=2,
        **short,
    )
    dataset = opened(tmp_path)
    assert dataset.count == 2
    for number in range(2):
        image = dataset.read(number)
        assert image.dtype == np.complex64
        assert np.abs(image - expected(number)).max() < 0.002 * picture(number).max()
    assert any(fact.name == "phase" for fact in dataset.facts)
    assert len(dataset.files) == 4
    flipped = opened(tmp_path, dataset="2")  # asking for the phase series gives the same images
    np.testing.assert_allclose(flipped.read(1), dataset.read(1))


def test_real_and_imaginary(tmp_path):
    parts(tmp_path / "r", "R", picture, SeriesInstanceUID="1.1")
    parts(
        tmp_path / "i",
        "I",
        lambda n: -2 * picture(n),
        pixels={"signed": True},
        SeriesInstanceUID="1.2",
    )
    for choice in ("1", "2"):
        image = opened(tmp_path, dataset=choice).read(1)
        np.testing.assert_allclose(image, picture(1) * (1 - 2j))


def test_parts_within_one_series(tmp_path):
    tags = {"SeriesInstanceUID": "1.1"}
    parts(tmp_path / "r", "R", picture, **tags)
    parts(tmp_path / "i", "I", lambda n: picture(n) + 1, **tags)
    dataset = opened(tmp_path)
    assert dataset.count == 2
    np.testing.assert_allclose(dataset.read(0), picture(0) + 1j * (picture(0) + 1))
    assert dataset.warnings == []


def test_parts_within_one_enhanced_file(tmp_path):
    path = write_enhanced(
        tmp_path / "e.dcm", [0.0, 3.0, 0.0, 3.0], "MR", frame_types=["R", "R", "I", "I"]
    )
    dataset = opened(path)
    assert dataset.count == 2
    real, imaginary = picture(1) - 1024.0, picture(3) - 1024.0
    np.testing.assert_allclose(dataset.read(1), real + 1j * imaginary)


@pytest.mark.parametrize(
    ("heights", "tags"),
    [
        ((0.0, 3.5), {}),
        ((0.0,), {}),
        (HEIGHTS, {"EchoTime": 9.0}),
        (HEIGHTS, {"StudyInstanceUID": "1.2.99"}),
        (HEIGHTS, {"PixelSpacing": [0.8, 0.9]}),
        (HEIGHTS, {"ImageOrientationPatient": [1.0, 0, 0, 0, -1, 0]}),
    ],
)
def test_parts_from_elsewhere_are_not_paired(tmp_path, heights, tags):
    parts(tmp_path / "m", "M", picture, SeriesInstanceUID="1.1", EchoTime=4.0)
    tags = {"EchoTime": 4.0, "SeriesInstanceUID": "1.2", **tags}
    parts(tmp_path / "p", "P", picture, heights=heights, **tags)
    uid_of_magnitude = opened(tmp_path, dataset="1.1")
    assert uid_of_magnitude.read(0).dtype == np.float32


def test_phase_alone_is_refused(tmp_path):
    parts(tmp_path, "P", picture)
    with pytest.raises(RequestError, match="phase images, and no magnitude"):
        opened(tmp_path)


def test_real_alone_is_said(tmp_path):
    parts(tmp_path, "R", picture)
    assert "Only the real part was found" in said(opened(tmp_path))


def test_magnitude_alone_is_real(tmp_path):
    write_series(tmp_path, HEIGHTS, "MR", RescaleSlope=0.5, RescaleIntercept=0)
    dataset = opened(tmp_path)
    np.testing.assert_array_equal(dataset.read(1), 0.5 * picture(1))
    assert dataset.warnings == []
