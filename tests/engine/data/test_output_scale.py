"""What is written of scans that are no bodies: slice spacing, attenuation, the grey window."""

import h5py
import nibabel
import numpy as np
import pydicom
import pytest
import sinogram_files as files
from PIL import Image
from results import make_result

from engine.cli import main
from engine.data.source import open_input
from engine.export import write_outputs
from engine.export.outputs import DEFAULT_CT_WINDOW
from engine.spec.input_options import InputOptions


def spaced(spacing, **more):
    result = make_result("CT", 3, **more)
    result.dataset.settle_slices(spacing, "option")
    return result


def test_the_slice_spacing_goes_into_every_volume_that_is_written(tmp_path):
    outputs = [tmp_path / name for name in ("a.nii.gz", "a.h5", "series")]
    write_outputs(outputs, spaced(2.5))
    assert nibabel.load(outputs[0]).header.get_zooms() == pytest.approx((0.9, 0.7, 2.5))
    with h5py.File(outputs[1]) as file:
        assert file.attrs["slice_mm"] == 2.5
    assert open_input(str(outputs[1]), InputOptions()).slice_mm == 2.5
    places = [
        float(pydicom.dcmread(one).ImagePositionPatient[2]) for one in sorted(outputs[2].iterdir())
    ]
    assert np.diff(places) == pytest.approx([2.5, 2.5])


def test_every_other_slice_is_twice_as_far_from_the_next(tmp_path):
    result = make_result("CT", 5, numbers=(0, 2, 4))
    result.dataset.settle_slices(1.5, "option")
    write_outputs([tmp_path / "a.nii"], result)
    assert nibabel.load(tmp_path / "a.nii").header.get_zooms()[2] == pytest.approx(3.0)


def test_slices_whose_place_is_known_keep_it(tmp_path):
    result = spaced(9.0, placed=True)
    write_outputs([tmp_path / "a.nii"], result)
    assert nibabel.load(tmp_path / "a.nii").header.get_zooms()[2] == pytest.approx(2.5)
    assert any("--slice-spacing-mm is ignored" in one for one in result.dataset.warnings)


def test_the_slice_spacing_of_a_scan_is_an_option_or_in_its_sidecar(tmp_path):
    geometry = files.scan("parallel", 20)
    np.save(tmp_path / "scan.npy", np.stack([files.sinogram(geometry)] * 2))
    files.sidecar(tmp_path / "scan.json", **files.told(geometry, slice_spacing_mm=0.4))
    path = str(tmp_path / "scan.npy")
    assert open_input(path, InputOptions()).slice_mm == 0.4
    assert open_input(path, InputOptions(slice_spacing_mm=0.7)).slice_mm == 0.7


def test_attenuation_is_written_where_a_format_can_hold_it_and_reads_back_as_hu(tmp_path):
    result = make_result("CT", 2, output_unit="mu")
    result.problem.provenance["mu_water_per_mm"] = 0.05
    paths = [tmp_path / name for name in ("a.npy", "a.tif", "a.nii", "a.h5")]
    notes = write_outputs(paths, result)
    expected = 0.05 * (1 + result.values() / 1000)
    np.testing.assert_allclose(np.load(paths[0]), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(Image.open(paths[1])), expected[0], atol=1e-6)
    back = open_input(str(paths[1]), InputOptions())
    np.testing.assert_allclose(back.read(0), result.values()[0], atol=0.05)
    named = {"modality": "ct", "unit": "mu", "mu_water": 0.05}
    back = open_input(str(paths[2]), InputOptions(**named))
    np.testing.assert_allclose(back.read(1), result.values()[1], atol=0.05)
    with h5py.File(paths[3]) as file:
        np.testing.assert_allclose(file["image"][()], result.values())
    assert any("a.h5 is in HU" in note for note in notes)


def test_without_asking_everything_stays_in_hu(tmp_path):
    write_outputs([tmp_path / "a.npy"], make_result("CT", 1))
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), make_result("CT", 1).values()[0])


def test_a_picture_of_micro_ct_is_not_white(tmp_path):
    """A disc of 40 times the attenuation of water fills a fifth of the image."""
    result = make_result("CT", 1)
    y, x = np.mgrid[-6:6, -7:7]
    disc = ((x**2 + y**2) < 12).astype(np.float32)
    result.image[0, 0] = result.image.new_tensor(40 * disc - 1)
    _, width = result.shown_window()
    assert width > 30_000
    write_outputs([tmp_path / "a.png"], result)
    picture = np.asarray(Image.open(tmp_path / "a.png"))
    zoom = picture.shape[0] // 12  # enlarged until its marks, which lie on it, can be read
    grey = np.median(picture.reshape(12, zoom, 14, zoom), (1, 3))
    assert grey.max() == 255
    assert (grey[disc == 0] < 5).all()


def test_bodies_keep_the_usual_window_even_with_some_metal():
    result = make_result("CT", 1)
    result.image[0, 0, 0, 0] = 20.0
    assert result.shown_window() == DEFAULT_CT_WINDOW


def test_the_command_writes_attenuation_of_a_measured_scan(tmp_path):
    geometry = files.scan("parallel", 60)
    np.save(tmp_path / "scan.npy", files.sinogram(geometry))
    files.sidecar(tmp_path / "scan.json", **files.told(geometry, size=40, mu_water=0.03))
    out = tmp_path / "out.npy"
    command = ["reconstruct", str(tmp_path / "scan.npy"), "--solver", "fbp", "-o", str(out)]
    assert main([*command, "--output-unit", "mu", "--quiet"]) == 0
    middle = np.load(out)[18:24, 16:22]
    assert middle.mean() == pytest.approx(0.02, rel=0.05)  # whatever water attenuates
    assert main([*command, "--output-unit", "cm"]) == 2


def test_the_picture_of_inspect_shows_a_scan_before_and_after(tmp_path):
    geometry = files.scan("parallel", 60)
    values = files.sinogram(geometry)
    values[:, 50] = 4.0
    np.save(tmp_path / "scan.npy", values)
    files.sidecar(tmp_path / "scan.json", **files.told(geometry))
    picture = tmp_path / "before-after.png"
    command = ["inspect", str(tmp_path / "scan.npy"), "--picture", str(picture)]
    assert main(command) == 0
    single = Image.open(picture).size
    assert main([*command, "--scan-bad-pixels", "on"]) == 0
    assert Image.open(picture).size[0] > 1.9 * single[0]
