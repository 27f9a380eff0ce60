"""Derived CT and MR images: true to the source, to the pixels and to how they were made."""

import io
import random
import re

import numpy as np
import pydicom
import pytest
from dicom_results import (
    COLUMNS,
    PRIOR,
    ROWS,
    make_result,
    oblique_placements,
    picture,
    source_header,
)
from pydicom.uid import JPEGBaseline8Bit

from engine.export.dicom import write_dicom, write_dicom_series
from engine.spec.errors import DualscopeError


def written(tmp_path, result):
    path = tmp_path / "out.dcm"
    notes = write_dicom(path, result)
    return pydicom.dcmread(path), notes


def from_source(modality="CT", values=None, **changes):
    header = source_header(modality)
    for keyword in changes.pop("without", ()):
        delattr(header, keyword)
    for keyword, value in changes.pop("header", {}).items():
        setattr(header, keyword, value)
    values = picture(1, modality) if values is None else values
    return make_result(values, modality, [header], oblique_placements(1), **changes)


def stored_hu(file):
    return file.pixel_array * float(file.RescaleSlope) + float(file.RescaleIntercept)


def test_ct_pixels_come_back_within_half_a_hu_and_not_flipped(tmp_path):
    values = picture()
    file, notes = written(tmp_path, from_source(values=values))
    assert file.pixel_array.shape == (ROWS, COLUMNS)
    assert np.abs(stored_hu(file) - values[0]).max() <= 0.5
    assert file.RescaleType == "HU"
    assert file.PixelRepresentation == 1
    assert not [note for note in notes if "clipped" in note]


def test_values_beyond_16_bit_are_clipped_and_counted(tmp_path):
    values = picture()
    values[0, 0, :3], values[0, 1, 0] = 40_000, -50_000
    file, notes = written(tmp_path, from_source(values=values))
    assert any("4 pixels" in note for note in notes)
    assert (file.pixel_array[0, :3] == 32767).all()
    assert file.pixel_array[1, 0] == -32768


def test_the_extreme_values_of_16_bit_are_not_counted_as_clipped(tmp_path):
    values = picture()
    values[0, 0, 0], values[0, 0, 1] = 32767.4, -32768.4
    _, notes = written(tmp_path, from_source(values=values))
    assert not [note for note in notes if "clipped" in note]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_not_a_number_is_refused_and_leaves_nothing(tmp_path, wrong):
    values = picture()
    values[0, 3, 3] = wrong
    with pytest.raises(DualscopeError, match="NaN"):
        write_dicom(tmp_path / "out.dcm", from_source(values=values))
    with pytest.raises(DualscopeError, match="NaN"):
        write_dicom_series(tmp_path / "series", from_source(values=values))
    assert not list(tmp_path.iterdir())


def test_an_oblique_slice_lies_where_its_source_did(tmp_path):
    file, _ = written(tmp_path, from_source())
    (placement,) = oblique_placements(1)
    assert file.ImagePositionPatient == pytest.approx(placement.position, abs=1e-5)
    directions = [*placement.along_row, *placement.along_column]
    assert file.ImageOrientationPatient == pytest.approx(directions, abs=1e-9)
    assert file.PixelSpacing == pytest.approx([0.7031251, 0.8123457], abs=1e-9)  # rows first
    assert float(file.SliceThickness) == 2.5
    assert file.FrameOfReferenceUID == "1.3.6.1.4.1.9999.3"
    height = np.dot(placement.position, placement.normal)
    assert float(file.SliceLocation) == pytest.approx(height, abs=1e-4)


def test_what_stays_true_is_copied_and_what_does_not_is_left(tmp_path):
    file, notes = written(tmp_path, from_source())
    source = source_header()
    kept = "PatientName PatientID PatientBirthDate PatientSex StudyInstanceUID StudyDate StudyTime"
    kept += " ReferringPhysicianName StudyID AccessionNumber PatientPosition KVP AcquisitionNumber"
    for keyword in kept.split():
        assert file[keyword].value == source[keyword].value, keyword
    gone = "ConvolutionKernel Exposure SmallestImagePixelValue LargestImagePixelValue"
    for keyword in [*gone.split(), "RequestAttributesSequence", "OtherPatientIDs"]:
        assert keyword not in file, keyword
    assert not [element for element in file.iterall() if element.tag.is_private]
    assert file.SeriesInstanceUID != source.SeriesInstanceUID
    assert file.SOPInstanceUID != source.SOPInstanceUID
    assert file.file_meta.MediaStorageSOPInstanceUID == file.SOPInstanceUID
    assert int(file.SeriesNumber) != int(source.SeriesNumber)
    assert notes == []


@pytest.mark.parametrize(("modality", "last"), [("CT", "AXIAL"), ("MR", "OTHER")])
def test_the_file_says_that_it_is_derived_and_for_research(tmp_path, modality, last):
    file, _ = written(tmp_path, from_source(modality))
    assert list(file.ImageType) == ["DERIVED", "SECONDARY", last]
    assert file.ContentQualification == "RESEARCH"
    assert file.ImageComments == "Not for diagnostic use"
    (reference,) = file.SourceImageSequence
    assert reference.ReferencedSOPInstanceUID == source_header(modality).SOPInstanceUID
    assert reference.PurposeOfReferenceCodeSequence[0].CodeValue == "121322"
    assert file.DerivationCodeSequence[0].CodeMeaning == "Iterative Reconstruction"
    assert [item.Manufacturer for item in file.ContributingEquipmentSequence] == [
        "ACME",
        "Dualscope",
    ]
    assert file.Manufacturer == "Dualscope"


@pytest.mark.parametrize(
    ("modality", "sampling"),
    [("CT", "3 fan views from 0 to 57.3 deg"), ("MR", "acceleration 6 (true 4.27), 25 ACS")],
)
def test_the_derivation_tells_how_to_make_it_again_but_not_from_which_file(
    tmp_path, modality, sampling
):
    file, _ = written(tmp_path, from_source(modality))
    text = file.DerivationDescription
    for word in ("dc-pnpdp", sampling, "NFE 50", "rho*sigma^2 1e-05", "seed 17", "CG iterations"):
        assert word in text
    assert PRIOR["name"] in text
    assert PRIOR["sha256"] in text
    assert "simulated" in text
    assert len(text) <= 1024
    assert "4711" not in text
    assert "home" not in text


def test_a_long_derivation_is_cut_to_what_the_standard_allows(tmp_path):
    result = from_source()
    result.record.prior = {"name": "n" * 5000, "sha256": "ab" * 32}
    result.record.job["solver"] = "s" * 2000
    file, _ = written(tmp_path, result)
    assert len(file.DerivationDescription) <= 1024
    assert len(file.SeriesDescription) <= 64


@pytest.mark.parametrize(
    ("solver", "meaning"), [("fbp", "Filtered Back Projection"), ("zero-filled", None)]
)
def test_the_code_of_the_derivation_fits_the_solver(tmp_path, solver, meaning):
    result = from_source()
    result.record.job["solver"] = solver
    file, _ = written(tmp_path, result)
    codes = [item.CodeMeaning for item in file.get("DerivationCodeSequence", [])]
    assert codes == ([meaning] if meaning else [])


def test_the_window_is_the_one_the_person_sees(tmp_path):
    file, _ = written(tmp_path, from_source(window=(40.0, 400.0)))
    assert (float(file.WindowCenter), float(file.WindowWidth)) == (40, 400)
    assert file.WindowCenterWidthExplanation == "As displayed"


def test_lossy_once_is_lossy_for_ever(tmp_path):
    file, _ = written(tmp_path, from_source())
    assert file.LossyImageCompression == "00"
    said = {"LossyImageCompression": "01", "LossyImageCompressionRatio": "7.5"}
    file, _ = written(tmp_path, from_source(header=said))
    assert file.LossyImageCompression == "01"
    assert float(file.LossyImageCompressionRatio) == 7.5
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID = JPEGBaseline8Bit  # lossy, although the header denies it
    file, _ = written(tmp_path, from_source(header={"file_meta": meta}))
    assert file.LossyImageCompression == "01"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({"BurnedInAnnotation": "YES"}, "YES"),
        ({"ImageType": ["DERIVED", "SECONDARY"]}, None),
        ({"ImageType": ["ORIGINAL", "PRIMARY", "AXIAL"]}, None),
        ({"BurnedInAnnotation": "NO"}, "NO"),
    ],
)
def test_burned_in_text_is_denied_only_where_the_source_denies_it(tmp_path, header, expected):
    file, _ = written(tmp_path, from_source(header=header))
    assert file.get("BurnedInAnnotation") == expected


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [("scan.nii", "image", None), ("scan.npy", "sinogram", "NO"), ("demo:ct", "image", "NO")],
)
def test_what_nobody_can_have_written_into_holds_no_text(tmp_path, name, kind, expected):
    result = make_result(picture())
    result.record.job["input"] = name
    made = type("Made", (type(result.dataset),), {"kind": kind})
    result.dataset.__class__ = made
    file, _ = written(tmp_path, result)
    assert file.get("BurnedInAnnotation") == expected


def test_every_run_on_a_series_has_a_number_and_a_description_of_its_own(tmp_path):
    """Else a PACS shows five series called 9005, and nobody knows which is which."""
    results = [from_source(run_number=number) for number in (1, 2, None, None)]
    results[3].record.job["settings"]["rho_over_sigma2"] = 2e-5
    for result in results:
        result.record.history = [{"k": 5, "nfe": 12}]
        result.record.status = "cancelled"
    files = [written(tmp_path, result)[0] for result in results]
    assert [int(file.SeriesNumber) for file in files[:2]] == [9004001, 9004002]
    assert len({int(file.SeriesNumber) for file in files}) == 4
    assert len({file.SeriesDescription for file in files}) == 4
    said = "Dualscope dc-pnpdp, 3 views, NFE 12 of 50, cancelled, run #1"
    assert files[0].SeriesDescription == said
    assert int(written(tmp_path, results[2])[0].SeriesNumber) == int(files[2].SeriesNumber)


def test_mr_keeps_the_scale_of_its_source(tmp_path):
    values = picture(1, "MR")
    file, _ = written(tmp_path, from_source("MR", values, window=(600.0, 1001.0)))
    assert np.abs(file.pixel_array - values[0]).max() <= 0.501
    assert "RescaleSlope" not in file
    assert (float(file.WindowCenter), float(file.WindowWidth)) == (600, 1001)
    file, _ = written(tmp_path, from_source("MR", values, header={"RescaleSlope": "0.25"}))
    assert np.abs(file.pixel_array - 4 * values[0]).max() <= 0.501
    assert "stored value = 4 x magnitude" in file.DerivationDescription


@pytest.mark.parametrize("size", [1e-6, 3.0, 1e7])
def test_mr_of_any_size_is_scaled_into_16_bit_and_says_how(tmp_path, size):
    values = picture(1, "MR")
    values *= np.float32(size / values.max())
    window = (0.5 * size + 0.5, size + 1)  # black at 0, white at the brightest
    file, notes = written(tmp_path, from_source("MR", values, window=window))
    scale = float(re.search(r"stored value = (\S+) x", file.DerivationDescription)[1])
    assert np.abs(file.pixel_array / scale - values[0]).max() <= 0.51 / scale
    assert 16383 <= file.pixel_array.max() <= 32767
    assert notes == []
    centre, width = float(file.WindowCenter), float(file.WindowWidth)
    assert centre - 0.5 - (width - 1) / 2 == pytest.approx(0, abs=0.1)
    assert centre - 0.5 + (width - 1) / 2 == pytest.approx(size * scale, rel=1e-5)


def test_an_mr_source_gives_its_sequence_and_one_that_lacks_it_a_legal_one(tmp_path):
    file, _ = written(tmp_path, from_source("MR"))
    assert list(file.ScanningSequence) == ["SE", "IR"]
    assert float(file.RepetitionTime) == 4000.5
    lacking = ("ScanningSequence", "SequenceVariant", "RepetitionTime")
    file, _ = written(tmp_path, from_source("MR", without=lacking))
    assert (file.ScanningSequence, file.SequenceVariant) == ("RM", "NONE")
    assert file.RepetitionTime is None


@pytest.mark.parametrize("modality", ["CT", "MR"])
def test_without_a_source_nothing_is_invented_and_the_place_is_said_to_be_assumed(
    tmp_path, modality
):
    file, notes = written(tmp_path, make_result(picture(1, modality), modality))
    for keyword in ("PatientName", "PatientID", "PatientBirthDate", "StudyDate", "AccessionNumber"):
        assert keyword in file
        assert not file[keyword].value
    assert "SourceImageSequence" not in file
    assert file.StudyInstanceUID.startswith("2.25.")
    assert file.FrameOfReferenceUID != file.StudyInstanceUID
    assert list(file.ImageOrientationPatient) == [1, 0, 0, 0, 1, 0]
    assert file.ImagePositionPatient == pytest.approx([-0.8 * 13.5, -0.7 * 9.5, 0])
    assert list(file.PixelSpacing) == [0.7, 0.8]
    assert "assumed" in file.ImageComments
    assert "assumed" in file.DerivationDescription
    assert any("assumed" in note for note in notes)
    assert file.LossyImageCompression == "00"


def test_an_unknown_pixel_size_is_said(tmp_path):
    file, notes = written(tmp_path, make_result(picture(), pixel_mm=None))
    assert list(file.PixelSpacing) == [1, 1]
    assert any("pixel size unknown" in note for note in notes)


def test_placements_of_another_size_of_image_are_not_believed(tmp_path):
    result = from_source()
    result.dataset.image_size = (ROWS + 2, COLUMNS)
    file, notes = written(tmp_path, result)
    assert list(file.ImageOrientationPatient) == [1, 0, 0, 0, 1, 0]
    assert file.FrameOfReferenceUID != source_header().FrameOfReferenceUID
    assert any("assumed" in note for note in notes)


@pytest.mark.filterwarnings("ignore:Invalid value")
def test_illegal_values_of_the_source_are_left_out_and_named_without_quoting(tmp_path):
    header = source_header()
    header.StudyDate, header.PatientSex, header.KVP = "not a day", "female", ["80", "140"]
    result = make_result(picture(), "CT", [header], oblique_placements(1))
    file, notes = written(tmp_path, result)
    for keyword in ("StudyDate", "PatientSex", "KVP"):
        assert not file[keyword].value
        assert any(keyword in note for note in notes)
    assert "not a day" not in " ".join(notes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("modality", ["CT", "MR"])
def test_no_damaged_header_stops_an_export(tmp_path, modality):
    """Bytes changed anywhere: the attribute is left out, the pixels are written all the same."""
    stream, generator = io.BytesIO(), random.Random(7)
    source_header(modality).save_as(stream, implicit_vr=False, little_endian=True)
    for deidentify in (False, True) * 12:
        content = bytearray(stream.getvalue())
        for _ in range(generator.choice((1, 5, 50))):
            content[generator.randrange(200, len(content))] = generator.randrange(256)
        try:
            header = pydicom.dcmread(io.BytesIO(content), force=True)
        except Exception:  # the reader's business
            continue
        result = make_result(
            picture(1, modality), modality, [header], oblique_placements(1), deidentify=deidentify
        )
        file, _ = written(tmp_path, result)
        assert file.pixel_array.shape == (ROWS, COLUMNS)


def test_a_frame_of_reference_named_like_the_study_gets_its_own_name(tmp_path):
    uid = source_header().StudyInstanceUID
    files = [
        written(tmp_path, from_source(header={"FrameOfReferenceUID": uid}))[0] for _ in range(2)
    ]
    assert files[0].FrameOfReferenceUID == files[1].FrameOfReferenceUID != uid
    assert files[0].StudyInstanceUID == uid


def test_a_source_that_was_de_identified_stays_declared_so(tmp_path):
    file, _ = written(tmp_path, from_source(header={"PatientIdentityRemoved": "YES"}))
    assert file.PatientIdentityRemoved == "YES"
    assert file.DeidentificationMethod
