"""NIfTI, NRRD and MetaImage: nibabel and SimpleITK agree with us, voxel by voxel, in mm."""

import numpy as np
import pytest
from results import make_result
from volume_files import oblique, world_of

from engine.data.images.orientation import flip_lps_ras
from engine.data.source import open_input
from engine.export import write_outputs
from engine.spec.input_options import InputOptions

sitk = pytest.importorskip("SimpleITK")
nib = pytest.importorskip("nibabel")

HU = InputOptions(unit="hu")
TURNS = {
    "axial": (0, 0, 0),
    "oblique": (11, -7, 19),
    "coronal": (-90, 0, 0),
    "sagittal": (80, 5, 85),
    "upside down": (0, 178, 3),
}


def itk_image(degrees, spacing=(0.8, 1.3, 2.5), dtype=np.float32):
    volume = np.random.default_rng(0).normal(0, 300, (3, 5, 4)).astype(dtype)  # [k, j, i]
    affine = oblique(spacing, degrees=degrees)
    image = sitk.GetImageFromArray(volume)
    image.SetSpacing(spacing)
    image.SetOrigin(affine[:3, 3].tolist())
    image.SetDirection((affine[:3, :3] / spacing).ravel().tolist())
    return image


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "a.nrrd", "a.nhdr", "a.mha", "a.mhd"])
@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_what_simpleitk_writes_lies_where_simpleitk_says(name, turn, dtype, tmp_path):
    image = itk_image(TURNS[turn], dtype=dtype)
    sitk.WriteImage(image, str(tmp_path / name), useCompression=not name.endswith("nii"))
    dataset = open_input(str(tmp_path / name), HU)
    assert dataset.placements is not None
    rows, columns = dataset.image_size
    for number in range(len(dataset)):
        shown = dataset.read(number)
        for row in range(rows):
            for column in range(columns):
                place = world_of(dataset, number, row, column).tolist()
                index = image.TransformPhysicalPointToContinuousIndex(place)
                nearest = [round(i) for i in index]
                np.testing.assert_allclose(
                    image.TransformIndexToPhysicalPoint(nearest), place, atol=1e-4
                )
                assert shown[row, column] == image.GetPixel(nearest)


def test_two_dimensional_pictures(tmp_path):
    picture = sitk.GetImageFromArray(np.arange(12, dtype=np.float32).reshape(3, 4))
    picture.SetSpacing((0.5, 0.75))
    for name in ("a.mha", "a.nrrd"):
        sitk.WriteImage(picture, str(tmp_path / name))
        dataset = open_input(str(tmp_path / name), HU)
        assert dataset.pixel_mm == (0.75, 0.5)
        np.testing.assert_array_equal(dataset.read(0), np.arange(12).reshape(3, 4))


@pytest.mark.parametrize("name", ["out.nii", "out.nii.gz"])
@pytest.mark.parametrize("modality", ["CT", "MR"])
def test_others_read_what_we_write(name, modality, tmp_path):
    result = make_result(modality, slices=3, placed=True)
    write_outputs([tmp_path / name], result)
    values, affine = result.values(), oblique(spacing=(0.9, 0.7, 2.5))

    itk = sitk.ReadImage(str(tmp_path / name))
    np.testing.assert_array_equal(sitk.GetArrayFromImage(itk), values)
    for index in ((0, 0, 0), (7, 0, 0), (0, 5, 0), (0, 0, 2), (7, 5, 2)):
        expected = (affine @ [*index, 1])[:3]
        np.testing.assert_allclose(itk.TransformIndexToPhysicalPoint(index), expected, atol=1e-4)

    image = nib.load(tmp_path / name)
    np.testing.assert_array_equal(image.get_fdata(), values.transpose(2, 1, 0))
    for theirs in (image.affine, image.header.get_qform(), image.header.get_sform()):
        np.testing.assert_allclose(theirs, flip_lps_ras(affine), atol=1e-4)
    assert (image.header["qform_code"], image.header["sform_code"]) == (1, 1)
    np.testing.assert_allclose(image.header.get_zooms(), (0.9, 0.7, 2.5), rtol=1e-6)


def test_values_and_affine_agree_with_nibabel(tmp_path):
    """Slope, intercept and a big-endian header, read by both."""
    stored = np.random.default_rng(1).integers(-99, 99, (4, 5, 3)).astype(">i2")
    image = nib.Nifti1Image(stored, flip_lps_ras(oblique()), nib.Nifti1Header(endianness=">"))
    image.header.set_slope_inter(0.5, 3)
    nib.save(image, tmp_path / "a.nii.gz")
    dataset, again = open_input(str(tmp_path / "a.nii.gz"), HU), nib.load(tmp_path / "a.nii.gz")
    full, inverse = again.get_fdata(), np.linalg.inv(flip_lps_ras(again.affine))
    for number in range(3):
        shown = dataset.read(number)
        for row, column in np.ndindex(shown.shape):
            index = inverse @ [*world_of(dataset, number, row, column), 1]
            nearest = np.round(index[:3]).astype(int)
            np.testing.assert_allclose(index[:3], nearest, atol=1e-5)
            assert shown[row, column] == pytest.approx(full[tuple(nearest)])


def test_nifti2_is_read(tmp_path):
    volume = np.arange(60, dtype=np.float32).reshape(4, 5, 3)
    nib.save(nib.Nifti2Image(volume, np.diag([-1.0, -1.0, 1.0, 1.0])), tmp_path / "a.nii")
    np.testing.assert_array_equal(
        open_input(str(tmp_path / "a.nii"), HU).read(1), volume[:, :, 1].T
    )


def test_float_tiff_is_read_by_tifffile(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    result = make_result("CT", slices=3)
    write_outputs([tmp_path / "a.tif"], result)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "a.tif"), result.values())
    tifffile.imwrite(tmp_path / "b.tif", result.values(), photometric="minisblack")
    dataset = open_input(str(tmp_path / "b.tif"), HU)
    assert len(dataset) == 3
    np.testing.assert_array_equal(dataset.read(2), result.values()[2])
