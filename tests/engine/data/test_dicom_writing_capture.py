"""Screenshots as Secondary Capture."""

import numpy as np
import pydicom
import pytest
from dicom_results import source_header
from pydicom.uid import SecondaryCaptureImageStorage

from engine.export.dicom_capture import write_secondary_capture
from engine.spec.errors import RequestError


def gradient(*shape):
    return np.arange(np.prod(shape), dtype=np.int64).astype(np.uint8).reshape(shape)


@pytest.mark.parametrize("shape", [(7, 11), (7, 11, 3)])
def test_every_pixel_comes_back(tmp_path, shape):
    pixels = gradient(*shape)
    write_secondary_capture(tmp_path / "shot.dcm", pixels[::-1])  # a view that is not contiguous
    file = pydicom.dcmread(tmp_path / "shot.dcm")
    assert file.SOPClassUID == SecondaryCaptureImageStorage
    assert (file.pixel_array == pixels[::-1]).all()
    assert file.PhotometricInterpretation == ("RGB" if len(shape) == 3 else "MONOCHROME2")


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
    assert (file.ConversionType, file.SeriesDescription) == ("WSD", "Comparison")
    assert file.ImageComments == "Not for diagnostic use"
    assert notes == []


@pytest.mark.parametrize(
    "pixels", [gradient(2, 2).astype(np.float32), gradient(2, 3, 4), gradient(0, 4), gradient(5)]
)
def test_what_is_no_picture_is_refused(tmp_path, pixels):
    with pytest.raises(RequestError, match=r"shot\.dcm"):
        write_secondary_capture(tmp_path / "shot.dcm", pixels)
    assert not list(tmp_path.iterdir())
