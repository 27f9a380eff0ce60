"""A series that holds several stacks is told apart; an ordinary one never is."""

import json

import numpy as np
import pytest
from dicom_files import picture, write_enhanced, write_series, write_slice
from pydicom import uid

from engine.cli import main
from engine.data.readers.dicom.reader import open_dicom
from engine.data.readers.dicom.series import find_series
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

HEIGHTS = [0.0, 2.0, 4.0, 6.0]


def stacks(folder, count, heights=HEIGHTS, modality="MR", tags=lambda stack, number: {}):
    """``count`` stacks in the same places; every picture differs. Instance numbers have no use."""
    for stack in range(count):
        for number, height in enumerate(heights):
            own = {
                "ImagePositionPatient": [-20.0, -30.0, height],
                "SOPInstanceUID": uid.generate_uid(),
                "InstanceNumber": 1,
                **tags(stack, number),
            }
            stored = picture(10 * stack + number)
            write_slice(folder / f"{number}_{stack}.dcm", modality, stored, **own)


def labels(folder):
    return [series.part for series in find_series(folder)]


def opened(folder, number):
    return open_dicom(folder, InputOptions(dataset=str(number)))


@pytest.mark.parametrize(
    ("keyword", "values", "said"),
    [
        ("EchoTime", [2.5, 5.0, 7.5], "echo 2 of 3 (TE 5 ms)"),
        ("DiffusionBValue", [0.0, 500.0, 1000.0], "b-value 2 of 3 (b = 500)"),
        (
            "DiffusionGradientOrientation",
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            "direction 2 of 3",
        ),
        ("TemporalPositionIdentifier", [1, 2, 3], "time point 2 of 3"),
        ("ConvolutionKernel", ["B30f", "B70f", "B80f"], "kernel 2 of 3"),
        ("AcquisitionNumber", [1, 2, 3], "acquisition 2 of 3"),
        ("TriggerTime", [0.0, 40.0, 80.0], "phase 2 of 3"),
        ("AcquisitionTime", ["101500", "101530", "101600.5"], "acquisition 2 of 3"),
        ("ContentTime", ["101500", "101530", "101600"], "repeat 2 of 3"),
        ("InstanceNumber", [1, 101, 201], "repeat 2 of 3"),
    ],
)
def test_the_tag_that_explains_repeated_places_splits_the_series(tmp_path, keyword, values, said):
    def tags(stack, number):
        start = values[stack]
        return {keyword: start + number if keyword == "InstanceNumber" else start}

    stacks(tmp_path, 3, tags=tags)
    assert labels(tmp_path)[1] == said
    for number in range(3):
        dataset = opened(tmp_path, number + 1)
        assert dataset.count == len(HEIGHTS)
        for i in range(len(HEIGHTS)):  # and no slice is of another stack
            np.testing.assert_array_equal(dataset.read(i), picture(10 * number + i))
        check = next(check for check in dataset.checks if check.name == "stacks")
        assert check.verdict == "corrected"
        assert keyword in check.sentence
        dataset.refuse_blocked()


def test_image_types_in_the_same_places_are_stacks_and_the_label_repeats_no_text(tmp_path):
    kinds = ["WATER", "FAT"]
    stacks(tmp_path, 2, tags=lambda s, n: {"ImageType": ["DERIVED", "PRIMARY", "DIXON", kinds[s]]})
    assert sorted(labels(tmp_path)) == ["image type 1 of 2", "image type 2 of 2"]


def test_echoes_of_several_time_points_are_told_apart_by_both(tmp_path):
    def tags(stack, number):
        return {"EchoTime": 2.0 + stack % 2, "AcquisitionTime": f"10{10 + stack}{10 + number}"}

    stacks(tmp_path, 4, tags=tags)
    assert labels(tmp_path) == [
        f"acquisition {turn} of 2, echo {echo} of 2 (TE {echo + 1} ms)"
        for echo in (1, 2)
        for turn in (1, 2)
    ]


def test_times_that_differ_on_every_slice_still_tell_two_passes_apart(tmp_path):
    stacks(tmp_path, 2, tags=lambda s, n: {"AcquisitionTime": f"10{10 + s}{10 + n}"})
    assert labels(tmp_path) == ["acquisition 1 of 2", "acquisition 2 of 2"]


def test_an_ordinary_series_is_never_split(tmp_path):
    """Step and shoot: time, number and trigger differ from slice to slice, the type once."""
    for number in range(12):
        kind = "AXIAL" if number < 8 else "HELIX"
        tags = {
            "ImagePositionPatient": [-20.0, -30.0, 2.0 * number],
            "ImageType": ["ORIGINAL", "PRIMARY", kind],
            "AcquisitionNumber": 1 + number // 2,
            "AcquisitionTime": f"1015{10 + number}",
            "ContentTime": f"1016{10 + 11 * number % 12}",
            "TriggerTime": 37.0 * number,
            "InstanceNumber": number + 1,
        }
        write_slice(tmp_path / f"{number}.dcm", stored=picture(number), **tags)
    write_slice(tmp_path / "scout.dcm", ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"])
    assert labels(tmp_path) == [""]
    assert opened(tmp_path, 1).count == 12


def test_slices_measured_in_two_passes_are_one_stack(tmp_path):
    """The even slices first, then the odd ones: nothing overlaps and the spacing is even."""
    for number in range(10):
        tags = {"AcquisitionNumber": 1 + number % 2, "AcquisitionTime": f"10{10 + number % 2}00"}
        place = [-20.0, -30.0, 3.0 * number]
        write_slice(tmp_path / f"{number}.dcm", "MR", ImagePositionPatient=place, **tags)
    assert labels(tmp_path) == [""]


def test_neighbouring_blocks_that_share_a_slice_are_not_taken_for_stacks(tmp_path):
    for block in range(2):
        for number in range(4):
            place = [-20.0, -30.0, 2.0 * (3 * block + number)]
            write_slice(
                tmp_path / f"{block}{number}.dcm",
                stored=picture(4 * block + number),
                ImagePositionPatient=place,
                AcquisitionNumber=block + 1,
            )
    assert labels(tmp_path) == [""]


def test_acquisitions_that_lie_between_each_other_are_separated(tmp_path):
    """Three phases, each evenly spaced, none in the places of another one."""
    for stack, shift in enumerate((0.0, 1.3, 3.1)):
        for number in range(6):
            place = [-20.0, -30.0, shift + 5.0 * number]
            tags = {"ImagePositionPatient": place, "AcquisitionNumber": stack + 1}
            stored = picture(10 * stack + number)
            write_slice(tmp_path / f"{number}_{stack}.dcm", stored=stored, **tags)
    assert labels(tmp_path) == [f"acquisition {number} of 3" for number in (1, 2, 3)]
    dataset = opened(tmp_path, 2)
    assert [place.position[2] for place in dataset.placements] == [1.3 + 5.0 * n for n in range(6)]
    assert next(check for check in dataset.checks if check.name == "spacing").verdict == "good"


def test_places_that_no_tag_explains_are_one_stack_and_block_a_run(tmp_path):
    stacks(tmp_path, 2)
    assert labels(tmp_path) == [""]
    dataset = opened(tmp_path, 1)
    assert dataset.count == 2 * len(HEIGHTS)
    with pytest.raises(RequestError, match=r"4 places hold several slices.*--ignore-checks"):
        dataset.refuse_blocked()


def test_the_same_pixels_twice_in_one_place_are_one_slice(tmp_path):
    write_series(tmp_path, HEIGHTS)
    tags = {"ImagePositionPatient": [-20.0, -30.0, 2.0], "InstanceNumber": 3}
    write_slice(tmp_path / "again.dcm", stored=picture(1), **tags)  # a UID of its own
    dataset = opened(tmp_path, 1)
    assert dataset.count == 4
    assert "1 slices are there twice" in " ".join(dataset.notices)
    dataset.refuse_blocked()


def test_stacks_that_are_numbered_place_by_place_are_told_apart(tmp_path):
    """Two b-values of two directions each, numbered slice by slice through all of them."""

    def tags(stack, number):
        return {"DiffusionBValue": 500.0 * (stack // 2), "InstanceNumber": 4 * number + stack + 1}

    stacks(tmp_path, 4, tags=tags)
    assert [words.split(",")[0] for words in labels(tmp_path)] == 2 * [
        "repeat 1 of 2",
        "repeat 2 of 2",
    ]


def test_images_of_one_place_stay_one_sequence(tmp_path):
    stacks(tmp_path, 5, heights=[0.0], tags=lambda s, n: {"TriggerTime": 40.0 * s})
    assert labels(tmp_path) == [""]
    assert "All 5 slices lie in one place" in " ".join(opened(tmp_path, 1).notices)


def test_frames_of_an_enhanced_file_are_told_apart_too(tmp_path):
    write_enhanced(tmp_path / "e.dcm", [0.0, 2.0, 4.0, 0.0, 2.0, 4.0])
    assert labels(tmp_path) == ["repeat 1 of 2", "repeat 2 of 2"]
    np.testing.assert_array_equal(opened(tmp_path, 2).read(0), picture(3) - 1024.0)


def test_magnitude_and_phase_of_one_echo_stay_together(tmp_path):
    for kind, base in (("M", 0), ("P", 50)):
        for echo in range(2):
            for number, height in enumerate(HEIGHTS):
                tags = {"ImageType": ["ORIGINAL", "PRIMARY", kind], "EchoTime": 2.0 + echo}
                tags |= {"ImagePositionPatient": [-20.0, -30.0, height]}
                name = f"{kind}{echo}{number}.dcm"
                stored = picture(base + 10 * echo + number) % 4096
                write_slice(tmp_path / name, "MR", stored, pixels={"bits": 12}, **tags)
    assert len(labels(tmp_path)) == 2
    dataset = opened(tmp_path, 2)
    assert np.iscomplexobj(dataset.read(0))
    np.testing.assert_allclose(np.abs(dataset.read(0)), picture(10) % 4096, rtol=1e-6)
    assert not any("could complete" in words for words in dataset.warnings)


def test_a_series_named_by_its_uid_opens_its_largest_stack_and_says_so(tmp_path):
    stacks(tmp_path, 2, tags=lambda s, n: {"EchoTime": 2.0 + s})
    dataset = open_dicom(tmp_path, InputOptions(dataset="1.2.3.4"))
    assert "The series holds 2 stacks; number 1 (echo 1 of 2 (TE 2 ms))" in dataset.warnings[0]


def test_a_blocked_run_is_refused_and_ignoring_the_checks_is_recorded(tmp_path, capsys):
    folder, record = tmp_path / "scan", tmp_path / "run.json"
    stacks(folder, 2, modality="CT")
    words = ["reconstruct", str(folder), "--solver", "fbp", "--slice", "0", "--views", "8"]
    words += ["--prior", "gaussian", "--device", "cpu", "--record", str(record)]
    assert main(words) == 2
    assert "scan: 4 places hold several slices" in capsys.readouterr().err
    assert not record.exists()
    assert main([*words, "--ignore-checks"]) == 0
    body = json.loads(record.read_text())
    assert body["job"]["ignore_checks"] is True
    said = {check["name"]: check for check in body["input"]["checks"]}
    assert said["places"]["verdict"] == "blocking"
    assert said["places"]["sentence"] in body["input"]["warnings"]
