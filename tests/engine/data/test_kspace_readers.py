"""Files of each k-space format give the image they were made from, the right way round."""

import h5py
import numpy as np
import pytest
from kspace_files import fft2, header_xml, ifft2, oversampled, write_cfl, write_fastmri

from engine.data.readers.hdf5.reader import open_kspace_h5
from engine.data.readers.kspace.arrays import open_kspace_array
from engine.data.readers.kspace.bart import open_bart
from engine.data.source import open_input
from engine.physics.masks import build_mask
from engine.physics.phantoms import brain_mr
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import IntensityMap
from engine.spec.errors import DescriptionNeeded, RequestError
from engine.spec.input_options import InputOptions

MR = IntensityMap("mr")
NONE = InputOptions()
FOV = (200, 160, 5)


@pytest.fixture(scope="module")
def image():
    return brain_mr(seed=5, size=80).image[:, 8:72]


@pytest.fixture(scope="module")
def coils():
    return birdcage_maps(4, 80, 64).numpy()


def slices_of(image):
    """Three slices that differ, so that their order is seen."""
    return np.stack([image, image[::-1], 2 * image])


def same(kspace, image, tolerance=1e-4):
    assert kspace.dtype == np.complex64
    np.testing.assert_allclose(ifft2(kspace), image, atol=tolerance * np.abs(image).max())


# fastMRI


def test_a_fastmri_file_gives_its_slices(tmp_path, image):
    path = write_fastmri(tmp_path / "a.h5", fft2(slices_of(image)))
    dataset = open_kspace_h5(path, NONE)
    assert (dataset.kind, dataset.modality, len(dataset), dataset.coils) == ("kspace", "MR", 3, 1)
    assert dataset.image_size == (80, 64)
    for number, expected in enumerate(slices_of(image)):
        same(dataset.read(number), expected[None])
    assert dataset.mask(0) is None
    assert len(dataset.sha256()) == 64


def test_a_fastmri_multi_coil_file_with_oversampling_reconstructs_the_phantom(
    tmp_path, image, coils
):
    kspace = fft2(oversampled(coils * image))[None]
    xml = header_xml((160, 64, 1), (80, 48, 1), (320, 128, 5), (160, 96, 5))
    dataset = open_kspace_h5(write_fastmri(tmp_path / "a.h5", kspace, xml=xml), NONE)
    same(dataset.read(0), coils * image)
    assert dataset.image_size == (80, 64)
    assert dataset.pixel_mm == (2, 2)
    assert dataset.crop_size == (80, 48)
    problem = dataset.problem([0], {"acceleration": 2.0}, MR, seed=0)
    found = problem.physical(problem.reference)[0].numpy()
    np.testing.assert_allclose(np.hypot(*found), np.abs(image), atol=0.02 * np.abs(image).max())
    assert problem.provenance["crop"] == [80, 48]


def test_the_fastmri_mask_is_kept_and_its_padding_columns_are_not_measured(tmp_path, image):
    mask = build_mask("fastmri", 64, 4).sampled
    # lines 0..55 of the scanner, the centre being its line 28: columns 4..59 of 64
    xml = header_xml((80, 64, 1), (80, 64, 1), FOV, FOV, limits=(0, 55, 28))
    kspace = fft2(image)[None] * mask
    dataset = open_kspace_h5(write_fastmri(tmp_path / "a.h5", kspace, mask=mask, xml=xml), NONE)
    expected = mask.copy()
    expected[:4] = expected[60:] = False
    assert np.array_equal(dataset.mask(0).sampled, expected)
    assert not dataset.read(0)[..., ~expected].any()
    problem = dataset.problem([0], {}, MR, seed=0)
    assert np.array_equal(problem.operator.mask.sampled, expected)
    assert problem.reference is None


def test_a_full_fastmri_file_with_padding_can_be_undersampled(tmp_path, image):
    xml = header_xml((80, 64, 1), (80, 64, 1), FOV, FOV, limits=(0, 55, 28))
    acquired = (np.arange(64) >= 4) & (np.arange(64) < 60)
    path = write_fastmri(tmp_path / "a.h5", fft2(image)[None] * acquired, xml=xml)
    problem = open_kspace_h5(path, NONE).problem([0], {"acceleration": 2.0}, MR, seed=0)
    wanted = build_mask("inversebench", 64, 2).sampled & acquired
    assert np.array_equal(problem.operator.mask.sampled, wanted)
    assert problem.reference is not None


def test_a_fastmri_file_never_shows_its_patient(tmp_path, image):
    dataset = open_kspace_h5(write_fastmri(tmp_path / "a.h5", fft2(image)[None]), NONE)
    dataset.problem([0], {}, MR, seed=0)
    assert "SECRET" not in f"{dataset.facts} {dataset.warnings} {dataset.description}"


def test_coarse_phase_encoding_is_completed_to_square_pixels(tmp_path, image):
    """48 of 64 lines at the same field of view: the image keeps its shape on the screen."""
    kspace = fft2(image)[None, :, 8:56]
    xml = header_xml((80, 48, 1), (80, 64, 1), (200, 160, 5), (200, 160, 5))
    dataset = open_kspace_h5(write_fastmri(tmp_path / "a.h5", kspace, xml=xml), NONE)
    assert dataset.image_size == (80, 64)
    assert dataset.pixel_mm == (2.5, 2.5)
    sampled = (np.arange(64) >= 8) & (np.arange(64) < 56)
    assert np.array_equal(dataset.mask(0).sampled, sampled)
    same(dataset.read(0)[0], ifft2(fft2(image) * sampled))


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "entities"),
        ("<a" + "x" * (1 << 20), "longer"),
        ("<ismrmrdHeader><encoding>", "cannot be understood"),
        ("<a>" * 20_000 + "</a>" * 20_000, None),
        (header_xml((10**9, 64, 1)), "cannot be understood"),
        (header_xml(encoded_fov=("nan", 1, 1)), "cannot be understood"),
        (header_xml(limits=(0, 10**9, 3)), "cannot be understood"),
        ("no xml at all", "cannot be understood"),
    ],
)
def test_hostile_headers_are_refused_with_a_sentence(tmp_path, image, xml, reason):
    path = write_fastmri(tmp_path / "a.h5", fft2(image)[None], xml=xml)
    if reason is None:
        assert open_kspace_h5(path, NONE).count == 1
        return
    with pytest.raises(RequestError, match=reason):
        open_kspace_h5(path, NONE)


@pytest.mark.parametrize(
    ("kspace", "mask", "reason"),
    [
        (np.ones((2, 8)), None, "fastMRI files hold complex"),
        (np.ones((1, 0, 8)), None, "fastMRI files hold complex"),
        (np.ones((1, 8, 8)), np.ones(9), "9 values for 8 lines"),
        (np.ones((1, 8, 8)), np.full(8, 0.5), "other values"),
    ],
)
def test_fastmri_files_that_do_not_fit_are_refused(tmp_path, kspace, mask, reason):
    path = write_fastmri(tmp_path / "a.h5", kspace, mask=mask)
    with pytest.raises(RequestError, match=reason):
        open_kspace_h5(path, NONE)


def test_huge_declared_slices_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("kspace", (1, 64, 2**14, 2**14), np.complex64, chunks=(1, 1, 64, 64))
    with pytest.raises(RequestError, match="too large"):
        open_kspace_h5(path, NONE)


def test_hdf5_without_kspace_is_refused(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["other"] = np.zeros(3)
    with pytest.raises(RequestError, match="neither a fastMRI file"):
        open_kspace_h5(path, NONE)
    path.write_bytes(b"no HDF5")
    with pytest.raises(RequestError, match="damaged or not an HDF5"):
        open_kspace_h5(path, NONE)


# BART


def test_a_bart_pair_gives_its_slices_and_coils(tmp_path, image, coils):
    stack = np.stack([coils * each for each in slices_of(image)])  # [slice, coil, read, phase]
    dims = fft2(stack).transpose(2, 3, 1, 0)[:, :, None, :, *[None] * 9, :]
    path = write_cfl(tmp_path / "scan", dims)
    for name in (path, path.with_suffix(".hdr")):
        dataset = open_input(str(name))
        assert (len(dataset), dataset.coils, dataset.image_size) == (3, 4, (80, 64))
        for number, expected in enumerate(stack):
            same(dataset.read(number), expected)
    assert [file.name for file in dataset.files] == ["scan.hdr", "scan.cfl"]


def test_bart_maps_in_a_companion_file_are_used(tmp_path, image, coils):
    path = write_cfl(tmp_path / "scan", fft2(coils * image).transpose(1, 2, 0)[:, :, None])
    two_sets = np.stack((coils, 0 * coils)).transpose(2, 3, 1, 0)[:, :, None]
    write_cfl(tmp_path / "sens", two_sets)
    dataset = open_bart(path, InputOptions(dataset="sens"))
    np.testing.assert_allclose(dataset.maps(0), coils, atol=1e-6)
    assert any("2 sets of maps" in warning for warning in dataset.warnings)
    problem = dataset.problem([0], {"acceleration": 2.0}, MR, seed=0)
    found = problem.physical(problem.reference)[0].numpy()
    np.testing.assert_allclose(found[0] + 1j * found[1], image, atol=1e-3 * np.abs(image).max())
    for name in ("../sens", "missing", "/etc/passwd"):
        with pytest.raises(RequestError):
            open_bart(path, InputOptions(dataset=name))


def test_partitions_of_a_bart_volume_become_slices(tmp_path, image):
    volume = slices_of(image)[:, None]  # [partition, coil, read, phase]
    n = np.arange(3) - 1
    wave = np.exp(-2j * np.pi * np.outer(n, n) / 3) / np.sqrt(3)
    kspace = np.einsum("kz,zcxy->xykc", wave, fft2(volume))
    dataset = open_bart(write_cfl(tmp_path / "scan", kspace), NONE)
    for number, expected in enumerate(volume):
        same(dataset.read(number), expected)


def test_a_bart_plane_of_two_phase_encodings_opens(tmp_path, image, coils):
    kspace = fft2(coils * image)
    path = write_cfl(tmp_path / "scan", kspace.transpose(1, 2, 0)[None])
    sens = write_cfl(tmp_path / "sens", coils.transpose(1, 2, 0)[None])
    dataset = open_input(str(path))
    same(dataset.read(0), coils * image)
    assert dataset.image_size == (80, 64)
    assert any("1 and 2" in fact.value for fact in dataset.facts if fact.name == "plane")
    np.testing.assert_allclose(
        open_input(str(path), InputOptions(dataset="sens")).maps(0), coils, atol=1e-6
    )
    np.testing.assert_allclose(
        open_input(str(path), InputOptions(maps=str(sens))).maps(0), coils, atol=1e-6
    )


def test_the_axes_of_a_bart_file_can_be_named(tmp_path, image, coils):
    path = write_cfl(tmp_path / "scan", fft2(coils * image).transpose(2, 1, 0)[None])
    dataset = open_input(str(path), InputOptions(axes="phase,read,coil"))
    same(dataset.read(0), coils * image)


def test_a_volume_undersampled_in_two_phase_directions_gives_slices_along_its_readout(
    tmp_path, image
):
    """[z, coil, y, x] is transformed in all three; z, the readout, is dimension 0."""
    volume = np.stack([image, image[::-1], 2 * image, image[:, ::-1]])[:, None]
    n = np.arange(4) - 2
    wave = np.exp(-2j * np.pi * np.outer(n, n) / 4) / 2
    kspace = np.einsum("kz,zcxy->kxyc", wave, fft2(volume))
    mask = np.random.default_rng(0).random((80, 64)) < 0.4
    mask[36:44, 28:36] = True
    dataset = open_bart(write_cfl(tmp_path / "scan", kspace * mask[..., None]), NONE)
    assert (len(dataset), dataset.image_size) == (4, (80, 64))
    for number, expected in enumerate(volume):
        np.testing.assert_allclose(dataset.read(number), fft2(expected) * mask, atol=1e-4)
        assert np.array_equal(dataset.mask(number).sampled, mask)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("# Dimensions\n80 64 2\n", "bytes"),
        ("# Dimensions\n99999999999 99999999999\n", "impossible"),
        ("# Dimensions\n80 -64\n", "whole numbers"),
        ("# Dimensions\n", "no dimensions"),
        ("# Dimensions\n0 64\n", "impossible"),
        ("\xff\xfe nonsense", "no BART header"),
        ("# Dimensions\n" + "1 " * 17, "up to 16"),
        ("# Dimensions\n1 80 64", "non-Cartesian"),
        ("# Dimensions\n5120 1", "no k-space plane"),
    ],
)
def test_bart_headers_that_do_not_fit_are_refused(tmp_path, image, header, reason):
    path = write_cfl(tmp_path / "scan", image)
    path.with_suffix(".hdr").write_text(header, "latin-1")
    with pytest.raises(RequestError, match=reason):
        open_bart(path, NONE)


def test_a_lone_half_of_a_bart_pair_is_refused(tmp_path, image):
    path = write_cfl(tmp_path / "scan", image)
    path.with_suffix(".hdr").rename(tmp_path / "other.hdr")
    with pytest.raises(RequestError, match=r"scan\.hdr does not exist"):
        open_bart(path, NONE)
    with pytest.raises(RequestError, match="no BART header"):
        open_bart(tmp_path / "other.hdr", NONE)


# bare arrays


@pytest.mark.parametrize(
    ("axes", "order"),
    [
        ("slice,coil,read,phase", (0, 1, 2, 3)),
        ("read,phase,coil,slice", (2, 3, 1, 0)),
        ("phase, read, slice, coil", (3, 2, 0, 1)),
    ],
)
def test_an_array_is_read_in_the_named_order(tmp_path, image, coils, axes, order):
    stack = np.stack([coils * each for each in slices_of(image)])
    path = tmp_path / "scan.npy"
    np.save(path, fft2(stack).transpose(order).astype(np.complex64))
    mapped = np.load(path, mmap_mode="r")
    dataset = open_kspace_array(mapped, path, InputOptions(axes=axes, pixel_mm=1.5))
    assert (len(dataset), dataset.coils, dataset.pixel_mm) == (3, 4, (1.5, 1.5))
    same(dataset.read(1), stack[1])
    assert dataset.files == (path,)


def test_real_and_imaginary_parts_may_be_an_axis(tmp_path, image):
    kspace = fft2(image)
    pairs = np.stack((kspace.real, kspace.imag))
    dataset = open_kspace_array(pairs, tmp_path / "a.npy", InputOptions(axes="complex,read,phase"))
    same(dataset.read(0), image[None])
    with pytest.raises(RequestError, match="real numbers"):
        open_kspace_array(pairs, tmp_path / "a.npy", NONE)


def test_a_plane_needs_no_axes_but_says_what_it_took_them_for(tmp_path, image):
    dataset = open_kspace_array(fft2(image), tmp_path / "a.npy", NONE)
    same(dataset.read(0), image[None])
    fact = next(fact for fact in dataset.facts if fact.name == "axes")
    assert fact.value == "read,phase"
    assert fact.origin.startswith("assumed")


# coil maps of their own, and arrays that do not say what they are


def test_coil_maps_may_come_from_any_file_in_any_order(tmp_path, image, coils):
    np.save(tmp_path / "scan.npy", fft2(coils * image).astype(np.complex64))
    np.save(tmp_path / "last.npy", coils.transpose(1, 2, 0))
    write_cfl(tmp_path / "sens", coils.transpose(1, 2, 0)[:, :, None])
    with h5py.File(tmp_path / "sens.h5", "w") as file:
        file["maps"], file["other"] = coils[None], coils
    with h5py.File(tmp_path / "sens.mat", "w") as file:  # as MATLAB stores [read, phase, coil]
        pairs = np.zeros(coils.shape, [("real", "f8"), ("imag", "f8")]).swapaxes(1, 2)
        pairs["real"], pairs["imag"] = coils.real.swapaxes(1, 2), coils.imag.swapaxes(1, 2)
        file["maps"] = pairs
    for name in ("last.npy", "sens.cfl", "sens.hdr", "sens.h5", "sens.mat"):
        asked = {"kind": "kspace", "axes": "coil,read,phase", "maps": str(tmp_path / name)}
        dataset = open_input(str(tmp_path / "scan.npy"), InputOptions(**asked))
        np.testing.assert_allclose(dataset.maps(0), coils, atol=1e-6)
        assert tmp_path / name in dataset.files


def test_maps_keep_the_rows_that_removed_oversampling_keeps(tmp_path, image, coils):
    wide = np.pad(coils, ((0, 0), (40, 40), (0, 0)), mode="edge")
    np.save(tmp_path / "scan.npy", fft2(oversampled(coils * image)).astype(np.complex64))
    np.save(tmp_path / "maps.npy", wide)
    asked = {"kind": "kspace", "axes": "coil,read,phase", "size": 80}
    options = InputOptions(**asked, maps=str(tmp_path / "maps.npy"))
    np.testing.assert_allclose(open_input(str(tmp_path / "scan.npy"), options).maps(0), coils)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.ones((4, 80, 63), complex), "do not fit 4 coils of 80 x 64"),
        (np.ones((4, 80, 64)), "coil maps are complex"),
        (np.zeros((4, 80, 64), complex), "zero everywhere"),
        (None, "does not exist"),
    ],
)
def test_maps_that_do_not_fit_are_refused(tmp_path, image, coils, values, reason):
    np.save(tmp_path / "scan.npy", fft2(coils * image).astype(np.complex64))
    if values is not None:
        np.save(tmp_path / "maps.npy", values)
    asked = {"kind": "kspace", "axes": "coil,read,phase", "maps": str(tmp_path / "maps.npy")}
    with pytest.raises(RequestError, match=reason):
        open_input(str(tmp_path / "scan.npy"), InputOptions(**asked))


def test_maps_and_virtual_coils_are_for_kspace_alone(tmp_path):
    np.save(tmp_path / "image.npy", np.zeros((32, 32), np.float32))
    for asked in ({"maps": "a.npy"}, {"virtual_coils": 4}, {"mr_scale": 1.0}):
        with pytest.raises(RequestError, match="is for k-space"):
            open_input(str(tmp_path / "image.npy"), InputOptions(modality="mr", **asked))


def test_a_complex_array_that_looks_like_kspace_is_asked_about(tmp_path, image, coils):
    kspace = fft2(coils * image).astype(np.complex64)
    for number, array in enumerate((kspace, kspace.transpose(1, 2, 0), kspace[0])):
        path = tmp_path / f"{number}.npy"
        np.save(path, array)
        with pytest.raises(DescriptionNeeded, match="looks like k-space") as caught:
            open_input(str(path))
        assert caught.value.missing == ("kind",)
        assert open_input(str(path), InputOptions(kind="image")).kind == "image"


def test_a_complex_image_is_still_an_image(tmp_path, image, coils):
    for number, array in enumerate((image, coils * image)):
        np.save(tmp_path / f"{number}.npy", array.astype(np.complex64))
        assert open_input(str(tmp_path / f"{number}.npy")).kind == "image"


def test_a_stated_size_removes_readout_oversampling(tmp_path, image):
    dataset = open_kspace_array(fft2(oversampled(image)), tmp_path / "a.npy", InputOptions(size=80))
    same(dataset.read(0), image[None])
    assert dataset.image_size == (80, 64)


@pytest.mark.parametrize(
    ("shape", "axes", "reason"),
    [
        ((3, 8, 8), None, "--axes slice,read,phase or --axes coil,read,phase"),
        ((2, 3, 8, 8), None, "unknown order"),
        ((8,), None, "unknown order"),
        ((3, 8, 8), "slice,read", "names 2 axes"),
        ((3, 8, 8), "slice,coil,read", "must name 'read' and 'phase'"),
        ((3, 8, 8), "read,read,phase", "once at most"),
        ((3, 8, 8), "slice,row,column", "once at most"),
        ((2, 8, 8), "complex,read,phase", "must not name 'complex'"),
        ((0, 8), None, "no k-space"),
    ],
)
def test_an_unclear_order_of_axes_is_refused(tmp_path, shape, axes, reason):
    with pytest.raises(RequestError, match=reason):
        open_kspace_array(np.ones(shape, complex), tmp_path / "a.npy", InputOptions(axes=axes))
