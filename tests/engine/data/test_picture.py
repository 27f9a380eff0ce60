"""PNG and TIFF: what the numbers mean is said, never guessed; values survive the round trip."""

import contextlib
import io
import json
import random
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from results import make_result

from engine.data.readers.volumes.picture import open_png, open_tiff
from engine.data.source import open_input
from engine.export import write_outputs
from engine.export.outputs import window_to_bytes
from engine.export.picture import marked, marks_of, windowed_png
from engine.files.record import RunRecord
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions
from engine.spec.marks import CORNERS, RESEARCH, Marks, round_length

HU = InputOptions(unit="hu")
GREY = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("a.png", GREY),
        ("a.png", GREY.astype(np.uint16) * 250),
        ("a.tif", GREY),
        ("a.tiff", GREY.astype(np.uint16) * 250),
        ("a.tif", GREY.astype(np.int32) * 1000 - 500),
        ("a.tif", GREY.astype(np.float32) / 7 - 3),
    ],
)
def test_grey_pictures_are_read_as_they_are(name, array, tmp_path):
    Image.fromarray(array).save(tmp_path / name)
    dataset = open_input(str(tmp_path / name), HU)
    assert (dataset.modality, len(dataset), dataset.image_size) == ("CT", 1, (3, 4))
    np.testing.assert_array_equal(dataset.read(0), array.astype(np.float32))
    assert any("1 mm is assumed" in warning for warning in dataset.warnings)
    assert any("256" in warning for warning in dataset.warnings) == (array.dtype == np.uint8)


def test_pages_are_slices(tmp_path):
    pages = [Image.fromarray((GREY + n).astype(np.float32)) for n in range(3)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    dataset = open_tiff(tmp_path / "a.tif", InputOptions(modality="mr", pixel_mm=0.5))
    assert (dataset.modality, len(dataset), dataset.pixel_mm) == ("MR", 3, (0.5, 0.5))
    for number in (2, 0, 1):
        np.testing.assert_array_equal(dataset.read(number), GREY + np.float32(number))


def test_pages_of_different_sizes_are_refused(tmp_path):
    pages = [Image.fromarray(GREY), Image.fromarray(GREY[:2])]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(RequestError, match="differ"):
        open_tiff(tmp_path / "a.tif", HU).read(1)


def test_what_a_picture_does_not_say_is_asked_for(tmp_path):
    Image.fromarray(GREY).save(tmp_path / "a.png")
    with pytest.raises(RequestError, match="--modality"):
        open_png(tmp_path / "a.png", InputOptions())
    with pytest.raises(RequestError, match="--kind"):
        open_png(tmp_path / "a.png", InputOptions(unit="hu", kind="sinogram"))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "LA", "1"])
def test_colour_is_refused(mode, tmp_path):
    Image.fromarray(GREY).convert(mode).save(tmp_path / "a.png")
    with pytest.raises(RequestError, match="colour"):
        open_png(tmp_path / "a.png", HU)


@pytest.mark.parametrize("modality", ["CT", "MR"])
def test_tiff_keeps_every_value_and_the_pixel_size(modality, tmp_path):
    result = make_result(modality, slices=3)
    write_outputs([tmp_path / "a.tif"], result)
    dataset = open_input(str(tmp_path / "a.tif"))
    assert (dataset.modality, dataset.pixel_mm, len(dataset)) == (modality, (0.7, 0.9), 3)
    for number, values in enumerate(result.values()):
        np.testing.assert_array_equal(dataset.read(number), values)
    with Image.open(tmp_path / "a.tif") as image:
        tags = image.tag_v2
        assert tags[296] == 3  # per cm
        assert 10 / float(tags[282]) == pytest.approx(0.9, rel=1e-6)
        assert 10 / float(tags[283]) == pytest.approx(0.7, rel=1e-6)


def test_sixteen_bit_png_keeps_whole_hu(tmp_path):
    result = make_result("CT")
    assert write_outputs([tmp_path / "a.16.png"], result) == []
    with Image.open(tmp_path / "a.16.png") as image:
        stored = np.asarray(image).astype(int)
    np.testing.assert_array_equal(stored, np.round(result.values()[0]) + 32768)
    dataset = open_input(str(tmp_path / "a.16.png"))
    np.testing.assert_array_equal(dataset.read(0), np.round(result.values()[0]))
    assert dataset.pixel_mm == (0.7, 0.9)


def test_sixteen_bit_png_keeps_mr_to_a_step_and_says_what_it_clips(tmp_path):
    result = make_result("MR")
    write_outputs([tmp_path / "m.16.png"], result)
    values = result.values()[0]
    again = open_input(str(tmp_path / "m.16.png")).read(0)
    assert np.abs(again - values).max() <= values.max() / 65535
    far = make_result("CT", slices=2)
    far.image[0, 0, 0, 0] = 1000  # a million HU
    clipped, beside = write_outputs([tmp_path / "c.16.png"], far)
    assert "1 pixels" in clipped
    assert "side by side" in beside


def test_the_windowed_png_is_the_window():
    values = np.linspace(-800, 800, 241)[None].repeat(60, 0)
    picture = np.asarray(Image.open(io.BytesIO(windowed_png(values, (0.5, 1601.0)))))
    np.testing.assert_allclose(picture[0] / 255, np.linspace(0, 1, 241), atol=0.005)


def test_the_scale_bar_is_drawn_to_scale():
    values = np.full((120, 200), -800.0)
    drawn = windowed_png(values, (0, 1600), overlay=["20 views"], bar_mm_per_pixel=0.5, zoom=2)
    picture = np.asarray(Image.open(io.BytesIO(drawn)))
    assert picture.shape == (240, 400)
    row = max(range(200, 240), key=lambda y: (picture[y] == 255).sum())
    bar = np.flatnonzero(picture[row] == 255)  # a quarter of 100 mm at most: 20 mm
    assert bar[-1] - bar[0] == 20 / 0.5 * 2
    assert not picture[:180].any()


@pytest.mark.parametrize("corner", CORNERS)
def test_marks_can_be_moved_to_any_corner_and_never_left_out(corner):
    black = np.zeros((300, 400), np.uint8)
    picture = np.asarray(marked(black, Marks(corner=corner)))
    vertical, horizontal = corner.split()
    rows, columns = np.nonzero(picture)
    assert (rows.mean() < 150) == (vertical == "top")
    assert (columns.mean() < 200) == (horizontal == "left")
    assert (marked(black, Marks((), corner=corner)).tobytes()) == picture.tobytes()


def test_a_png_says_in_its_pixels_and_its_text_how_it_was_made(tmp_path):
    record = RunRecord(
        job={"solver": "dc-pnpdp", "settings": {"nfe": 12}},
        operator={"geometry": {"angles_rad": [0.0] * 20}},
        history=[{"nfe": 5}],
        status="cancelled",
    )
    result = make_result("CT", slices=2, placed=True, record=record, window=(40, 400))
    marks = marks_of(result, (40, 400), 1)
    assert marks.lines == (
        RESEARCH,
        "dc-pnpdp",
        "20 views, NFE 5 of 12, cancelled",
        "C 40 W 400 HU",
    )
    assert all(marks.letters)
    assert marks.mm_per_pixel == 0.9
    write_outputs([tmp_path / "a.png"], result)
    with Image.open(tmp_path / "a.png") as image:
        text, size = image.info, image.size
        picture = np.asarray(image)
    assert size[0] >= 2 * 240
    assert text["Comment"] == RESEARCH
    assert text["Title"].startswith("Dualscope dc-pnpdp, 20 views, NFE 5 of 12, cancelled, run ")
    assert text["Description"] == "; ".join(marks.lines)
    half = picture[:, : size[0] // 2], picture[:, size[0] // 2 :]
    for number, page in enumerate(half):  # a slice that is cut out still says it
        plain = window_to_bytes(result.values()[number], (40, 400))
        zoom = page.shape[1] // plain.shape[1]
        different = page != plain.repeat(zoom, 0).repeat(zoom, 1)
        assert 0.02 < different.mean() < 0.5
    assert open_input(str(tmp_path / "a.png"), HU).image_size == (size[1], size[0])


def test_lossless_pictures_stay_clean_and_say_it_in_their_text(tmp_path):
    record = RunRecord(job={"solver": "tv", "settings": {}}, status="done")
    result = make_result("CT", record=record)
    write_outputs([tmp_path / "a.16.png", tmp_path / "a.tif"], result)
    with Image.open(tmp_path / "a.16.png") as image:
        said = json.loads(image.info["Description"])
        assert image.info["Comment"] == RESEARCH
    assert (said["method"], said["notice"]) == ("tv", RESEARCH)
    with Image.open(tmp_path / "a.tif") as image:
        assert json.loads(image.tag_v2[270])["method"] == "tv"


def test_scale_bars_have_round_lengths():
    assert [round_length(most) for most in (0.7, 1, 4.9, 5, 63, 100)] == [0.5, 1, 2, 5, 50, 100]


def png_bomb(width, height):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    size = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes(100_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [10_000, 12_000, 60_000])
def test_bombs_are_refused_before_they_are_unpacked(side, tmp_path):
    (tmp_path / "bomb.png").write_bytes(png_bomb(side, side))
    with pytest.raises(RequestError, match="too large"):
        open_png(tmp_path / "bomb.png", HU).read(0)


def test_another_format_in_disguise_is_refused(tmp_path):
    for kind in ("JPEG", "BMP", "EPS", "PDF"):
        Image.fromarray(GREY).save(tmp_path / "a.png", kind)
        with pytest.raises(RequestError, match=r"a\.png"):
            open_png(tmp_path / "a.png", HU)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_mutated_files_open_or_are_refused(kind, tmp_path):
    rng, stream = random.Random(0), io.BytesIO()
    Image.fromarray(GREY).save(stream, kind)
    path, opener = tmp_path / "m", open_png if kind == "PNG" else open_tiff
    for _ in range(150):
        content = bytearray(stream.getvalue())
        for _ in range(rng.randrange(1, 8)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(content[: rng.choice((len(content), rng.randrange(len(content))))])
        with contextlib.suppress(RequestError):
            opener(path, HU).read(0)
