"""Series as SimpleITK reads them: the same order, the same places, the same HU."""

import numpy as np
import pytest
from dicom_files import write_enhanced, write_series, write_slice
from pydicom import uid

from engine.data.readers.dicom.reader import open_dicom
from engine.spec.input_options import InputOptions

sitk = pytest.importorskip("SimpleITK")

ORIENTATIONS = {
    "axial": (1.0, 0.0, 0.0, 0.0, 1.0, 0.0),
    "coronal": (1.0, 0.0, 0.0, 0.0, 0.0, -1.0),
    "sagittal": (0.0, 1.0, 0.0, 0.0, 0.0, -1.0),
    "oblique": (0.8, 0.6, 0.0, -0.36, 0.48, 0.8),
    "feet first, turned": (-1.0, 0.0, 0.0, 0.0, 1.0, 0.0),
}


def volume_of(folder):
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(folder)))
    return reader.Execute()


@pytest.mark.parametrize("name", ORIENTATIONS)
@pytest.mark.parametrize("backwards", [False, True])
def test_order_places_and_hu_of_a_series(tmp_path, name, backwards):
    directions = ORIENTATIONS[name]
    normal = np.cross(directions[:3], directions[3:])
    write_series(
        tmp_path,
        [0.0, 2.5, 5.0, 7.5],
        direction=(-normal if backwards else normal).tolist(),
        ImageOrientationPatient=list(directions),
        PixelSpacing=[0.7, 0.9],
        RescaleSlope=1.5,
    )
    ours, theirs = open_dicom(tmp_path, InputOptions()), volume_of(tmp_path)
    volume = sitk.GetArrayFromImage(theirs)
    assert len(volume) == ours.count == 4
    for number in range(4):
        np.testing.assert_allclose(ours.read(number), volume[number], atol=1e-3)
        place = ours.placements[number]
        corner = theirs.TransformIndexToPhysicalPoint((0, 0, number))
        assert place.position == pytest.approx(corner, abs=1e-4)
        right = theirs.TransformIndexToPhysicalPoint((1, 0, number))
        down = theirs.TransformIndexToPhysicalPoint((0, 1, number))
        along = np.add(place.position, np.array(place.along_row) * place.spacing_mm[1])
        below = np.add(place.position, np.array(place.along_column) * place.spacing_mm[0])
        assert along == pytest.approx(right, abs=1e-4)
        assert below == pytest.approx(down, abs=1e-4)
    assert ours.pixel_mm == pytest.approx(theirs.GetSpacing()[1::-1])


@pytest.mark.parametrize(
    "syntax",
    [
        uid.ImplicitVRLittleEndian,
        uid.ExplicitVRBigEndian,
        uid.DeflatedExplicitVRLittleEndian,
        uid.RLELossless,
        uid.JPEGLSLossless,
        uid.JPEG2000Lossless,
    ],
    ids=lambda syntax: syntax.name,
)
@pytest.mark.parametrize("signed", [False, True])
def test_hu_of_every_encoding(tmp_path, syntax, signed):
    path = write_slice(tmp_path / "a.dcm", syntax=syntax, pixels={"signed": signed, "bits": 12})
    theirs = sitk.GetArrayFromImage(sitk.ReadImage(str(path)))[0]
    np.testing.assert_allclose(open_dicom(path, InputOptions()).read(0), theirs)


def test_frames_of_an_enhanced_file(tmp_path):
    path = write_enhanced(tmp_path / "e.dcm", [0.0, 2.0, 4.0])
    theirs = sitk.ReadImage(str(path))
    ours = open_dicom(path, InputOptions())
    volume = sitk.GetArrayFromImage(theirs)
    for number in range(3):
        np.testing.assert_allclose(ours.read(number), volume[number])
    assert ours.pixel_mm == pytest.approx(theirs.GetSpacing()[1::-1])
