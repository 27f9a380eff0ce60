"""NRRD: encodings, spaces, detached data, and headers that lie."""

import contextlib
import random

import numpy as np
import pytest
from volume_files import assert_every_voxel_is_in_its_place, oblique, write_nrrd

from engine.data.readers.volumes.nrrd import open_nrrd
from engine.data.source import open_input
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

HU = InputOptions(unit="hu")
VOLUME = np.random.default_rng(1).integers(-1000, 2000, (4, 5, 3)).astype(np.int16)


@pytest.mark.parametrize("encoding", ["raw", "gzip", "ascii"])
@pytest.mark.parametrize("space", ["LPS", "right-anterior-superior", "LAS"])
def test_oblique_volumes_keep_values_and_places(encoding, space, tmp_path):
    path = write_nrrd(tmp_path / "a.nrrd", VOLUME, oblique(), encoding=encoding, space=space)
    dataset = open_input(str(path), HU)
    assert (dataset.modality, len(dataset), dataset.warnings) == ("CT", 3, [])
    assert_every_voxel_is_in_its_place(dataset, VOLUME, oblique())


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("encoding", ["raw", "ascii"])
def test_types_and_byte_orders(dtype, encoding, tmp_path):
    volume = np.abs(VOLUME).astype(dtype)
    path = write_nrrd(tmp_path / "a.nrrd", volume, np.eye(4), encoding=encoding, big=True)
    np.testing.assert_array_equal(open_nrrd(path, HU).read(2), volume[:, :, 2].T)


@pytest.mark.parametrize("encoding", ["raw", "gzip"])
def test_detached_data_lie_in_the_same_folder(encoding, tmp_path):
    path = write_nrrd(tmp_path / "a.nhdr", VOLUME, oblique(), encoding=encoding, detached="a.raw")
    dataset = open_input(str(path), HU)
    assert [file.name for file in dataset.files] == ["a.nhdr", "a.raw"]
    assert_every_voxel_is_in_its_place(dataset, VOLUME, oblique())


@pytest.mark.parametrize("name", ["../secret.raw", "/etc/hostname", "sub/secret.raw", "..", "."])
def test_detached_data_elsewhere_are_refused(name, tmp_path):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for secret in (tmp_path / "secret.raw", tmp_path / "in" / "sub" / "secret.raw"):
        secret.write_bytes(bytes(10_000))
    path = write_nrrd(tmp_path / "in" / "a.nhdr", VOLUME, np.eye(4), detached="x.raw")
    path.write_text(path.read_text().replace("x.raw", name))
    with pytest.raises(RequestError, match="same folder"):
        open_nrrd(path, HU)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.raw").write_bytes(bytes(10_000))
    path = write_nrrd(tmp_path / "in" / "a.nhdr", VOLUME, np.eye(4), detached="x.raw")
    (tmp_path / "in" / "x.raw").unlink()
    try:
        (tmp_path / "in" / "x.raw").symlink_to(tmp_path / "secret.raw")
    except OSError:
        pytest.skip("no symbolic links here")
    with pytest.raises(RequestError, match="same folder"):
        open_nrrd(path, HU)


def header(**changes):
    fields = {
        "type": "float",
        "dimension": "3",
        "sizes": "2 3 1",
        "endian": "little",
        "encoding": "raw",
    }
    fields |= {name.replace("_", " "): value for name, value in changes.items()}
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return ("NRRD0005\n" + "\n".join(lines) + "\n\n").encode()


NUMBERS = np.arange(6, dtype="<f4")


def test_spacings_alone_give_the_pixel_size_but_no_place(tmp_path):
    path = tmp_path / "a.nrrd"
    path.write_bytes(header(spacings="0.5 0.75 2") + NUMBERS.tobytes())
    dataset = open_nrrd(path, HU)
    assert dataset.pixel_mm == (0.75, 0.5)
    assert dataset.placements is None
    assert any("orientation" in warning for warning in dataset.warnings)
    np.testing.assert_array_equal(dataset.read(0), NUMBERS.reshape(3, 2))


def test_without_any_spacing_one_millimetre_is_assumed_and_said(tmp_path):
    path = tmp_path / "a.nrrd"
    path.write_bytes(header() + NUMBERS.tobytes())
    dataset = open_nrrd(path, HU)
    assert dataset.pixel_mm == (1, 1)
    assert any("1 mm is assumed" in warning for warning in dataset.warnings)
    assert open_nrrd(path, InputOptions(unit="hu", pixel_mm=0.6)).pixel_mm == (0.6, 0.6)


def test_skipped_lines_and_bytes(tmp_path):
    path = tmp_path / "a.nrrd"
    path.write_bytes(header(line_skip="2", byte_skip="3") + b"one\ntwo\nxyz" + NUMBERS.tobytes())
    np.testing.assert_array_equal(open_nrrd(path, HU).read(0), NUMBERS.reshape(3, 2))
    path.write_bytes(header(byte_skip="-1") + b"anything" + NUMBERS.tobytes())
    np.testing.assert_array_equal(open_nrrd(path, HU).read(0), NUMBERS.reshape(3, 2))


def test_complex_pairs_and_trailing_volumes(tmp_path):
    path = tmp_path / "a.nrrd"
    numbers = np.arange(12, dtype="<f4")
    path.write_bytes(
        header(dimension="4", sizes="2 2 3 1", kinds="complex space space space")
        + numbers.tobytes()
    )
    dataset = open_nrrd(path, InputOptions())
    assert dataset.modality == "MR"
    np.testing.assert_array_equal(dataset.read(0), numbers.view("<c8").reshape(3, 2))
    path.write_bytes(
        header(dimension="4", sizes="2 3 1 2", kinds="space space space list") + numbers.tobytes()
    )
    second = open_nrrd(path, InputOptions(unit="hu", dataset="1"))
    np.testing.assert_array_equal(second.read(0), numbers[6:].reshape(3, 2))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"NRRD0005",
        b"NRRD0005\n\n" + bytes(100),
        header(sizes="2 3 100000") + bytes(24),
        header(sizes="-2 -3 1") + bytes(24),
        header(sizes="99999999999999999999 3 1") + bytes(24),
        header(sizes="1048576 1048576 1048576", encoding="gzip") + bytes(24),
        header(sizes="two three one") + bytes(24),
        header(dimension="17") + bytes(24),
        header(type="block") + bytes(24),
        header(endian=None) + bytes(24),
        header(encoding="hex") + bytes(24),
        header(encoding="gzip") + b"\x1f\x8b\x08\0broken" + bytes(24),
        header(encoding="ascii") + b"1 2 three 4 5 6 7 8 9",
        header(encoding="ascii") + b"1 2 3",
        header(spacings="nan 1 1") + bytes(24),
        header(space="LPS", space_directions="(1,0,0) (0,1) (0,0,x)") + bytes(24),
        header(line_skip="9") + bytes(24),
        header(byte_skip="-7") + bytes(24),
        header(data_file="LIST") + bytes(24),
        header(data_file="slice%03d.raw 1 9 1") + bytes(24),
        header(kinds="RGB-color space space", sizes="3 2 1") + bytes(24),
        header().replace(b"sizes", b"si\xff\xfees") + bytes(24),
        b"NRRD0005\n" + b"# " + b"x" * (2 << 20),
    ],
    ids=range(24),
)
def test_broken_files_are_one_sentence(content, tmp_path):
    path = tmp_path / "broken.nrrd"
    path.write_bytes(content)
    with pytest.raises(RequestError, match=r"broken\.nrrd"):
        open_nrrd(path, HU).read(0)


def test_mutated_files_open_or_are_refused(tmp_path):
    rng, path = random.Random(0), tmp_path / "m.nrrd"
    for encoding in ("raw", "gzip", "ascii"):
        whole = write_nrrd(path, VOLUME, oblique(), encoding=encoding).read_bytes()
        for _ in range(60):
            content = bytearray(whole)
            for _ in range(rng.randrange(1, 8)):
                content[rng.randrange(len(content))] = rng.randrange(256)
            path.write_bytes(content[: rng.choice((len(content), rng.randrange(len(content))))])
            with contextlib.suppress(RequestError):
                open_nrrd(path, HU).read(0)
