"""Screenshots as Secondary Capture."""

import numpy as np
import pydicom
import pytest
from dicom_results import source_header
from pydicom.uid import SecondaryCaptureImageStorage

from engine.export.dicom import write_secondary_capture
from engine.spec.errors import RequestError
from engine.spec.marks import Marks


def gradient(*shape):
    return np.arange(np.prod(shape), dtype=np.int64).astype(np.uint8).reshape(shape)


@pytest.mark.parametrize("shape", [(270, 310), (270, 310, 3)])
def test_every_pixel_but_those_of_the_marks_comes_back(tmp_path, shape):
    pixels = gradient(*shape)
    for corner, kept in (("bottom left", slice(0, 230)), ("top right", slice(60, None))):
        path, marks = tmp_path / f"{corner}.dcm", Marks(corner=corner)
        write_secondary_capture(path, pixels[::-1], marks=marks)  # a view, not contiguous
        file = pydicom.dcmread(path)
        assert file.SOPClassUID == SecondaryCaptureImageStorage
        assert (file.pixel_array[kept] == pixels[::-1][kept]).all()
        assert (file.pixel_array != pixels[::-1]).any()
        assert file.PhotometricInterpretation == ("RGB" if len(shape) == 3 else "MONOCHROME2")


def test_a_small_screenshot_is_enlarged_until_its_marks_can_be_read(tmp_path):
    write_secondary_capture(tmp_path / "shot.dcm", np.zeros((12, 17), np.uint8))
    shown = pydicom.dcmread(tmp_path / "shot.dcm").pixel_array
    assert shown.shape[1] >= 240
    assert shown.shape[1] % 17 == shown.shape[0] % 12 == 0
    assert (shown == 255).any()


def test_captures_of_two_runs_are_two_series(tmp_path):
    seen = set()
    for number in (1, 2):
        path = tmp_path / "shot.dcm"
        write_secondary_capture(path, gradient(240, 240), source_header(), run_number=number)
        file = pydicom.dcmread(path)
        seen.add((int(file.SeriesNumber), file.SeriesDescription))
    assert seen == {
        (9004001, "Dualscope screenshot, run #1"),
        (9004002, "Dualscope screenshot, run #2"),
    }


def test_a_screenshot_joins_the_study_of_what_it_shows(tmp_path):
    notes = write_secondary_capture(
        tmp_path / "shot.dcm", gradient(7, 11), source_header(), title="Comparison"
    )
    file, source = pydicom.dcmread(tmp_path / "shot.dcm"), source_header()
    assert file.StudyInstanceUID == source.StudyInstanceUID
    assert file.PatientName == source.PatientName
    assert file.SeriesInstanceUID != source.SeriesInstanceUID
    assert file.SourceImageSequence[0].ReferencedSOPInstanceUID == source.SOPInstanceUID
    assert (file.BurnedInAnnotation, file.ContentQualification) == ("YES", "RESEARCH")
    assert (file.ConversionType, file.SeriesDescription[:10]) == ("WSD", "Comparison")
    assert file.ImageComments == "Not for diagnostic use"
    assert notes == []


@pytest.mark.parametrize(
    "pixels", [gradient(2, 2).astype(np.float32), gradient(2, 3, 4), gradient(0, 4), gradient(5)]
)
def test_what_is_no_picture_is_refused(tmp_path, pixels):
    with pytest.raises(RequestError, match=r"shot\.dcm"):
        write_secondary_capture(tmp_path / "shot.dcm", pixels)
    assert not list(tmp_path.iterdir())
