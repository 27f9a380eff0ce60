"""Other people's software accepts our DICOM files and reads the same numbers at the same place.

dciodvfy (dicom3tools) checks every attribute against the standard; dcmtk, pydicom, SimpleITK
and dcm2niix with nibabel read the values and the geometry back.
"""

import shutil
import subprocess

import numpy as np
import pydicom
import pydicom.data
import pytest
from dicom_results import make_result, oblique_placements, picture, source_header

from engine.export.dicom import write_dicom, write_dicom_series, write_secondary_capture

COUNT = 3


def needs(program):
    return pytest.mark.skipif(not shutil.which(program), reason=f"{program} is not installed")


def run(*command):
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=60)
    assert done.returncode == 0 or words[0] == "dciodvfy", done.stderr
    return done.stdout + done.stderr


def errors_of(path):
    lines = run("dciodvfy", path).splitlines()
    assert any(line in ("CTImage", "MRImage", "SCImage") for line in lines), "it did not look"
    return [line for line in lines if line.startswith("Error")]


def result_of(modality, with_source, deidentify=False, count=COUNT):
    headers = [source_header(modality, i) for i in range(count)] if with_source else None
    placements = oblique_placements(count) if with_source else None
    return make_result(
        picture(count, modality), modality, headers, placements, deidentify=deidentify
    )


@pytest.fixture(params=["CT", "MR"])
def oblique_series(request, tmp_path):
    folder = tmp_path / "series"
    write_dicom_series(folder, result_of(request.param, with_source=True))
    return request.param, folder


@needs("dciodvfy")
@pytest.mark.parametrize("deidentify", [False, True], ids=["named", "deidentified"])
@pytest.mark.parametrize("with_source", [False, True], ids=["raw", "source"])
@pytest.mark.parametrize("modality", ["CT", "MR"])
def test_dciodvfy_finds_no_error_in_images(tmp_path, modality, with_source, deidentify):
    single = tmp_path / "single.dcm"
    write_dicom(single, result_of(modality, with_source, deidentify, count=1))
    write_dicom_series(tmp_path / "series", result_of(modality, with_source, deidentify))
    for path in [single, *(tmp_path / "series").iterdir()]:
        assert errors_of(path) == []


@needs("dciodvfy")
@pytest.mark.parametrize("modality", ["CT", "MR"])
@pytest.mark.parametrize("solver", ["fbp", "zero-filled", ""])
def test_dciodvfy_finds_no_error_whatever_the_solver(tmp_path, modality, solver):
    result = result_of(modality, with_source=True, count=1)
    result.record.job["solver"] = solver
    write_dicom(tmp_path / "out.dcm", result)
    assert errors_of(tmp_path / "out.dcm") == []


@needs("dciodvfy")
@pytest.mark.parametrize(
    "changes",
    [
        {"BodyPartExamined": "KNEE"},
        {"BodyPartExamined": "KNEE", "Laterality": "R"},
        {"BodyPartExamined": "HEAD", "Laterality": "L"},
        {"BodyPartExamined": "SOMETHING"},
        {"FrameOfReferenceUID": "1.3.6.1.4.1.9999.1"},
        {"LossyImageCompression": "01"},
        {"PatientIdentityRemoved": "YES"},
        {"BurnedInAnnotation": "YES"},
        {"StudyDate": "", "PatientID": "", "Manufacturer": ""},
        {"ScanningSequence": "GR", "InversionTime": "100"},
        {"ScanningSequence": ["SE", "IR"], "InversionTime": ""},
        {"ScanOptions": ["A", "B"], "PatientPosition": "FFS"},
        {"PatientName": "Wang^XiaoDong=王^小东", "StudyID": "x" * 17, "SeriesNumber": 2**31 - 1},
    ],
    ids=lambda changes: "-".join(changes),
)
@pytest.mark.parametrize("modality", ["CT", "MR"])
@pytest.mark.filterwarnings("ignore")  # pydicom's, about the values that are not legal
def test_dciodvfy_finds_no_error_for_odd_sources(tmp_path, modality, changes):
    header = source_header(modality)
    for keyword, value in changes.items():
        setattr(header, keyword, value)
    result = make_result(picture(1, modality), modality, [header], oblique_placements(1))
    write_dicom(tmp_path / "out.dcm", result)
    assert errors_of(tmp_path / "out.dcm") == []


@needs("dciodvfy")
@pytest.mark.parametrize(
    ("name", "modality"),
    [
        ("CT_small.dcm", "CT"),
        ("MR_small.dcm", "MR"),
        ("JPEG2000.dcm", "CT"),
        ("JPGExtended.dcm", "CT"),
        ("693_J2KI.dcm", "CT"),
        ("chrH31.dcm", "CT"),
        ("chrX1.dcm", "MR"),
        ("no_meta.dcm", "CT"),
        ("badVR.dcm", "MR"),
        ("meta_missing_tsyntax.dcm", "CT"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_dciodvfy_finds_no_error_with_real_headers(tmp_path, name, modality):
    path = pydicom.data.get_testdata_file(name, download=False)
    if path is None:
        pytest.skip(f"this pydicom has no {name}")
    header = pydicom.dcmread(path, stop_before_pixels=True, force=True)
    for deidentify in (False, True):
        result = make_result(
            picture(1, modality),
            modality,
            [header],
            oblique_placements(1),
            deidentify=deidentify,
        )
        write_dicom(tmp_path / "out.dcm", result)
        assert errors_of(tmp_path / "out.dcm") == []


@needs("dciodvfy")
@pytest.mark.parametrize("deidentified", [False, True])
@pytest.mark.parametrize("with_source", [False, True])
@pytest.mark.parametrize("shape", [(12, 17), (12, 17, 3)])
def test_dciodvfy_finds_no_error_in_screenshots(tmp_path, shape, with_source, deidentified):
    path, header = tmp_path / "shot.dcm", source_header() if with_source else None
    write_secondary_capture(path, np.zeros(shape, np.uint8), header, deidentified=deidentified)
    assert errors_of(path) == []


@needs("dcmdump")
def test_dcmdump_reads_the_whole_file_and_the_same_text(tmp_path):
    write_dicom(tmp_path / "out.dcm", result_of("CT", with_source=True, count=1))
    text = run("dcmdump", "+L", "-Un", tmp_path / "out.dcm")
    file = pydicom.dcmread(tmp_path / "out.dcm")
    for value in (file.SOPInstanceUID, file.DerivationDescription, str(file.PatientID)):
        assert value in text
    assert not [line for line in text.splitlines() if line.startswith(("E:", "W:"))]


@needs("dcm2pnm")
def test_dcm2pnm_shows_the_same_hu_through_the_same_window(tmp_path):
    from PIL import Image

    write_dicom(tmp_path / "out.dcm", result_of("CT", with_source=True, count=1))
    run("dcm2pnm", "+Ww", 0.5, 6001, "+opn", 16, tmp_path / "out.dcm", tmp_path / "out.pgm")
    grey = np.asarray(Image.open(tmp_path / "out.pgm")).astype(float) / 65535
    hu = 6000 * (grey - 0.5)  # the window's definition, backwards
    assert np.abs(hu - picture()[0]).max() <= 0.5 + 6000 / 65535


@needs("dcm2pnm")
def test_dcm2pnm_opens_every_kind(tmp_path, oblique_series):
    _, folder = oblique_series
    run("dcm2pnm", "+Wi", 1, folder / "IM0001.dcm", tmp_path / "image.pgm")
    write_secondary_capture(tmp_path / "shot.dcm", np.zeros((9, 9, 3), np.uint8))
    run("dcm2pnm", tmp_path / "shot.dcm", tmp_path / "shot.ppm")


def lps_of(row, column, number):
    """Where the picture's pixel is, from the placements themselves."""
    placement = oblique_placements(COUNT)[number]
    along_column = np.array(placement.along_column) * placement.spacing_mm[0]
    along_row = np.array(placement.along_row) * placement.spacing_mm[1]
    return np.array(placement.position) + row * along_column + column * along_row


PLACES = [(0, 0, 0), (19, 0, 0), (0, 27, 0), (7, 11, 2)]


def test_simpleitk_reads_the_same_values_at_the_same_places(oblique_series):
    sitk = pytest.importorskip("SimpleITK")
    modality, folder = oblique_series
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(folder)))
    image = reader.Execute()
    array = sitk.GetArrayFromImage(image)  # [slice, row, column]
    tolerance = 0.5 if modality == "CT" else 0.501
    assert np.abs(array - picture(COUNT, modality)).max() <= tolerance
    for row, column, number in PLACES:
        point = image.TransformIndexToPhysicalPoint((column, row, number))
        assert point == pytest.approx(lps_of(row, column, number), abs=1e-4)


@needs("dcm2niix")
def test_dcm2niix_and_nibabel_read_the_same_values_at_the_same_places(tmp_path, oblique_series):
    nibabel = pytest.importorskip("nibabel")
    modality, folder = oblique_series
    out = tmp_path / "nifti"
    out.mkdir()
    run("dcm2niix", "-z", "n", "-f", "volume", "-o", out, folder)
    (path,) = out.glob("*.nii")
    volume = nibabel.load(path)
    array = np.asarray(volume.dataobj)
    back = np.linalg.inv(volume.affine.astype(np.float64))
    seen = []
    for row, column, number in PLACES:
        ras = lps_of(row, column, number) * [-1, -1, 1]
        voxel = back @ [*ras, 1]
        index = np.rint(voxel[:3]).astype(int)
        seen.append(np.abs(volume.affine @ [*index, 1] - [*ras, 1]).max())
        value = picture(COUNT, modality)[number, row, column]
        assert abs(array[tuple(index)] - value) <= 0.501
    assert max(seen) <= 1e-4
    assert sorted(array.shape) == sorted((20, 28, COUNT))
