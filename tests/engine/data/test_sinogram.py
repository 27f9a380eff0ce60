"""Every raw format gives the image that the line integrals themselves give."""

from dataclasses import replace

import numpy as np
import pytest
import sinogram_files as files
import torch
from ct_ellipses import raster

from engine.data.sinogram.dataset import SinogramDataset
from engine.data.sinogram.scan_geometry import GeometryNeeded
from engine.data.source import open_input
from engine.physics.fbp import fbp
from engine.physics.field_of_view import field_of_view
from engine.physics.units import MU_WATER_PER_MM
from engine.spec.input_options import InputOptions


def open_file(path, **options):
    dataset = open_input(str(path), InputOptions(**options))
    assert isinstance(dataset, SinogramDataset)
    return dataset


def direct_image(geometry, dataset):
    """FBP of the exact line integrals in the circle of the dataset's image grid, in 1 / mm."""
    target = replace(geometry, image_size=dataset.image_size, pixel_mm=dataset.pixel_mm[0])
    y = torch.from_numpy(files.sinogram(geometry))[None, None]
    return (fbp(y, target, "hann") * field_of_view(target))[0, 0].numpy()


def assert_same_image(dataset, geometry, slice_number=None, tolerance=0.01):
    number = dataset.count - 1 if slice_number is None else slice_number
    hu = dataset.preview(number)
    image = MU_WATER_PER_MM * (1 + hu / 1000)
    direct = direct_image(geometry, dataset)
    assert np.abs(image - direct).max() < tolerance * direct.max()
    truth = raster(files.PHANTOM, dataset.image_size, dataset.pixel_mm[0])
    for wrong in (truth[::-1], truth[:, ::-1], truth[::-1, ::-1], truth.T):
        assert np.abs(image - truth).mean() < 0.6 * np.abs(image - wrong).mean()


PARALLEL = files.scan("parallel", 90, 180.0, start=15.0)
FAN = files.scan("fan", 120, 360.0, start=-20.0)
ANGLES = np.rad2deg(PARALLEL.angles_rad)


def test_data_exchange(tmp_path):
    path = files.data_exchange(tmp_path / "a.h5", files.sinogram(PARALLEL), ANGLES)
    dataset = open_file(path, scan_pitch_mm=1.0)
    assert dataset.count == 2
    assert dataset.geometry.views == 90
    assert abs(dataset.geometry.detector_offset_mm) < 0.05
    assert any("rotation centre" in text for text in dataset.warnings)
    assert_same_image(open_file(path, scan_pitch_mm=1.0, scan_offset_mm=0.0), PARALLEL)


def test_data_exchange_finds_its_rotation_centre(tmp_path):
    geometry = files.scan("parallel", 90, 180.0, offset_bins=-4.3)
    angles = np.rad2deg(geometry.angles_rad)
    path = files.data_exchange(tmp_path / "a.h5", files.sinogram(geometry), angles)
    dataset = open_file(path, scan_pitch_mm=1.0)
    assert dataset.geometry.detector_offset_mm == pytest.approx(-4.3, abs=0.1)
    flipped = open_file(path, scan_pitch_mm=1.0, scan_flip=True)
    assert flipped.geometry.detector_offset_mm == pytest.approx(4.3, abs=0.1)
    told = open_file(path, scan_pitch_mm=1.0, scan_offset_mm=1.5)
    assert told.geometry.detector_offset_mm == 1.5


def test_data_exchange_without_angles_covers_half_a_turn_with_both_ends(tmp_path):
    values = files.sinogram(PARALLEL)
    path = files.data_exchange(tmp_path / "a.h5", values, None)
    dataset = open_file(path, scan_pitch_mm=1.0, scan_offset_mm=0.0)
    angles = np.rad2deg(dataset.geometry.angles_rad)
    assert angles[[0, -1]] == pytest.approx([0, 180])
    assert any("assumed" in text for text in dataset.warnings)


@pytest.mark.parametrize("unit", ["degree", "rad"])
def test_nxtomo(tmp_path, unit):
    path = files.nxtomo(tmp_path / "a.nxs", files.sinogram(PARALLEL), ANGLES, unit)
    dataset = open_file(path, scan_offset_mm=0.0)
    assert dataset.geometry.views == 90
    assert dataset.geometry.pitch_mm == pytest.approx(1.0)
    assert any("invalid" in text for text in dataset.warnings)
    assert_same_image(dataset, PARALLEL)


@pytest.mark.parametrize("name", ["CtData", "CtDataFull", "CtDataLimited"])
@pytest.mark.parametrize("compressed", [True, False])
def test_fips_version_5_opens_with_no_question(tmp_path, name, compressed):
    path = files.fips_v5(
        tmp_path / "a.mat", files.sinogram(FAN), FAN, name, do_compression=compressed
    )
    dataset = open_file(path)
    assert dataset.geometry.kind == "fan"
    assert dataset.geometry.source_detector_mm == 300
    assert_same_image(dataset, FAN, tolerance=1e-4)


def test_fips_pitch_is_the_pixel_times_the_binning(tmp_path):
    path = files.fips_v5(tmp_path / "a.mat", files.sinogram(FAN), FAN, "CtData", style="binning")
    assert open_file(path).geometry.pitch_mm == pytest.approx(FAN.pitch_mm)


def test_fips_version_73_opens_with_no_question(tmp_path):
    path = files.fips_v73(tmp_path / "a.mat", files.sinogram(FAN), FAN, "CtDataFull")
    assert_same_image(open_file(path), FAN, tolerance=1e-4)


def test_fips_struct_array_is_a_series_of_slices(tmp_path):
    values = files.sinogram(FAN)
    path = files.fips_v73_array(tmp_path / "a.mat", [values / 2, values], FAN, "CtData")
    dataset = open_file(path)
    assert dataset.count == 2
    assert_same_image(dataset, FAN, tolerance=1e-4)


@pytest.mark.parametrize(("mode", "order"), [(2, "<"), (2, ">"), (1, "<"), (6, ">"), (12, "<")])
def test_mrc_stack_with_a_tilt_file(tmp_path, mode, order):
    values = files.two_rows(files.sinogram(PARALLEL))
    stack, unit = values, {"unit": "line-integral"}
    if mode in (1, 6):
        stack = np.round(30_000 * np.exp(-values))
        unit = {"unit": "counts", "scan_air": 30_000.0}
    path = files.mrc(tmp_path / "a.mrc", stack, mode, order, extended=b"x" * 256)
    (tmp_path / "a.tlt").write_text("\n".join(f" {a:8.3f}" for a in ANGLES))
    assert_same_image(open_file(path, **unit), PARALLEL)


def test_mrc_bytes_are_signed_unless_imod_says_otherwise(tmp_path):
    stack = np.full((3, 4, 5), -7)
    path = files.mrc(tmp_path / "a.mrc", stack, 0)
    told = {"unit": "line-integral", "scan_range": 180.0}
    assert open_file(path, **told).read(0).max() == -7
    content = bytearray(path.read_bytes())
    content[152:160] = (1146047817).to_bytes(4, "little") + (0).to_bytes(4, "little")
    path.write_bytes(content)
    assert open_file(path, **told).read(0).min() == 249


@pytest.mark.parametrize("geometry", [PARALLEL, FAN], ids=["parallel", "fan"])
@pytest.mark.parametrize("suffix", ["npy", "npz", "mat", "h5", "raw", "big.raw", "tif"])
def test_plain_arrays_with_a_sidecar(tmp_path, suffix, geometry):
    import h5py
    import scipy.io

    values = files.sinogram(geometry)
    path = tmp_path / f"scan.{suffix.split('.')[-1]}"
    more = {}
    if suffix == "npy":
        np.save(path, values)
    elif suffix == "npz":
        np.savez_compressed(path, sinogram=values, angles=np.zeros(3))
    elif suffix == "mat":
        scipy.io.savemat(path, {"scan": values})
    elif suffix == "h5":
        with h5py.File(path, "w") as file:
            file["some/where"] = values
            file["else"] = values
        more = {"dataset": "some/where"}
    elif suffix == "tif":
        files.tiff_pages(path, values[None])
    else:
        order = "big" if suffix == "big.raw" else "little"
        path.write_bytes(values.astype(">f4" if order == "big" else "<f4").tobytes())
        more = {"shape": list(values.shape), "dtype": "float32", "byte_order": order}
    files.sidecar(tmp_path / "scan.json", **files.told(geometry, **more))
    dataset = open_file(path, kind="sinogram")
    assert_same_image(dataset, geometry, tolerance=1e-4)
    assert any(fact.origin == "scan.json" for fact in dataset.facts)


@pytest.mark.parametrize("make", [files.tiff_pages, files.tiff_folder])
def test_tiff_projections_in_natural_order(tmp_path, make):
    from engine.data.readers.volumes.picture import open_tiff_stack

    stack = files.counts(files.two_rows(files.sinogram(PARALLEL)), dark=0.0).astype(np.uint16)
    path = make(tmp_path / ("a.tif" if make is files.tiff_pages else "views"), stack)
    side = tmp_path / "any.json"
    files.sidecar(side, **files.told(PARALLEL, unit="counts", flat=files.WHITE))
    dataset = open_tiff_stack(path, InputOptions(kind="sinogram", sidecar=str(side)))
    assert dataset.count == 2
    assert_same_image(dataset, PARALLEL)


@pytest.mark.parametrize("flat", ["number", "list", "file"])
def test_counts_with_flat_and_dark_fields_in_the_sidecar(tmp_path, flat):
    values = files.sinogram(PARALLEL)
    white, dark = files.fields(values.shape[1])
    white, dark = (files.WHITE, files.DARK) if flat == "number" else (white[0], dark[0])
    np.save(tmp_path / "scan.npy", files.counts(values, white, dark))
    np.save(tmp_path / "white.npy", white)
    say = {"number": white, "list": np.atleast_1d(white).tolist(), "file": "white.npy"}[flat]
    side = files.told(PARALLEL, unit="counts", flat=say, dark=np.asarray(dark).tolist())
    files.sidecar(tmp_path / "scan.json", **side)
    assert_same_image(open_file(tmp_path / "scan.npy"), PARALLEL)


def test_transmission_is_the_exponential(tmp_path):
    np.save(tmp_path / "scan.npy", np.exp(-files.sinogram(PARALLEL)))
    files.sidecar(tmp_path / "scan.json", **files.told(PARALLEL, unit="transmission"))
    assert_same_image(open_file(tmp_path / "scan.npy"), PARALLEL, tolerance=1e-4)


def test_axes_may_come_in_any_order(tmp_path):
    volume = np.stack([files.sinogram(PARALLEL) / 2, files.sinogram(PARALLEL)])
    np.save(tmp_path / "scan.npy", volume.transpose(2, 0, 1))
    side = files.told(PARALLEL, axes="detector,slice,view")
    files.sidecar(tmp_path / "scan.json", **side)
    dataset = open_file(tmp_path / "scan.npy")
    assert dataset.count == 2
    assert_same_image(dataset, PARALLEL, tolerance=1e-4)


def test_the_angles_follow_start_range_direction(tmp_path):
    """t_i = start + d i range / views."""
    np.save(tmp_path / "scan.npy", np.zeros((4, 9), np.float32))
    told = {"unit": "line-integral", "scan_geometry": "parallel", "scan_pitch_mm": 1.0}
    for direction, sign in (("ccw", 1), ("cw", -1)):
        dataset = open_file(
            tmp_path / "scan.npy", scan_start=30.0, scan_range=200.0, scan_direction=direction,
            **told,
        )  # fmt: skip
        expected = 30 + sign * np.arange(4) * 50
        assert np.rad2deg(dataset.geometry.angles_rad) == pytest.approx(expected)
    side = files.sidecar(tmp_path / "b.json", angles_deg=[10, 20, 50, 60])
    dataset = open_file(
        tmp_path / "scan.npy", sidecar=str(side), scan_direction="cw", scan_start=5.0, **told
    )
    assert np.rad2deg(dataset.geometry.angles_rad) == pytest.approx([5, -5, -35, -45])


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_a_clockwise_flipped_scan_reads_right_when_it_is_said(tmp_path, kind):
    geometry = files.scan(kind, 120, 360.0, start=10.0, offset_bins=1.5)
    values = files.sinogram(geometry)[::-1, ::-1]  # views in turning order, last one first
    np.save(tmp_path / "scan.npy", values)
    last = float(np.rad2deg(geometry.angles_rad[-1]))
    side = files.told(geometry, scan_direction="cw", scan_start=last, scan_flip=True)
    del side["angles_deg"]
    files.sidecar(tmp_path / "scan.json", **side, scan_range=360)
    assert_same_image(open_file(tmp_path / "scan.npy"), geometry, tolerance=1e-4)


def test_what_is_missing_is_named(tmp_path):
    np.save(tmp_path / "scan.npy", np.zeros((4, 9), np.float32))
    with pytest.raises(GeometryNeeded) as caught:
        open_file(tmp_path / "scan.npy", kind="sinogram")
    assert set(caught.value.missing) == {"unit", "scan_geometry", "scan_pitch_mm", "scan_range"}
    assert "--scan-pitch-mm" in str(caught.value)
    with pytest.raises(GeometryNeeded) as caught:
        open_file(
            tmp_path / "scan.npy", unit="counts", scan_geometry="fan", scan_pitch_mm=1.0,
            scan_range=360.0, scan_source_origin_mm=50.0,
        )  # fmt: skip
    assert set(caught.value.missing) == {"scan_air", "scan_source_detector_mm"}


def test_other_kinds_of_arrays_go_to_their_readers(tmp_path):
    import h5py

    values = np.ones((6, 8), np.complex64)
    np.savez(tmp_path / "a.npz", kspace=values, other=np.ones((4, 4)))
    assert open_input(str(tmp_path / "a.npz"), InputOptions(kind="kspace")).kind == "kspace"
    pairs = np.zeros((8, 6), [("real", "f8"), ("imag", "f8")])  # as MATLAB 7.3 has them
    pairs["imag"][2, 1] = 3.0
    with h5py.File(tmp_path / "b.mat", "w", userblock_size=512) as file:
        file["k"] = pairs
        file["k"].attrs["MATLAB_class"] = np.bytes_("double")
    said = InputOptions(axes="read,phase")
    assert open_input(str(tmp_path / "b.mat"), said).kind == "kspace"
    image = np.arange(24.0).reshape(2, 3, 4)
    np.save(tmp_path / "c.npy", image.transpose(1, 2, 0))
    said = InputOptions(unit="hu", axes="row,column,slice")
    dataset = open_input(str(tmp_path / "c.npy"), said)
    assert dataset.kind == "image"
    assert np.array_equal(dataset.read(1), image[1])
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["volume"] = image
    dataset = open_input(str(tmp_path / "d.h5"), InputOptions(unit="hu"))
    assert np.array_equal(dataset.read(1), image[1])
