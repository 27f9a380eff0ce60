"""NIfTI in and out: values, slopes, orientation, and files that lie."""

import contextlib
import dataclasses
import gzip
import random
import struct
import time

import numpy as np
import pytest
from results import make_result
from volume_files import assert_every_voxel_is_in_its_place, nifti_bytes, oblique, write_nifti

from engine.data.dataset import Placement
from engine.data.readers.volumes.nifti import open_nifti
from engine.data.source import open_input
from engine.export import write_outputs
from engine.spec.errors import DualscopeError, RequestError
from engine.spec.input_options import InputOptions

HU, MR = InputOptions(unit="hu"), InputOptions(modality="mr")
VOLUME = np.random.default_rng(0).integers(-1000, 2000, (4, 5, 3)).astype(np.int16)


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
@pytest.mark.parametrize("big", [False, True])
def test_oblique_anisotropic_volumes_keep_values_and_places(name, big, tmp_path):
    path = write_nifti(tmp_path / name, VOLUME, oblique(), big=big)
    dataset = open_input(str(path), HU)
    assert (dataset.kind, dataset.modality, len(dataset)) == ("image", "CT", 3)
    assert dataset.pixel_mm == pytest.approx((1.3, 0.8), rel=1e-6)
    assert dataset.warnings == []
    assert_every_voxel_is_in_its_place(dataset, VOLUME, oblique(), atol=1e-3)


def test_identity_like_axial_is_shown_radiologically(tmp_path):
    """RAS identity: the first voxel is the most left and posterior: shown at the lower right."""
    volume = np.zeros((3, 4, 1), np.float32)
    volume[0, 0, 0] = 7
    ras_identity = np.diag([-1.0, -1.0, 1.0, 1.0])
    dataset = open_nifti(write_nifti(tmp_path / "a.nii", volume, ras_identity), HU)
    image = dataset.read(0)
    assert image.shape == (4, 3)
    assert image[3, 2] == 7
    assert dataset.placements[0].along_row == (1, 0, 0)
    assert dataset.placements[0].along_column == (0, 1, 0)
    assert dataset.placements[0].position == (-2, -3, 0)


def test_slope_and_intercept_apply_and_zero_slope_does_not(tmp_path):
    for slope, inter, expected in ((2.5, -1024.0, 2.5 * VOLUME - 1024), (0.0, 9.0, VOLUME)):
        path = write_nifti(tmp_path / "a.nii", VOLUME, np.eye(4), slope=slope, inter=inter)
        shown = open_nifti(path, InputOptions(modality="mr")).read(1)
        np.testing.assert_array_equal(shown, expected[:, :, 1].T)


def test_less_than_air_in_a_ct_volume_is_air_and_said_when_it_is_read(tmp_path):
    volume = VOLUME.copy()
    volume[0, 0, 1] = -3024
    dataset = open_nifti(write_nifti(tmp_path / "a.nii", volume, np.eye(4)), HU)
    assert dataset.read(1).min() >= -1024
    assert (dataset.read(1) == -1000).sum() == 1
    assert "down to -3024" in dataset.notices[-1]


def test_units_of_length_become_millimetres(tmp_path):
    path = write_nifti(tmp_path / "a.nii", VOLUME, oblique(), units=3)  # micrometres
    assert open_nifti(path, HU).pixel_mm == pytest.approx((0.0013, 0.0008), rel=1e-5)


def test_what_nifti_does_not_say_is_asked_for(tmp_path):
    path = write_nifti(tmp_path / "a.nii", VOLUME, np.eye(4))
    with pytest.raises(RequestError, match="--modality"):
        open_nifti(path, InputOptions())
    with pytest.raises(RequestError, match="--unit"):
        open_nifti(path, InputOptions(modality="ct"))
    with pytest.raises(RequestError, match="--kind"):
        open_nifti(path, InputOptions(kind="kspace", unit="hu"))
    assert open_nifti(path, MR).modality == "MR"
    mu = write_nifti(tmp_path / "mu.nii", np.full((2, 2, 1), 0.0384, np.float32), np.eye(4))
    np.testing.assert_allclose(open_nifti(mu, InputOptions(unit="mu")).read(0), 1000, rtol=1e-5)


def test_a_sidecar_may_say_it_and_another_program_s_file_does_not_disturb(tmp_path):
    path = write_nifti(tmp_path / "a.nii", VOLUME, np.eye(4))
    (tmp_path / "a.json").write_text('{"Modality": "CT"}')
    with pytest.raises(RequestError, match="--modality"):
        open_nifti(path, InputOptions())
    (tmp_path / "a.json").write_text('{"modality": "ct", "unit": "hu"}')
    dataset = open_nifti(path, InputOptions())
    assert dataset.modality == "CT"
    assert {fact.origin for fact in dataset.facts if fact.name == "unit"} == {"a.json"}


def test_complex_volumes_are_mr(tmp_path):
    volume = (VOLUME + 1j * VOLUME[::-1]).astype(np.complex64)
    dataset = open_nifti(write_nifti(tmp_path / "a.nii.gz", volume, np.eye(4)), InputOptions())
    assert dataset.modality == "MR"
    np.testing.assert_array_equal(dataset.read(2), volume[:, :, 2].T)
    with pytest.raises(RequestError, match="complex"):
        open_nifti(tmp_path / "a.nii.gz", HU)


def test_of_four_axes_the_first_volume_is_taken_and_said(tmp_path):
    volume = np.arange(48, dtype=np.float32).reshape(2, 3, 2, 4)
    path = write_nifti(tmp_path / "a.nii", volume, np.eye(4))
    dataset = open_nifti(path, HU)
    assert "4 volumes" in dataset.warnings[0]
    np.testing.assert_array_equal(dataset.read(1), volume[:, :, 1, 0].T)
    third = open_nifti(path, InputOptions(unit="hu", dataset="2"))
    np.testing.assert_array_equal(third.read(1), volume[:, :, 1, 2].T)
    for wrong in ("4", "x", "-1"):
        with pytest.raises(RequestError, match="--dataset"):
            open_nifti(path, InputOptions(unit="hu", dataset=wrong))


def test_without_orientation_the_image_is_shown_as_stored(tmp_path):
    content = bytearray(nifti_bytes(VOLUME, oblique()))
    struct.pack_into("<2h", content, 252, 0, 0)
    (tmp_path / "a.nii").write_bytes(content)
    dataset = open_nifti(tmp_path / "a.nii", HU)
    assert dataset.placements is None
    assert any("orientation" in warning for warning in dataset.warnings)
    assert dataset.pixel_mm == pytest.approx((1.3, 0.8))
    np.testing.assert_array_equal(dataset.read(0), VOLUME[:, :, 0].T)


@pytest.mark.parametrize("modality", ["CT", "MR"])
@pytest.mark.parametrize("name", ["out.nii", "out.nii.gz"])
def test_what_we_write_we_read_back(name, modality, tmp_path):
    result = make_result(modality, slices=3, placed=True)
    assert write_outputs([tmp_path / name], result) == []
    dataset = open_input(str(tmp_path / name))  # its own note says what it is
    assert dataset.modality == modality
    assert len(dataset) == 3
    for number, values in enumerate(result.values()):
        np.testing.assert_array_equal(dataset.read(number), values)
    for ours, theirs in zip(result.dataset.placements, dataset.placements, strict=True):
        np.testing.assert_allclose(ours.position, theirs.position, atol=1e-4)
        np.testing.assert_allclose(ours.along_row, theirs.along_row, atol=1e-6)
        np.testing.assert_allclose(ours.along_column, theirs.along_column, atol=1e-6)
        np.testing.assert_allclose(ours.spacing_mm, theirs.spacing_mm, atol=1e-6)
        assert ours.thickness_mm == pytest.approx(theirs.thickness_mm, abs=1e-4)


def test_chosen_slices_keep_their_places(tmp_path):
    result = make_result("CT", slices=5, placed=True, numbers=(1, 3))
    write_outputs([tmp_path / "a.nii"], result)
    dataset = open_input(str(tmp_path / "a.nii"))
    for number, expected in enumerate((1, 3)):
        position = result.dataset.placements[expected].position
        np.testing.assert_allclose(dataset.placements[number].position, position, atol=1e-4)


def test_an_unplaced_result_is_written_with_a_note(tmp_path):
    result = make_result("CT", slices=1, placed=False)
    (note,) = write_outputs([tmp_path / "a.nii"], result)
    assert "orientation" in note
    dataset = open_input(str(tmp_path / "a.nii"))
    assert dataset.placements is None
    assert dataset.pixel_mm == pytest.approx(result.dataset.pixel_mm)


def test_the_same_result_gives_the_same_file(tmp_path):
    result = make_result("CT", slices=2, placed=True)
    write_outputs([tmp_path / "a.nii.gz", tmp_path / "b.nii.gz"], result)
    assert (tmp_path / "a.nii.gz").read_bytes() == (tmp_path / "b.nii.gz").read_bytes()


def test_nan_is_refused_and_leaves_nothing_behind(tmp_path):
    result = make_result("CT", slices=1, placed=True)
    result.image[0, 0, 1, 1] = float("nan")
    for name in ("a.nii", "a.png", "a.16.png", "a.tif", "a.h5", "a.npy"):
        with pytest.raises(DualscopeError, match="NaN"):
            write_outputs([tmp_path / name], result)
    assert list(tmp_path.iterdir()) == []


def broken_files():
    good = nifti_bytes(VOLUME, np.eye(4))
    packed = gzip.compress(good)
    yield "empty.nii", b""
    yield "text.nii", b"not a NIfTI file at all" * 40
    yield "cut-header.nii", good[:200]
    yield "cut-data.nii", good[:-1]
    yield "cut.nii.gz", packed[: len(packed) // 2]
    yield "garbage.nii.gz", packed[:12] + bytes(range(256)) * 4
    yield "huge.nii", nifti_bytes(VOLUME, np.eye(4), dim=(7, *(32767,) * 7))
    yield (
        "huge.nii.gz",
        gzip.compress(nifti_bytes(VOLUME, np.eye(4), dim=(3, *(32767,) * 3, 1, 1, 1, 1))),
    )
    yield "negative.nii", nifti_bytes(VOLUME, np.eye(4), dim=(3, 4, -5, 3, 1, 1, 1, 1))
    yield "no-axes.nii", nifti_bytes(VOLUME, np.eye(4), dim=(0, 4, 5, 3, 1, 1, 1, 1))
    yield "colour.nii", nifti_bytes(VOLUME, np.eye(4), code=128)
    yield "unknown-type.nii", nifti_bytes(VOLUME, np.eye(4), code=31000)
    # declares 900 MB, holds 60 bytes: refused by the ratio, nothing is allocated
    yield (
        "bomb.nii.gz",
        gzip.compress(nifti_bytes(VOLUME, np.eye(4), dim=(3, 20000, 22500, 1, 1, 1, 1, 1))),
    )


BROKEN = dict(broken_files())


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_one_sentence(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(BROKEN[name])
    with pytest.raises(RequestError, match=name):
        open_nifti(path, HU).read(0)


def test_a_geometry_without_sense_is_ignored_and_said(tmp_path):
    path = write_nifti(tmp_path / "a.nii", VOLUME, np.diag([0.0, 0.0, 0.0, 1.0]))
    dataset = open_nifti(path, HU)
    assert dataset.placements is None
    assert "no sense" in dataset.warnings[0]


def test_mutated_files_open_or_are_refused(tmp_path):
    rng = random.Random(0)
    whole = nifti_bytes(VOLUME, oblique(), slope=1.0)
    started = time.monotonic()
    for n in range(400):
        content = bytearray(whole)
        for _ in range(rng.randrange(1, 6)):
            content[rng.randrange(352)] = rng.randrange(256)
        data = bytes(content[: rng.choice((len(content), rng.randrange(len(content))))])
        path = tmp_path / ("m.nii.gz" if n % 2 else "m.nii")
        path.write_bytes(gzip.compress(data, 1) if n % 2 else data)
        with contextlib.suppress(RequestError):
            open_nifti(path, MR).read(0)
    assert time.monotonic() - started < 10


def with_placements(result, placements):
    dataset = dataclasses.replace(result.dataset, placements=tuple(placements))
    return dataclasses.replace(result, dataset=dataset)


def places(placements, shape):
    """Where every pixel of every slice lies: [slice, row, column, 3]."""
    rows, columns = np.arange(shape[1])[:, None, None], np.arange(shape[2])[None, :, None]
    return np.stack(
        [
            np.array(p.position)
            + rows * p.spacing_mm[0] * np.array(p.along_column)
            + columns * p.spacing_mm[1] * np.array(p.along_row)
            for p in placements
        ]
    )


def assert_same_world(result, dataset):
    """The same value at the same place, however the screen turns it."""
    values = result.values()
    shown = np.stack([dataset.read(n) for n in range(len(dataset))])
    ours = places(result.dataset.placements, values.shape).reshape(-1, 3)
    theirs = places(dataset.placements, shown.shape).reshape(-1, 3)
    order, other = (np.lexsort(np.round(p, 2).T) for p in (ours, theirs))
    np.testing.assert_allclose(ours[order], theirs[other], atol=1e-4)
    np.testing.assert_array_equal(values.ravel()[order], shown.ravel()[other])


def test_a_prone_scan_is_turned_on_the_screen_but_not_in_space(tmp_path):
    prone = [
        Placement((50.0, 60.0, 2.5 * k), (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.7, 0.9), 2.5)
        for k in range(2)
    ]
    result = with_placements(make_result("CT", slices=2), prone)
    write_outputs([tmp_path / "a.nii"], result)
    dataset = open_input(str(tmp_path / "a.nii"))
    assert dataset.placements[0].along_row == (1, 0, 0)
    np.testing.assert_array_equal(dataset.read(0), result.values()[0][::-1, ::-1])
    assert_same_world(result, dataset)


def test_gantry_tilt_is_kept_in_the_sform_and_said(tmp_path):
    tilted = [
        Placement((5.0, 0.75 * k, 2.5 * k), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.7, 0.9), 2.5)
        for k in range(3)
    ]
    result = with_placements(make_result("CT", slices=3), tilted)
    (note,) = write_outputs([tmp_path / "a.nii"], result)
    assert "askew" in note
    assert_same_world(result, open_input(str(tmp_path / "a.nii")))
