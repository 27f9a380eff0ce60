"""De-identified files: nothing of the patient in any byte, and still one consistent series."""

import numpy as np
import pydicom
import pytest
from dicom_results import SECRETS, make_result, oblique_placements, picture, source_header
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence

from engine.export.dicom import write_dicom, write_dicom_series, write_secondary_capture
from engine.export.dicom_deidentify import UidMap, deidentify, identifying_words

ENCODINGS = ("utf-8", "latin-1", "utf-16-le", "utf-16-be", "shift_jis", "iso2022_jp", "gb18030")
IDENTIFYING = (*SECRETS, "S77", "ACC1234", "19510203", "20230405", "101112", "Doc^Ref", "Clinic")
IDENTIFYING += ("STATION5", "SN123", "072Y", "Erator", "1.3.6.1.4.1.9999", "home", "models")


def patterns(texts):
    """Every way a text may lie in a file, whatever the case of its letters."""
    found = set()
    for text in texts:
        for variant in (text, text.upper(), text.lower()):
            for encoding in ENCODINGS:
                try:
                    found.add(variant.encode(encoding))
                except UnicodeEncodeError:
                    continue
    return found


def leaks(content, texts=IDENTIFYING):
    lowered = content.lower()
    return [p for p in patterns(texts) if p in content or p in lowered]


def deidentified(modality="CT", count=1, encode=None, **changes):
    headers = [source_header(modality, i) for i in range(count)]
    if encode:
        headers = [encode(header) for header in headers]
    return make_result(
        picture(count, modality),
        modality,
        headers,
        oblique_placements(count),
        deidentify=True,
        **changes,
    )


def test_the_search_for_leaks_finds_what_is_not_de_identified(tmp_path):
    result = make_result(picture(), "CT", [source_header()], oblique_placements(1))
    write_dicom(tmp_path / "out.dcm", result)
    found = leaks((tmp_path / "out.dcm").read_bytes())
    for text in ("Hübschmann", "山田", "PID-4711-77", "ACC1234", "20230405"):
        assert text.encode() in found


@pytest.mark.parametrize("modality", ["CT", "MR"])
def test_no_byte_of_a_series_names_the_patient(tmp_path, modality):
    notes = write_dicom_series(tmp_path / "series", deidentified(modality, 2))
    for path in (tmp_path / "series").iterdir():
        assert leaks(path.read_bytes()) == []
    assert not leaks(" ".join(notes).encode())


@pytest.mark.parametrize("charset", ["ISO_IR 100", "ISO_IR 192", ["", "ISO 2022 IR 87"], "GB18030"])
def test_names_in_any_character_set_are_found_and_removed(tmp_path, charset):
    """The header as it comes from a file: undecoded bytes, in the source's own encoding."""

    def through_a_file(header):
        header.SpecificCharacterSet = charset
        japanese = isinstance(charset, list)
        header.PatientName = "Yamada^Tarou=山田^太郎" if japanese else "Hübschmann^Zwölfender"
        words = "山田 太郎" if japanese else "Hübschmann"
        header.StudyDescription = header.ImageComments = header.SeriesDescription = words
        header.ManufacturerModelName = header.FilterType = words
        header.ContrastBolusAgent = header.ProtocolName = header.InstitutionName = words
        if charset == "ISO_IR 100":
            for item in (header.RequestAttributesSequence[0],):
                item.RequestedProcedureDescription = "For Hübschmann"
        path = tmp_path / "source.dcm"
        header.save_as(path, implicit_vr=False, little_endian=True)
        return pydicom.dcmread(path, force=True)

    write_dicom(tmp_path / "out.dcm", deidentified(encode=through_a_file))
    content = (tmp_path / "out.dcm").read_bytes()
    assert leaks(content, (*IDENTIFYING, "Tarou")) == []


def test_nothing_of_the_patient_is_logged_or_warned_of(tmp_path, caplog, recwarn):
    """Illegal values, undecoded as they come from a file: pydicom would quote them."""
    header = source_header()
    for keyword in ("StudyDate", "FrameOfReferenceUID", "AcquisitionNumber"):
        header[keyword].VR = "LO"
        setattr(header, keyword, "PID-4711-77")
    header.save_as(tmp_path / "source.dcm", implicit_vr=True, little_endian=True)
    source = pydicom.dcmread(tmp_path / "source.dcm", force=True)
    caplog.set_level(1)
    recwarn.clear()
    result = make_result(picture(), "CT", [source], oblique_placements(1), deidentify=True)
    write_dicom(tmp_path / "out.dcm", result)
    assert not leaks(caplog.text.encode())
    assert not leaks(" ".join(str(w.message) for w in recwarn).encode())
    assert leaks((tmp_path / "out.dcm").read_bytes()) == []


def test_the_file_says_that_and_how_it_was_de_identified(tmp_path):
    notes = write_dicom(tmp_path / "out.dcm", deidentified())
    file = pydicom.dcmread(tmp_path / "out.dcm")
    assert file.PatientIdentityRemoved == "YES"
    assert file.LongitudinalTemporalInformationModified == "REMOVED"
    assert "Basic Profile" in file.DeidentificationMethod[0]
    assert file.DeidentificationMethodCodeSequence[0].CodeValue == "113100"
    assert not file.StudyDate
    assert not [e for e in file.iterall() if e.VR in ("DA", "TM", "DT") and e.value]
    assert any("burned into" in note for note in notes)


def test_pixels_place_and_technique_survive(tmp_path):
    write_dicom(tmp_path / "out.dcm", deidentified("MR"))
    file = pydicom.dcmread(tmp_path / "out.dcm")
    assert np.abs(file.pixel_array - picture(1, "MR")[0]).max() <= 0.501
    (placement,) = oblique_placements(1)
    assert file.ImagePositionPatient == pytest.approx(placement.position, abs=1e-5)
    assert list(file.ScanningSequence) == ["SE", "IR"]
    assert file.BodyPartExamined == "ABDOMEN"
    assert "seed 17" in file.DerivationDescription
    assert file.ContributingEquipmentSequence[0].Manufacturer == "ACME"
    assert "DeviceSerialNumber" not in file.ContributingEquipmentSequence[0]
    assert "cdcd" not in file.DerivationDescription  # the input's hash would lead back to it


def test_uids_are_new_and_the_same_throughout_one_export(tmp_path):
    uids = UidMap()
    write_dicom_series(tmp_path / "series", deidentified(count=2), uids=uids)
    files = [pydicom.dcmread(path) for path in sorted((tmp_path / "series").iterdir())]
    assert len({file.StudyInstanceUID for file in files}) == 1
    assert len({file.FrameOfReferenceUID for file in files}) == 1
    for i, file in enumerate(files):
        source = source_header("CT", i)
        assert file.StudyInstanceUID == uids[source.StudyInstanceUID]
        reference = file.SourceImageSequence[0]
        assert reference.ReferencedSOPInstanceUID == uids[source.SOPInstanceUID]
        assert reference.ReferencedSOPClassUID == source.SOPClassUID


def test_one_map_joins_exports_and_two_maps_keep_them_apart(tmp_path):
    joined = UidMap()
    files = []
    for name, uids in (("a", joined), ("b", joined), ("c", None)):
        write_dicom(tmp_path / f"{name}.dcm", deidentified(), uids)
        files.append(pydicom.dcmread(tmp_path / f"{name}.dcm"))
    a, b, c = files
    assert a.StudyInstanceUID == b.StudyInstanceUID != c.StudyInstanceUID
    assert a.PatientID == b.PatientID != c.PatientID
    assert a.PatientID.startswith("DS-")
    assert str(a.PatientName).startswith("DS-")


def test_the_map_gives_legal_uids_and_leaves_the_standards_own_alone():
    uids = UidMap(b"key")
    assert uids["1.2.3"] == UidMap(b"key")["1.2.3"] != uids["1.2.4"]
    assert uids["1.2.3"].is_valid
    assert uids["1.2.840.10008.5.1.4.1.1.2"] == "1.2.840.10008.5.1.4.1.1.2"
    assert UidMap(b"other")["1.2.3"] != uids["1.2.3"]


@pytest.mark.parametrize(("said", "word"), [("YES", "says that text"), ("NO", "not the pixels")])
def test_the_person_is_told_about_text_in_the_pixels(tmp_path, said, word):
    header = source_header()
    header.BurnedInAnnotation = said
    result = make_result(picture(), "CT", [header], oblique_placements(1), deidentify=True)
    notes = write_dicom(tmp_path / "out.dcm", result)
    assert any(word in note for note in notes)
    assert pydicom.dcmread(tmp_path / "out.dcm").BurnedInAnnotation == said


def test_unknown_private_and_nested_attributes_are_removed_recursively():
    dataset, item, deeper = source_header(), Dataset(), Dataset()
    deeper.PersonName, deeper.CodeMeaning = "Hübschmann", "Seen by Zwölfender"
    item.Manufacturer, item.InstitutionName = "ACME", "Clinic Hübschmann"
    item.PurposeOfReferenceCodeSequence = Sequence([deeper])
    item.private_block(0x0029, "ACME", create=True).add_new(0x11, "LT", "Hübschmann")
    dataset.ContributingEquipmentSequence = Sequence([item])
    dataset.add_new(0x00189999, "UN", b"PID-4711-77")
    deidentify(dataset, UidMap(), identifying_words(dataset))
    texts = " ".join(str(element) for element in dataset.iterall())
    assert not [secret for secret in SECRETS if secret in texts]
    assert dataset.ContributingEquipmentSequence[0].Manufacturer == "ACME"
    assert "InstitutionName" not in dataset.ContributingEquipmentSequence[0]
    assert not [element for element in dataset.iterall() if element.tag.is_private]
    assert (0x0018, 0x9999) not in dataset


def test_a_screenshot_belongs_to_the_new_study_and_names_nobody(tmp_path):
    uids, path = UidMap(), tmp_path / "shot.dcm"
    pixels = np.zeros((8, 9, 3), np.uint8)
    notes = write_secondary_capture(path, pixels, source_header(), deidentified=True, uids=uids)
    assert leaks(path.read_bytes()) == []
    file = pydicom.dcmread(path)
    assert file.StudyInstanceUID == uids[source_header().StudyInstanceUID]
    assert any("burned into" in note for note in notes)
