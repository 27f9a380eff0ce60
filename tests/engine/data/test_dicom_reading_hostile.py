"""Broken and hostile DICOM: one sentence, no crash, no flood of memory, nobody's name."""

import logging
import random
import struct
import warnings
import zlib

import numpy as np
import pytest
from dicom_files import (
    SECRETS,
    header,
    picture,
    save,
    set_pixels,
    write_encapsulated,
    write_enhanced,
    write_series,
    write_slice,
)
from pydicom import uid

from engine.data.readers.dicom.pixels import decode_rle, unpack_bits
from engine.data.readers.dicom.reader import open_dicom
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

OPTIONS = InputOptions()
EXPLICIT = uid.ExplicitVRLittleEndian


def opened(path):
    return open_dicom(path, OPTIONS)


def read_all(path):
    dataset = opened(path)
    for number in range(min(dataset.count, 3)):
        dataset.read(number)
    return dataset


def element(group, number, vr, value):
    if vr in ("SQ", "UN", "OB"):
        return struct.pack("<HH2sHI", group, number, vr.encode(), 0, len(value)) + value
    return struct.pack("<HH2sH", group, number, vr.encode(), len(value)) + value


def raw_file(path, body, syntax=EXPLICIT):
    text = str(syntax).encode()
    text += b"\0" * (len(text) % 2)
    path.write_bytes(bytes(128) + b"DICM" + element(2, 0x10, "UI", text) + body)
    return path


@pytest.mark.parametrize(
    ("rows", "columns"), [(65535, 65535), (40000, 4), (0, 16), (33, 41), (34, 40)]
)
def test_sizes_the_file_cannot_hold_are_refused(tmp_path, rows, columns):
    data = header()
    set_pixels(data, picture())
    data.Rows, data.Columns = rows, columns
    with pytest.raises(RequestError, match=r"a\.dcm"):
        opened(save(tmp_path / "a.dcm", data))


def with_frames(path, text):
    write_slice(path, NumberOfFrames="8")
    content = path.read_bytes()
    assert b"IS\x02\x008 " in content
    path.write_bytes(content.replace(b"IS\x02\x008 ", b"IS\x0a\x00" + text.ljust(10).encode()))
    return path


@pytest.mark.parametrize("frames", ["2", "2000000000"])
def test_more_frames_than_the_file_holds_are_refused(tmp_path, frames):
    with pytest.raises(RequestError, match=r"a\.dcm"):
        opened(with_frames(tmp_path / "a.dcm", frames))


@pytest.mark.parametrize("frames", ["-3", "1A", "nan"])
def test_a_number_of_frames_that_is_none_is_no_claim(tmp_path, frames):
    assert read_all(with_frames(tmp_path / "a.dcm", frames)).count == 1


@pytest.mark.parametrize(
    "tags",
    [
        {"BitsAllocated": 12},
        {"BitsStored": 0, "HighBit": 20},
        {"BitsStored": 17},
        {"HighBit": 3},
        {"BitsAllocated": 64},
        {"BitsAllocated": 1, "BitsStored": 1, "HighBit": 0},
    ],
)
def test_impossible_bits_are_refused(tmp_path, tags):
    data = header()
    set_pixels(data, picture())
    for keyword, value in tags.items():
        setattr(data, keyword, value)
    with pytest.raises(RequestError, match=r"a\.dcm: .* bits per pixel"):
        opened(save(tmp_path / "a.dcm", data))


def test_a_cut_off_file_is_refused_and_left_out_of_a_folder(tmp_path):
    files = write_series(tmp_path, [0.0, 2.0, 4.0])
    files[1].write_bytes(files[1].read_bytes()[:-100])
    files[2].write_bytes(files[2].read_bytes()[:90])
    with pytest.raises(RequestError, match=r"is cut off: \d+ of 2640 bytes"):
        opened(files[1])
    with pytest.raises(RequestError, match=r"not a DICOM file|damaged"):
        opened(files[2])
    dataset = opened(tmp_path)
    assert dataset.count == 1
    said = " ".join(dataset.warnings)
    assert "1 files could not be read as DICOM and were left out" in said
    assert "1 files were left out; the first:" in said


@pytest.mark.parametrize("value", [b"NaN\\1 ", b"1e999\\1 ", b"x\\y ", b"1 ", b"\xff\xfe\\1"])
def test_numbers_that_are_none_are_not_used(tmp_path, value):
    path = write_slice(tmp_path / "a.dcm", PixelSpacing=[0.8, 0.8])
    content = path.read_bytes()
    old = b"\x28\x00\x30\x00DS" + struct.pack("<H", 8) + b"0.8\\0.8 "
    assert old in content
    new = b"\x28\x00\x30\x00DS" + struct.pack("<H", len(value)) + value
    path.write_bytes(content.replace(old, new))
    dataset = read_all(path)
    assert dataset.pixel_mm is None
    assert dataset.placements is None


@pytest.mark.parametrize("characters", ["ISO 2022 IR 999", "NONSENSE", "ISO_IR 192\\ISO_IR 100"])
def test_unknown_character_sets_do_not_matter(tmp_path, characters):
    path = write_slice(tmp_path / "a.dcm", SeriesDescription="placeholder text")
    content = path.read_bytes().replace(b"placeholder text", b"\xff\xfe\x80\xe4 \x1b$B\x81 x12345")
    text = characters.encode().ljust(22)
    charset = element(8, 5, "CS", text)
    at = content.index(b"\x08\x00\x08\x00CS")
    path.write_bytes(content[:at] + charset + content[at:])
    assert read_all(path).count == 1


def test_nesting_cannot_exhaust_the_stack(tmp_path):
    depth = 20_000
    sequence = struct.pack("<HH2sHI", 8, 0x1140, b"SQ", 0, 0xFFFFFFFF)
    item = struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)
    path = raw_file(tmp_path / "a.dcm", (sequence + item) * depth)
    with pytest.raises(RequestError, match=r"a\.dcm"):
        opened(path)
    closed = struct.pack("<HHIHHI", 0xFFFE, 0xE00D, 0, 0xFFFE, 0xE0DD, 0)
    good = write_slice(tmp_path / "b.dcm").read_bytes()
    at = good.index(b"\x08\x00\x08\x00CS")
    path.write_bytes(good[:at] + (sequence + item) * depth + closed * depth + good[at:])
    dataset = opened(path)
    np.testing.assert_array_equal(dataset.read(0), picture() - 1024.0)
    with pytest.raises(RequestError, match=r"a\.dcm"):
        dataset.headers(0)  # pydicom cannot


def test_a_deflated_bomb_is_refused(tmp_path):
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = squeezer.compress(bytes(140 << 20)) + squeezer.flush()
    path = raw_file(tmp_path / "a.dcm", body, uid.DeflatedExplicitVRLittleEndian)
    with pytest.raises(RequestError, match=r"a\.dcm: inflated, it would need 1\d\d MiB"):
        opened(path)
    raw_file(path, b"not deflated", uid.DeflatedExplicitVRLittleEndian)
    with pytest.raises(RequestError, match=r"a\.dcm is damaged"):
        opened(path)


def test_lengths_beyond_the_file_are_not_believed(tmp_path):
    head = struct.pack("<HH2sHI", 8, 0x1140, b"UN", 0, 0xFFFFFFF0)
    with pytest.raises(RequestError, match=r"a\.dcm"):
        opened(raw_file(tmp_path / "a.dcm", head))


def test_damaged_rle_is_refused(tmp_path):
    path = write_slice(tmp_path / "a.dcm", syntax=uid.RLELossless)
    content = path.read_bytes()
    start = content.index(struct.pack("<I", 2), content.index(b"\xe0\x7f\x10\x00"))
    path.write_bytes(content[:start] + struct.pack("<I", 3) + content[start + 4 :])
    with pytest.raises(RequestError, match=r"a\.dcm: the pixels of frame 1 cannot be decoded"):
        read_all(path)


def test_rle_stops_at_the_size_of_the_frame():
    assert unpack_bits(bytes([129, 7]) * 1000, 5) == bytes([7] * 5)
    assert unpack_bits(bytes([2, 1, 2, 3, 128, 255, 9]), 5) == bytes([1, 2, 3, 9, 9])
    for damaged in (b"", bytes([5, 1]), bytes([200])):
        with pytest.raises(ValueError, match="short"):
            unpack_bits(damaged, 100)
    with pytest.raises(ValueError, match="segments"):
        decode_rle(b"", 2, 2, np.dtype("u2"))


def test_what_is_no_image_is_named(tmp_path):
    cases = {
        uid.RTStructureSetStorage: "RT Structure Set",
        uid.EncapsulatedPDFStorage: "Encapsulated PDF",
        uid.ComprehensiveSRStorage: "Comprehensive SR",
        uid.TwelveLeadECGWaveformStorage: "ECG Waveform",
    }
    for storage, name in cases.items():
        path = save(tmp_path / "a.dcm", header("OT", SOPClassUID=storage))
        with pytest.raises(RequestError, match=rf"a\.dcm holds no pixels.*{name}"):
            opened(path)
    path = write_slice(tmp_path / "s.dcm", SOPClassUID=uid.SegmentationStorage)
    with pytest.raises(RequestError, match=r"s\.dcm is a segmentation"):
        opened(path)
    data = header()
    set_pixels(data, picture(), allocated=8)
    data.SamplesPerPixel, data.PhotometricInterpretation = 3, "RGB"
    with pytest.raises(RequestError, match=r"c\.dcm is a colour image \(RGB\)"):
        opened(save(tmp_path / "c.dcm", data))


def test_transfer_syntaxes_without_a_decoder_are_named(tmp_path):
    path = write_encapsulated(tmp_path / "a.dcm", b"\0" * 100, uid.MPEG2MPML)
    with pytest.raises(RequestError, match=r"a\.dcm is stored as MPEG2 .* not supported"):
        opened(path)


def test_a_missing_decoder_is_named(tmp_path, monkeypatch):
    from pydicom.pixels import get_decoder

    path = write_slice(tmp_path / "a.dcm", syntax=uid.JPEGLSLossless)
    decoder = get_decoder(uid.JPEGLSLossless)
    monkeypatch.setattr(decoder, "_available", {})
    monkeypatch.setattr(decoder, "_unavailable", {"pyjpegls": ("numpy", "pyjpegls>=1.2")})
    with pytest.raises(RequestError, match=r"JPEG-LS .*missing to read it: .*pyjpegls"):
        opened(path)


def test_nothing_is_printed_logged_or_warned(tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    files = write_series(tmp_path / "s", [0.0, 2.0])
    content = files[0].read_bytes().replace(b"DA\x08\x0019010203", b"DA\x08\x0019AB0203")
    files[0].write_bytes(content.replace(b"1.2.3.4", b"1.x.3.4"))
    write_encapsulated(tmp_path / "s" / "j.dcm", b"\xff\xd8 rubbish", uid.JPEGBaseline8Bit)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = opened(tmp_path / "s")
        dataset.read(0)
        str(dataset.headers(0).get("PatientID"))
        with pytest.raises(RequestError):
            read_all(tmp_path / "s" / "j.dcm")
    out = capfd.readouterr()
    assert out.out + out.err + caplog.text == ""
    assert not any(secret in str(dataset.warnings) for secret in SECRETS)


def test_a_special_file_in_a_folder_is_not_waited_for(tmp_path):
    import os

    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    write_series(tmp_path, [0.0, 2.0])
    os.mkfifo(tmp_path / "pipe.dcm")
    assert opened(tmp_path).count == 2
    with pytest.raises(RequestError, match="neither a file nor a folder"):
        opened(tmp_path / "pipe.dcm")


def mutations(generator, content):
    """Cut, flipped, overwritten and repeated bytes, mostly in the header."""
    data = bytearray(content)
    kind = generator.randrange(4)
    if kind == 0:
        return data[: generator.randrange(len(data))]
    if kind == 1:
        for _ in range(generator.randint(1, 12)):
            data[generator.randrange(132, len(data))] = generator.randrange(256)
    elif kind == 2:
        at = generator.randrange(132, min(len(data), 1200))
        data[at : at + 4] = generator.choice([b"\xff" * 4, b"\0" * 4, b"\xfe\xff\x00\xe0"])
    else:
        at = generator.randrange(132, len(data))
        data[at:at] = data[at : at + generator.randint(1, 300)]
    return data


def test_mutated_files_give_one_sentence_or_an_image(tmp_path):
    syntaxes = [
        uid.ImplicitVRLittleEndian,
        EXPLICIT,
        uid.ExplicitVRBigEndian,
        uid.DeflatedExplicitVRLittleEndian,
        uid.RLELossless,
        uid.JPEGLSLossless,
        uid.JPEG2000Lossless,
    ]
    bases = [
        write_slice(tmp_path / f"{n}.dcm", syntax=s).read_bytes() for n, s in enumerate(syntaxes)
    ]
    bases.append(write_enhanced(tmp_path / "e.dcm", [0.0, 2.0]).read_bytes())
    generator = random.Random(7)
    path = tmp_path / "x.dcm"
    sentences = []
    for _ in range(240):
        path.write_bytes(mutations(generator, generator.choice(bases)))
        try:
            read_all(path)
        except RequestError as error:
            sentences.append(str(error))
    assert 20 < len(sentences) < 220
    assert all("x.dcm" in text and "\n" not in text for text in sentences)
