"""DICOM images: the right slices in the right order, in HU, where they lie in the patient."""

import numpy as np
import pytest
from dicom_files import (
    COLUMNS,
    ROWS,
    SECRETS,
    header,
    picture,
    save,
    set_pixels,
    write_dicomdir,
    write_enhanced,
    write_series,
    write_slice,
)
from pydicom import uid

from engine.data.readers.dicom.reader import open_dicom
from engine.data.readers.dicom.series import find_series
from engine.data.source import open_input
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

OPTIONS = InputOptions()


def opened(path, **options):
    return open_dicom(path, InputOptions(**options))


def said(dataset):
    return " | ".join(dataset.notices)


def fact(dataset, name):
    return next(fact for fact in dataset.facts if fact.name == name)


def test_slices_follow_their_positions_and_not_their_names_or_numbers(tmp_path):
    write_series(tmp_path, [0.0, 2.5, 5.0, 7.5, 10.0])
    dataset = open_input(str(tmp_path))
    assert (dataset.kind, dataset.modality, dataset.count) == ("image", "CT", 5)
    for number in range(5):
        np.testing.assert_array_equal(dataset.read(number), picture(number) - 1024.0)
        assert dataset.read(number).dtype == np.float32
        assert dataset.placements[number].position == (-20.0, -30.0, 2.5 * number)
        assert float(dataset.headers(number).ImagePositionPatient[2]) == 2.5 * number
    assert dataset.notices == []
    assert fact(dataset, "slice spacing").value == "2.5 mm"


def test_order_is_along_the_normal_of_sagittal_slices(tmp_path):
    """Rows run to the back, columns to the feet: the normal points to the right (-x)."""
    sagittal = [0.0, 1.0, 0.0, 0.0, 0.0, -1.0]
    write_series(
        tmp_path, [0.0, 3.0, 6.0], direction=(1.0, 0.0, 0.0), ImageOrientationPatient=sagittal
    )
    dataset = opened(tmp_path)
    assert [place.position[0] for place in dataset.placements] == [-14.0, -17.0, -20.0]
    assert dataset.placements[0].normal == (-1.0, 0.0, 0.0)
    np.testing.assert_array_equal(dataset.read(0), picture(2) - 1024.0)


def test_spacing_is_rows_then_columns_and_thickness_says_its_origin(tmp_path):
    write_series(tmp_path, [0.0, 4.0], PixelSpacing=[0.7, 0.9], SliceThickness=None)
    dataset = opened(tmp_path)
    assert dataset.pixel_mm == (0.7, 0.9)
    assert dataset.image_size == (ROWS, COLUMNS)
    assert dataset.placements[0].spacing_mm == (0.7, 0.9)
    assert dataset.placements[0].thickness_mm == 4.0
    assert fact(dataset, "slice thickness").origin == "ImagePositionPatient"
    thick = opened(write_slice(tmp_path / "one.dcm", SliceThickness=None, SpacingBetweenSlices=3))
    assert thick.placements[0].thickness_mm == 3.0
    assert fact(thick, "slice thickness").origin == "SpacingBetweenSlices"


def test_missing_slices_are_counted_and_placed(tmp_path):
    write_series(tmp_path, [0.0, 2.0, 4.0, 10.0, 12.0, 14.0])
    assert "2 slices are missing: 2 between slices 2 and 3" in said(opened(tmp_path))


def test_uneven_spacing_is_said(tmp_path):
    write_series(tmp_path, [0.0, 2.0, 4.0, 6.5, 8.5])
    assert "unevenly spaced: 2 to 2.5 mm" in said(opened(tmp_path))


def test_two_slices_in_one_place_are_kept_and_block_a_run(tmp_path):
    write_series(tmp_path, [0.0, 2.0, 2.0, 4.0])
    dataset = opened(tmp_path)
    assert dataset.count == 4
    assert "1 place holds several slices (up to 2)" in said(dataset)
    with pytest.raises(RequestError, match="no tag tells which stack"):
        dataset.refuse_blocked()


def test_a_file_that_is_there_twice_is_taken_once(tmp_path):
    files = write_series(tmp_path, [0.0, 2.0])
    (tmp_path / "copy.dcm").write_bytes(files[0].read_bytes())
    dataset = opened(tmp_path)
    assert dataset.count == 2
    assert "1 slices are there twice" in said(dataset)


def test_a_tilted_gantry_is_measured_from_the_positions(tmp_path):
    angle = np.radians(15.0)
    write_series(tmp_path, [0.0, 2.0, 4.0], direction=(0.0, np.sin(angle), np.cos(angle)))
    assert "15.0 degrees to their normal (gantry tilt)" in said(opened(tmp_path))
    one = write_slice(tmp_path / "one" / "a.dcm", GantryDetectorTilt=-12.5)
    assert "tilted by -12.5 degrees" in said(opened(one))


def test_the_largest_consistent_group_is_opened(tmp_path):
    write_series(tmp_path, [0.0, 2.0, 4.0])
    write_slice(tmp_path / "small.dcm", stored=picture(0, 6, 6))
    write_slice(tmp_path / "side.dcm", ImageOrientationPatient=[0.0, 1, 0, 0, 0, -1])
    write_slice(tmp_path / "fine.dcm", PixelSpacing=[0.4, 0.4])
    dataset = opened(tmp_path)
    assert dataset.count == 3
    assert "3 of 6 slices differ in" in said(dataset)
    for name in ("size", "orientation", "pixel spacing"):
        assert name in said(dataset)


def test_localizers_are_left_out_and_alone_refused(tmp_path):
    write_series(tmp_path, [0.0, 2.0])
    scout = write_slice(tmp_path / "scout.dcm", ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"])
    dataset = opened(tmp_path)
    assert dataset.count == 2
    assert "1 localizer images were left out" in said(dataset)
    with pytest.raises(RequestError, match=r"scout\.dcm holds a CT localizer"):
        opened(scout)


def test_without_geometry_there_is_no_placement_and_instance_number_orders(tmp_path):
    write_series(tmp_path, [0.0, 2.0, 4.0], ImageOrientationPatient=None)
    dataset = opened(tmp_path)
    assert dataset.placements is None
    assert "without placement" in said(dataset)
    np.testing.assert_array_equal(dataset.read(0), picture(2) - 1024.0)  # numbered backwards


@pytest.mark.parametrize(
    "tags",
    [
        {"ImageOrientationPatient": [1.0, 0, 0, 1, 0, 0]},
        {"ImageOrientationPatient": [0.0] * 6},
        {"PixelSpacing": [0.0, 0.8]},
        {"ImagePositionPatient": [1.0, 2.0]},
    ],
)
def test_impossible_geometry_is_not_used(tmp_path, tags):
    dataset = opened(write_slice(tmp_path / "a.dcm", **tags))
    assert dataset.placements is None


def test_missing_pixel_size_may_be_given(tmp_path):
    path = write_slice(tmp_path / "a.dcm", PixelSpacing=None)
    assert opened(path).pixel_mm is None
    dataset = opened(path, pixel_mm=0.5)
    assert dataset.pixel_mm == (0.5, 0.5)
    assert fact(dataset, "pixel").origin == "option"
    assert opened(write_slice(tmp_path / "b.dcm"), pixel_mm=0.5).pixel_mm == (0.8, 0.8)


def test_series_are_listed_and_chosen_by_number_or_uid(tmp_path):
    write_series(tmp_path / "a", [0.0, 2.0], SeriesInstanceUID="1.2.1", SeriesNumber=7)
    write_series(
        tmp_path / "b" / "deep", [0.0, 2.0, 4.0], SeriesInstanceUID="1.2.2", SeriesNumber=2
    )
    write_slice(tmp_path / "dose.dcm", "RTDOSE", SeriesInstanceUID="1.2.9", SeriesNumber=9)
    (tmp_path / "notes.txt").write_text("not DICOM")
    found = find_series(tmp_path)
    assert [(s.number, s.key, s.count, s.modality) for s in found] == [
        (1, "1.2.2", 3, "CT"),
        (2, "1.2.1", 2, "CT"),
        (3, "1.2.9", 0, "RTDOSE"),
    ]
    assert found[2].refusal is not None
    dataset = opened(tmp_path)
    assert dataset.count == 3
    assert "There are 3 series; number 1 with 3 slices was opened" in said(dataset)
    assert opened(tmp_path, dataset="2").count == 2
    assert opened(tmp_path, dataset="1.2.1").count == 2
    assert said(opened(tmp_path, dataset="2")) == ""
    with pytest.raises(RequestError, match="number from 1 to 3"):
        opened(tmp_path, dataset="4")
    with pytest.raises(RequestError, match=r"dose\.dcm"):
        opened(tmp_path, dataset="3")


def test_a_single_file_opens_alone(tmp_path):
    files = write_series(tmp_path, [0.0, 2.0, 4.0])
    assert opened(files[1]).count == 1


def test_any_name_is_recognised_by_its_content(tmp_path):
    write_slice(tmp_path / "IM000001")
    write_slice(tmp_path / "scan.npy")
    for name in ("IM000001", "scan.npy"):
        assert open_input(str(tmp_path / name)).modality == "CT"


def test_a_folder_without_dicom_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("not DICOM")
    with pytest.raises(RequestError, match="holds no DICOM files"):
        open_input(str(tmp_path))


def test_a_dicomdir_lists_its_files_and_never_leaves_its_folder(tmp_path):
    disc = tmp_path / "disc"
    write_series(disc / "A", [0.0, 2.0])
    names = [("A", path.name) for path in sorted((disc / "A").iterdir())]
    outside = write_slice(tmp_path / "outside.dcm")
    (disc / "LINK").symlink_to(outside)
    wrong = [("..", "outside.dcm"), (str(outside),), ("LINK",), ("A/../../outside.dcm",)]
    write_dicomdir(disc / "DICOMDIR", [*names, *wrong, ("A", "GONE")])
    dataset = open_input(str(disc / "DICOMDIR"))
    assert dataset.count == 2
    assert "4 files named by the DICOMDIR are outside its folder" in said(dataset)
    assert "1 files named by the DICOMDIR are not there" in said(dataset)
    assert outside not in dataset.files


def test_enhanced_frames_have_their_own_place_and_rescale(tmp_path):
    path = write_enhanced(tmp_path / "e.dcm", [4.0, 0.0, 2.0], slopes=[1.0, 2.0, 0.5])
    dataset = opened(path)
    assert dataset.count == 3
    assert [place.position[2] for place in dataset.placements] == [0.0, 2.0, 4.0]
    for number, (frame, slope) in enumerate([(1, 2.0), (2, 0.5), (0, 1.0)]):
        np.testing.assert_allclose(dataset.read(number), slope * picture(frame) - 1024.0)
    assert dataset.pixel_mm == (0.8, 0.8)
    assert dataset.placements[0].thickness_mm == 2.0
    assert "rescale differs" in said(dataset)


def test_header_of_an_enhanced_frame_is_flattened_to_classic_elements(tmp_path):
    dataset = opened(write_enhanced(tmp_path / "e.dcm", [4.0, 0.0], slopes=[1.0, 2.0]))
    flat = dataset.headers(0)
    assert flat.ImagePositionPatient == [-20.0, -30.0, 0.0]
    assert flat.ImageOrientationPatient == [1, 0, 0, 0, 1, 0]
    assert flat.PixelSpacing == [0.8, 0.8]
    assert (flat.SliceThickness, flat.RescaleSlope, flat.RescaleIntercept) == (2, 2, -1024)
    for keyword in ("PerFrameFunctionalGroupsSequence", "NumberOfFrames", "PixelData"):
        assert keyword not in flat


def test_compressed_enhanced_frames_are_read_one_by_one(tmp_path):
    path = write_enhanced(tmp_path / "e.dcm", [0.0, 2.0, 4.0], syntax=uid.RLELossless)
    dataset = opened(path)
    for number in (2, 0, 1):
        np.testing.assert_array_equal(dataset.read(number), picture(number) - 1024.0)


def test_ordinary_multiframe_has_frames_but_no_places(tmp_path):
    stored = np.stack([picture(number) for number in range(3)])
    dataset = opened(write_slice(tmp_path / "m.dcm", stored=stored))
    assert dataset.count == 3
    assert dataset.placements is None
    np.testing.assert_array_equal(dataset.read(2), picture(2) - 1024.0)


def test_nothing_that_is_said_names_the_patient(tmp_path):
    write_series(tmp_path / "a", [0.0, 2.0, 9.0], SeriesDescription=f"CT of {SECRETS[0]}")
    write_slice(tmp_path / "b.dcm", "PT", SeriesInstanceUID="1.9", SeriesDescription=SECRETS[0])
    dataset = opened(tmp_path)
    series = find_series(tmp_path)
    text = f"{dataset.description} {dataset.facts} {dataset.warnings} {series}"
    text += "".join(s.label for s in series)
    assert not any(secret in text for secret in SECRETS)
    assert SECRETS[0] in series[0].screen_text


def test_files_keep_their_order_for_the_hash(tmp_path):
    files = write_series(tmp_path, [0.0, 2.0, 4.0])
    assert opened(tmp_path).files == tuple(files)


def test_projections_are_left_to_their_own_reader(tmp_path):
    data = header()
    set_pixels(data, picture())
    data.add_new(0x70290010, "LO", "CT PROJECTION")
    data.add_new(0x70291010, "US", 8)
    path = save(tmp_path / "p.dcm", data)
    with pytest.raises(RequestError, match="is one CT projection of many"):
        opened(path)
    with pytest.raises(RequestError, match=r"p\.dcm is a CT projection"):
        opened(path, kind="image")
