"""MetaImage: one file or two, compressed or not, and headers that lie."""

import contextlib
import random
import zlib

import numpy as np
import pytest
from volume_files import assert_every_voxel_is_in_its_place, oblique, write_metaimage

from engine.data.readers.volumes.metaimage import open_metaimage
from engine.data.source import open_input
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

HU = InputOptions(unit="hu")
VOLUME = np.random.default_rng(2).integers(-1000, 2000, (4, 5, 3)).astype(np.int16)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("detached", [None, "a.raw"])
def test_oblique_volumes_keep_values_and_places(packed, big, detached, tmp_path):
    path = tmp_path / ("a.mhd" if detached else "a.mha")
    write_metaimage(path, VOLUME, oblique(), packed=packed, big=big, detached=detached)
    dataset = open_input(str(path), HU)
    assert (dataset.modality, len(dataset), dataset.warnings) == ("CT", 3, [])
    assert dataset.pixel_mm == pytest.approx((1.3, 0.8))
    assert_every_voxel_is_in_its_place(dataset, VOLUME, oblique())


@pytest.mark.parametrize("name", ["../secret.raw", "/etc/hostname", "sub/x.raw", "..", "c:\\x.raw"])
def test_data_elsewhere_are_refused(name, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.raw").write_bytes(bytes(10_000))
    path = write_metaimage(tmp_path / "in" / "a.mhd", VOLUME, np.eye(4), detached="x.raw")
    path.write_text(path.read_text().replace("x.raw", name))
    with pytest.raises(RequestError, match="same folder"):
        open_metaimage(path, HU)


def header(**changes):
    fields = {"ObjectType": "Image", "NDims": "2", "DimSize": "2 3", "ElementType": "MET_FLOAT"}
    fields |= {"ElementDataFile": "LOCAL"} | changes
    last = fields.pop("ElementDataFile")
    lines = [f"{name} = {value}" for name, value in fields.items()]
    return "\n".join([*lines, f"ElementDataFile = {last}\n"]).encode()


NUMBERS = np.arange(6, dtype="<f4")


def test_a_picture_has_a_pixel_size_but_no_place(tmp_path):
    path = tmp_path / "a.mha"
    path.write_bytes(header(ElementSpacing="0.5 0.75") + NUMBERS.tobytes())
    dataset = open_metaimage(path, HU)
    assert (len(dataset), dataset.pixel_mm, dataset.placements) == (1, (0.75, 0.5), None)
    np.testing.assert_array_equal(dataset.read(0), NUMBERS.reshape(3, 2))


def test_numbers_as_text(tmp_path):
    path = tmp_path / "a.mha"
    path.write_bytes(header(BinaryData="False") + b"0 1 2\n3 4 5\n")
    np.testing.assert_array_equal(open_metaimage(path, HU).read(0), NUMBERS.reshape(3, 2))


def test_data_at_the_end_of_a_file_with_a_foreign_header(tmp_path):
    path = tmp_path / "a.mhd"
    path.write_bytes(header(HeaderSize="-1", ElementDataFile="a.raw"))
    (tmp_path / "a.raw").write_bytes(b"foreign header" + NUMBERS.tobytes())
    np.testing.assert_array_equal(open_metaimage(path, HU).read(0), NUMBERS.reshape(3, 2))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 400,
        b"no header\n" * 10,
        b"NDims = 3\n" * 3000,
        header(NDims="x") + bytes(24),
        header(NDims="9") + bytes(24),
        header(DimSize="2 3000000") + bytes(24),
        header(DimSize="200 30000") + bytes(24),
        header(DimSize="-2 -3") + bytes(24),
        header(DimSize="0 3") + bytes(24),
        header(ElementType="MET_STRING") + bytes(24),
        header(ElementNumberOfChannels="3") + bytes(72),
        header(ElementDataFile="LIST") + bytes(24),
        header(ElementDataFile="x%02d.raw 1 3 1") + bytes(24),
        header(ElementDataFile="missing.raw") + bytes(24),
        header(ElementSpacing="1 nan") + bytes(24),
        header(CompressedData="True") + b"not zlib" * 8,
        header(CompressedData="True") + zlib.compress(bytes(24))[:-8],
        header(CompressedData="True", DimSize="20000 20000") + zlib.compress(bytes(1 << 20)),
        header(CompressedData="True", NDims="3", DimSize="9000 9000 9000") + bytes(99),
        header(BinaryData="False") + b"1 2 3",
        header().replace(b"DimSize", b"Dim\xff\xfe") + bytes(24),
        header(ObjectType="Scene") + bytes(24),
    ],
    ids=range(23),
)
def test_broken_files_are_one_sentence(content, tmp_path):
    path = tmp_path / "broken.mha"
    path.write_bytes(content)
    with pytest.raises(RequestError, match=r"broken\.mha"):
        open_metaimage(path, HU).read(0)


def test_mutated_files_open_or_are_refused(tmp_path):
    rng, path = random.Random(0), tmp_path / "m.mha"
    for packed in (False, True):
        whole = write_metaimage(path, VOLUME, oblique(), packed=packed).read_bytes()
        for _ in range(120):
            content = bytearray(whole)
            for _ in range(rng.randrange(1, 8)):
                content[rng.randrange(len(content))] = rng.randrange(256)
            path.write_bytes(content[: rng.choice((len(content), rng.randrange(len(content))))])
            with contextlib.suppress(RequestError):
                open_metaimage(path, HU).read(0)
