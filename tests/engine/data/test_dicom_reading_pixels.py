"""Stored bits to HU: signs, unused bits, rescale, padding, and every way to store them."""

import io

import numpy as np
import pytest
from dicom_files import (
    COLUMNS,
    ROWS,
    header,
    picture,
    save,
    set_pixels,
    to_jpeg_lossless,
    write_encapsulated,
    write_slice,
)
from PIL import Image
from pydicom import uid

from engine.data.readers.dicom.pixels import Stream, read_codestream
from engine.data.readers.dicom.reader import open_dicom
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

LOSSLESS = [
    uid.ImplicitVRLittleEndian,
    uid.ExplicitVRLittleEndian,
    uid.ExplicitVRBigEndian,
    uid.DeflatedExplicitVRLittleEndian,
    uid.RLELossless,
    uid.JPEGLSLossless,
    uid.JPEG2000Lossless,
]
STORED = picture() - 400  # both signs


def opened(path, **options):
    return open_dicom(path, InputOptions(**options))


def said(dataset):
    return " | ".join(dataset.notices)


@pytest.mark.parametrize("syntax", LOSSLESS, ids=lambda syntax: syntax.name)
@pytest.mark.parametrize("signed", [False, True])
def test_every_lossless_syntax_gives_the_same_numbers(tmp_path, syntax, signed):
    stored = STORED if signed else picture()
    pixels = {"signed": signed, "bits": 12}
    tags = {"RescaleSlope": 2, "RescaleIntercept": -200}
    path = write_slice(tmp_path / "a.dcm", "CT", stored, syntax, pixels, **tags)
    np.testing.assert_array_equal(opened(path).read(0), 2 * stored - 200.0)


@pytest.mark.parametrize("syntax", LOSSLESS, ids=lambda syntax: syntax.name)
def test_eight_bits(tmp_path, syntax):
    stored = picture() % 251
    path = write_slice(tmp_path / "a.dcm", "CT", stored, syntax, {"allocated": 8})
    np.testing.assert_array_equal(opened(path).read(0), stored - 1024.0)


def test_eight_bits_of_an_odd_size(tmp_path):
    stored = picture(0, 5, 7) % 251
    path = write_slice(
        tmp_path / "a.dcm", "CT", stored, uid.ExplicitVRLittleEndian, {"allocated": 8}
    )
    np.testing.assert_array_equal(opened(path).read(0), stored - 1024.0)


def test_lossless_jpeg(tmp_path):
    tags = {"stored": STORED, "pixels": {"signed": True}, "RescaleIntercept": -24}
    plain = write_slice(tmp_path / "plain.dcm", **tags)
    dataset = opened(to_jpeg_lossless(plain, tmp_path / "jpeg.dcm"))
    assert "Process 14" in next(f.value for f in dataset.facts if f.name == "transfer syntax")
    np.testing.assert_array_equal(dataset.read(0), STORED - 24.0)


def jpeg(rows=ROWS, columns=COLUMNS, mode="L"):
    grey = (128 + 3 * picture(0, rows, columns) % 7).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(grey).convert(mode).save(stream, "JPEG", quality=95)
    return stream.getvalue(), grey


def test_baseline_jpeg_is_near_and_said_to_be_lossy(tmp_path):
    frame, grey = jpeg()
    dataset = opened(write_encapsulated(tmp_path / "a.dcm", frame, uid.JPEGBaseline8Bit))
    assert np.abs(dataset.read(0) + 1024 - grey).max() < 12
    assert "compressed with loss" in said(dataset)


def test_twelve_bit_extended_jpeg_says_what_is_missing(tmp_path):
    path = write_encapsulated(
        tmp_path / "a.dcm", jpeg()[0], uid.JPEGExtended12Bit, BitsAllocated=16
    )
    with pytest.raises(RequestError, match=r"a\.dcm .*12-bit JPEG Extended.*pylibjpeg-libjpeg"):
        opened(path)


@pytest.mark.parametrize("size", [(ROWS * 2, COLUMNS), (900, 700), (COLUMNS, ROWS)])
def test_a_codestream_of_another_size_is_refused_before_decoding(tmp_path, size):
    path = write_encapsulated(tmp_path / "a.dcm", jpeg(*size)[0], uid.JPEGBaseline8Bit)
    with pytest.raises(RequestError, match=r"a\.dcm: frame 1 is compressed at another size"):
        opened(path).read(0)


def test_codestreams_say_their_size_and_depth():
    stream = io.BytesIO()
    Image.fromarray(np.zeros((5, 9), np.uint8)).save(stream, "JPEG2000", no_jp2=True)
    assert read_codestream(stream.getvalue(), uid.JPEG2000) == Stream(5, 9, 1, 8)
    assert read_codestream(jpeg(5, 9)[0], uid.JPEGBaseline8Bit) == Stream(5, 9, 1, 8)


@pytest.mark.parametrize("syntax", [uid.JPEGBaseline8Bit, uid.JPEGLSLossless, uid.JPEG2000])
def test_what_is_no_codestream_is_found_out(syntax):
    frame = jpeg()[0]
    colour = jpeg(mode="RGB")[0]
    for wrong in (b"", frame[:200], frame[:-2], frame[2:], colour, b"\xff\xd8\xff\xc0"):
        with pytest.raises(ValueError, match=r"."):
            read_codestream(wrong, syntax)


@pytest.mark.parametrize("signed", [False, True])
def test_unused_bits_above_are_ignored(tmp_path, signed):
    stored = STORED if signed else picture()
    dirty = (stored & 0xFFF) | 0x5000
    data = header(RescaleIntercept=-24)
    set_pixels(data, dirty, bits=12)
    data.PixelRepresentation = int(signed)
    np.testing.assert_array_equal(opened(save(tmp_path / "a.dcm", data)).read(0), stored - 24.0)


def test_high_bit_says_where_the_number_is(tmp_path):
    """12 bits at the top of 16, as ACR-NEMA times had it; the low four bits hold rubbish."""
    stored = picture()
    path = write_slice(
        tmp_path / "a.dcm", stored=(stored << 4) | 0x9, pixels={"bits": 12, "high_bit": 15}
    )
    np.testing.assert_array_equal(opened(path).read(0), stored - 1024.0)


def test_rescale_is_each_files_own(tmp_path):
    for number, slope in enumerate((1.0, 0.25)):
        position = [0.0, 0.0, 2.0 * number]
        write_slice(tmp_path / f"{number}.dcm", RescaleSlope=slope, ImagePositionPatient=position)
    dataset = opened(tmp_path)
    np.testing.assert_array_equal(dataset.read(1), 0.25 * picture() - 1024)
    assert "rescale differs among the slices (2 kinds)" in said(dataset)


def test_missing_rescale_is_said(tmp_path):
    dataset = opened(write_slice(tmp_path / "a.dcm", RescaleSlope=None))
    assert "RescaleSlope or RescaleIntercept is missing" in said(dataset)


def test_padding_becomes_air_before_the_rescale(tmp_path):
    stored = STORED.copy()
    stored[0, :3] = -2000
    stored[1, :2] = -1990
    tags = {"PixelPaddingValue": -2000, "RescaleSlope": 0.5, "RescaleIntercept": 0}
    path = write_slice(tmp_path / "a.dcm", stored=stored, pixels={"signed": True}, **tags)
    values = opened(path).read(0)
    assert (values[0, :3] == -1000).all()
    assert (values[1, :2] == -995).all()
    ranged = {**tags, "PixelPaddingRangeLimit": -1980}
    path = write_slice(tmp_path / "b.dcm", stored=stored, pixels={"signed": True}, **ranged)
    dataset = opened(path)
    assert (dataset.read(0)[1, :2] == -1000).all()
    np.testing.assert_array_equal(dataset.read(0)[2:], 0.5 * STORED[2:])
    assert next(f.value for f in dataset.facts if f.name == "padding") == (
        "stored -2000 to -1980 -> -1000 HU"
    )


def test_padding_in_the_unused_bits_is_found(tmp_path):
    """0xF830 is -2000, but only 12 bits are used: masked, it would be bone."""
    stored = picture()
    stored[0, 0] = 0xF830
    path = write_slice(
        tmp_path / "a.dcm", stored=stored, pixels={"bits": 12}, PixelPaddingValue=0xF830
    )
    values = opened(path).read(0)
    assert values[0, 0] == -1000
    np.testing.assert_array_equal(values[1:], picture()[1:] - 1024.0)


def test_padding_of_mr_is_zero(tmp_path):
    path = write_slice(tmp_path / "a.dcm", "MR", PixelPaddingValue=200, RescaleIntercept=5)
    assert opened(path).read(0)[0, 0] == 0


def test_monochrome1_changes_no_hu_but_turns_mr_signal(tmp_path):
    tags = {"PhotometricInterpretation": "MONOCHROME1"}
    ct = opened(write_slice(tmp_path / "ct.dcm", **tags))
    np.testing.assert_array_equal(ct.read(0), picture() - 1024.0)
    assert "MONOCHROME1" in said(ct)
    assert "kept" in said(ct)
    mr = opened(write_slice(tmp_path / "mr.dcm", "MR", pixels={"bits": 12}, **tags))
    np.testing.assert_array_equal(mr.read(0), 4095.0 - picture())
    assert "inverted" in said(mr)


@pytest.mark.parametrize("unit", ["mgml", "Z_EFF", "ED"])
def test_ct_in_other_units_is_refused(tmp_path, unit):
    with pytest.raises(RequestError, match=r"a\.dcm is a CT image in .*not in HU"):
        opened(write_slice(tmp_path / "a.dcm", RescaleType=unit))


def test_other_modalities_open_when_told_to(tmp_path):
    path = write_slice(tmp_path / "a.dcm", "PT")
    with pytest.raises(RequestError, match=r"a\.dcm is not a CT or MR image.*--modality ct or mr"):
        opened(path)
    dataset = opened(path, modality="mr")
    assert dataset.modality == "MR"
    np.testing.assert_array_equal(dataset.read(0), picture())
    assert "These are PT images" in said(dataset)


def test_a_screen_capture_of_a_ct_is_no_ct(tmp_path):
    path = write_slice(tmp_path / "a.dcm", SOPClassUID=uid.SecondaryCaptureImageStorage)
    with pytest.raises(RequestError, match="Secondary Capture"):
        opened(path)


def test_kind_and_unit_options_must_fit(tmp_path):
    path = write_slice(tmp_path / "a.dcm")
    with pytest.raises(RequestError, match="--kind kspace"):
        opened(path, kind="kspace")
    with pytest.raises(RequestError, match="--unit mu"):
        opened(path, unit="mu")
