"""What a series is looked at for before a run: each finding has a verdict and says what to do."""

import numpy as np
import pytest
from dicom_files import SECRETS, header, picture, save, set_pixels, write_series, write_slice
from pydicom import uid
from pydicom.encaps import encapsulate

from engine.cli import main
from engine.data.images.shrink import shrunk
from engine.data.readers.dicom.integrity import share_of_edge
from engine.data.readers.dicom.reader import open_dicom
from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

SIDE = 128
ROW, COLUMN = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
RADIUS = np.hypot(ROW, COLUMN)


def opened(path, **options):
    return open_dicom(path, InputOptions(**options))


def verdicts(dataset):
    return {check.name: check.verdict for check in dataset.checks}


def check(dataset, name):
    return next(check for check in dataset.checks if check.name == name)


def body(radius=40.0, fill=None, shift=0.0):
    """A disc of water in air, HU; ``fill`` outside the scanner's field of view."""
    image = np.where(np.hypot(ROW, COLUMN - shift) < radius, 0, -1000)
    image = image + (7 * ROW + COLUMN).astype(int) % 20  # no two scans have exactly equal air
    if fill is not None:
        image = np.where(RADIUS > SIDE / 2 - 1, fill, image)
    return image


def write_body(path, image, **tags):
    tags = {"RescaleIntercept": 0} | tags
    return write_slice(path, stored=image, pixels={"signed": True}, **tags)


def test_a_good_series_has_only_good_checks(tmp_path):
    for number in range(5):
        place = [0.0, 0.0, 3.0 * number]
        write_body(tmp_path / f"{number}.dcm", body(), ImagePositionPatient=place)
    dataset = opened(tmp_path)
    names = "equal slices, places, spacing, gantry tilt, values, pixel size, compression, air"
    assert verdicts(dataset) == dict.fromkeys([*names.split(", "), "field of view"], "good")
    assert dataset.notices == []


@pytest.mark.parametrize("tags", [{}, {"PixelPaddingValue": -2000}])
def test_corners_at_minus_3024_are_air_whatever_the_padding_tag_says(tmp_path, tags):
    filled, plain = body(fill=-3024), body(fill=-1000)
    first = opened(write_body(tmp_path / "a.dcm", filled, **tags))
    second = opened(write_body(tmp_path / "b.dcm", plain))
    np.testing.assert_array_equal(first.read(0), second.read(0))
    said = check(first, "air")
    share = 100 * (filled == -3024).mean()
    assert said.verdict == "corrected"
    assert f"(down to -3024) are taken as air, -1000 HU: {share:.1f} % of" in said.sentence
    acquisition = {"views": 12}
    scans = [
        dataset.problem([0], acquisition, IntensityMap("hu", 1000.0), 0).measurement
        for dataset in (first, second)
    ]
    np.testing.assert_array_equal(*(scan.numpy() for scan in scans))


def test_what_lies_below_air_in_a_slice_that_was_not_looked_at_is_said_when_it_is_read(tmp_path):
    for number in range(9):
        image = body()
        image[5, 5] = -2048 if number == 6 else image[5, 5]
        place = [0.0, 0.0, 3.0 * number]
        write_body(tmp_path / f"{number}.dcm", image, ImagePositionPatient=place)
    dataset = opened(tmp_path)
    smaller = shrunk(dataset, SIDE // 2)
    assert verdicts(dataset)["air"] == "good"
    smaller.read(6)
    assert verdicts(dataset)["air"] == verdicts(smaller)["air"] == "corrected"


def test_noise_about_air_is_left_alone(tmp_path):
    image = body()
    image[0, :5] = -1024
    assert opened(write_body(tmp_path / "a.dcm", image)).read(0)[0, 0] == -1024


@pytest.mark.parametrize(
    ("image", "cut"),
    [
        (body(), False),
        (body(fill=-3024), False),
        (body(radius=70.0), True),  # corners of the square are beyond it, its sides are not
        (body(radius=80.0, fill=-3024), True),
        (body(shift=30.0, fill=-2048), True),
        (np.where(RADIUS < 40, 0, -1000), False),  # a phantom: its air is one number, too
    ],
    ids=["inside", "inside a disc", "square", "disc", "one side", "phantom"],
)
def test_a_body_that_reaches_the_edge_of_the_field_of_view_is_doubtful(tmp_path, image, cut):
    dataset = opened(write_body(tmp_path / "a.dcm", image))
    assert verdicts(dataset)["field of view"] == ("doubtful" if cut else "good")


def test_a_table_that_crosses_the_edge_is_no_body():
    image = body().astype(np.float32)
    image[110:113] = 100.0
    assert share_of_edge(image, image) == 0.0
    thick = image.copy()
    thick[90:] = 40.0
    assert share_of_edge(thick, thick) > 0.1


@pytest.mark.parametrize(
    ("tags", "name", "words"),
    [
        ({"LossyImageCompression": "01"}, "compression", "compressed with loss"),
        ({"BurnedInAnnotation": "YES"}, "burned-in text", "burned into the pixels"),
        ({"RescaleSlope": None}, "values", "is missing"),
        ({"RescaleType": "US"}, "values", "unspecified"),
        ({"RescaleIntercept": 3000}, "values", "nothing is as empty as air"),
        ({"PixelSpacing": None}, "pixel size", "PixelSpacing is missing"),
        ({"ImagePositionPatient": None}, "places", "do not say where they lie"),
        ({"GantryDetectorTilt": 12.0}, "gantry tilt", "tilted by 12 degrees"),
    ],
)
def test_what_is_doubtful_says_why_and_what_to_do(tmp_path, tags, name, words):
    dataset = opened(write_body(tmp_path / "a.dcm", body(), **tags))
    found = check(dataset, name)
    assert found.verdict == "doubtful"
    assert words in found.sentence
    assert found.fix
    assert found.sentence in dataset.notices
    dataset.refuse_blocked()


@pytest.mark.parametrize(
    ("heights", "name", "words"),
    [
        ([0.0, 2.0, 4.0, 10.0, 12.0], "missing slices", "2 slices are missing"),
        ([0.0, 2.0, 4.0, 6.5, 8.5], "spacing", "unevenly spaced: 2 to 2.5 mm"),
    ],
)
def test_missing_and_uneven_slices_are_doubtful(tmp_path, heights, name, words):
    write_series(tmp_path, heights)
    dataset = opened(tmp_path)
    assert check(dataset, name).verdict == "doubtful"
    assert words in check(dataset, name).sentence
    assert list(verdicts(dataset).values()).count("doubtful") == 1


def test_localizers_and_other_sizes_are_left_out_and_the_list_says_so(tmp_path):
    write_series(tmp_path, [0.0, 2.0, 4.0])
    write_slice(tmp_path / "scout.dcm", ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"])
    write_slice(tmp_path / "small.dcm", stored=picture(0, 40, 40))
    dataset = opened(tmp_path)
    assert dataset.count == 3
    assert (verdicts(dataset)["localizers"], verdicts(dataset)["equal slices"]) == (
        "corrected",
        "corrected",
    )


def test_oblong_pixels_block_a_ct_run_before_anything_is_computed(tmp_path, capsys):
    path = write_body(tmp_path / "a.dcm", body(), PixelSpacing=[0.8, 1.6])
    assert check(opened(path), "pixel size").verdict == "blocking"
    words = ["reconstruct", str(path), "--solver", "fbp", "-o", str(tmp_path / "a.npy")]
    assert main(words) == 2
    assert "The pixels are not square: 0.8 x 1.6 mm. Resample" in capsys.readouterr().err
    mr = write_slice(tmp_path / "mr.dcm", "MR", PixelSpacing=[0.8, 1.6])
    opened(mr).refuse_blocked()


def test_a_mosaic_blocks_a_run(tmp_path):
    kind = ["ORIGINAL", "PRIMARY", "M", "MOSAIC"]
    dataset = opened(write_slice(tmp_path / "a.dcm", "MR", ImageType=kind))
    with pytest.raises(RequestError, match="mosaic of many small slices"):
        dataset.refuse_blocked()


def test_a_slice_that_cannot_be_read_is_doubtful_and_its_file_is_not_named(tmp_path):
    for number in range(2):
        place = [0.0, 0.0, 9.0 * number]
        write_body(tmp_path / f"{number}.dcm", body(), ImagePositionPatient=place)
    frame = b"\xff\xd8\xff\xc0 this is no picture"
    tags = {"ImagePositionPatient": [0.0, 0.0, 18.0], "Rows": SIDE, "Columns": SIDE}
    data = header(**tags, SOPInstanceUID="1.2.3.9")
    set_pixels(data, np.zeros((SIDE, SIDE)), allocated=8)
    data.PixelSpacing, data.BitsAllocated = [0.8, 0.8], 8
    data.PixelData = encapsulate([frame])
    data["PixelData"].is_undefined_length = True
    save(tmp_path / f"{SECRETS[0]}.dcm", data, uid.JPEGBaseline8Bit)
    dataset = opened(tmp_path)
    assert check(dataset, "pixels").verdict == "doubtful"
    assert "Slice 2 (counted from 0) cannot be read" in check(dataset, "pixels").sentence
    assert SECRETS[0] not in str(dataset.checks)
    with pytest.raises(RequestError, match="Rumpelstilz"):
        dataset.read(2)


def test_inspect_lists_the_checks_with_marks_the_worst_first(tmp_path, capsys):
    write_series(tmp_path, [0.0, 2.0, 2.0, 4.0], BurnedInAnnotation="YES")
    assert main(["inspect", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    marks = [line.split()[:2] for line in lines if line[:3] in (" X ", " ? ", " ~ ", " + ")]
    assert marks[0] == ["X", "blocking"]
    assert marks[1] == ["?", "doubtful"]
    assert marks[-1] == ["+", "good"]
    assert not any(line.startswith("warning:") for line in lines)


def test_compare_prints_what_is_not_good_once(tmp_path, capsys):
    path = write_body(tmp_path / "a.dcm", body(fill=-3024))
    words = ["compare", str(path), "--solvers", "fbp,sirt:iterations=2", "--views", "6", "--quiet"]
    assert main([*words, "--device", "cpu"]) == 0
    assert capsys.readouterr().err.count("(down to -3024)") == 1
