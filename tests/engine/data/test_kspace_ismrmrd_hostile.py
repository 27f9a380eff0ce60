"""ISMRMRD files that are wrong, damaged or hostile: a sentence, and nothing worse."""

import h5py
import numpy as np
import pytest
from kspace_files import ACQUISITION, Line, fft2, header_xml, lines_of, write_mrd

from engine.data.readers.hdf5 import trial as hdf5_trial
from engine.data.readers.hdf5.reader import open_kspace_h5
from engine.physics.phantoms import brain_mr
from engine.physics.sensitivity import birdcage_maps
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

NOISE = 19
SHAPE = (80, 64, 1)
FOV = (200, 160, 5)
XML = header_xml(SHAPE, SHAPE, FOV, FOV)


@pytest.fixture(scope="module")
def kspace():
    """Three coils, [coil, read, phase]."""
    image = brain_mr(seed=5, size=80).image[:, 8:72]
    return fft2(birdcage_maps(3, 80, 64).numpy() * image)


def opened(path, lines, xml=XML, **options):
    return open_kspace_h5(write_mrd(path / "scan.h5", lines, xml), InputOptions(**options))


def changed(kspace, **values):
    lines = lines_of(kspace)
    lines[3].values = values
    return lines


@pytest.mark.parametrize(
    ("make", "xml", "reason"),
    [
        (lines_of, header_xml(SHAPE, SHAPE, FOV, FOV, trajectory="radial"), "radial trajectory"),
        (lines_of, header_xml((80, 32, 1), SHAPE), "phase-encode line lies outside the 32"),
        (lines_of, header_xml((64, 64, 1), SHAPE), "does not fit the 64"),
        (lines_of, header_xml((16384, 16384, 1), SHAPE), "too large"),
        (lines_of, "<ismrmrdHeader/>", "no encoding"),
        (lambda k: changed(k, active_channels=2), XML, "lines have 2, 3 coils"),
        (lambda k: changed(k, number_of_samples=70), XML, "holds 480 numbers"),
        (lambda k: changed(k, center_sample=79), XML, "does not fit"),
        (lambda k: changed(k, encoding_space_ref=3), XML, None),
        (lambda k: changed(k, discard_pre=60, discard_post=60), XML, "does not fit"),
        (lambda k: [Line(k[:, :, 0], (NOISE,))], XML, "no imaging lines"),
        (lambda k: [Line(k[:, :, 0], (53,))], XML, "compressed"),
        (lambda k: [Line(k[:, :, 0], (), {"kspace_encode_step_2": 5})], XML, "partition lies"),
    ],
)
def test_files_that_do_not_fit_are_refused_with_a_sentence(tmp_path, kspace, make, xml, reason):
    if reason is None:  # another encoding: left out, with a warning
        assert any("2 encodings" in w for w in opened(tmp_path, make(kspace), xml).warnings)
        return
    with pytest.raises(RequestError, match=reason):
        opened(tmp_path, make(kspace), xml).read(0)


@pytest.mark.parametrize(
    "data",
    [
        np.zeros(3),
        np.zeros(3, [("head", "<i4"), ("data", "<f4")]),
        np.zeros(0, ACQUISITION),
        np.zeros((2, 2), ACQUISITION["head"]),
    ],
)
def test_data_of_another_layout_are_refused(tmp_path, data):
    path = tmp_path / "scan.h5"
    with h5py.File(path, "w") as file:
        file["dataset/xml"] = XML
        file["dataset/data"] = data
    with pytest.raises(RequestError, match=r"acquisition"):
        open_kspace_h5(path, InputOptions())


def test_a_link_to_another_file_is_refused(tmp_path, kspace):
    write_mrd(tmp_path / "other.h5", lines_of(kspace), XML)
    path = tmp_path / "scan.h5"
    with h5py.File(path, "w") as file:
        file["dataset/xml"] = XML
        file["dataset/data"] = h5py.ExternalLink("other.h5", "/dataset/data")
    with pytest.raises(RequestError, match="link"):
        open_kspace_h5(path, InputOptions())


def test_a_false_length_of_the_samples_allocates_nothing(tmp_path, kspace):
    """The length of a variable array is a number in the file that h5py would believe."""
    path = write_mrd(tmp_path / "scan.h5", lines_of(kspace), XML)
    with h5py.File(path) as file:
        data = file["dataset/data"]
        at = data.id.get_chunk_info(0).byte_offset + data.dtype.fields["data"][1]
    content = bytearray(path.read_bytes())
    assert content[at : at + 4] == (2 * 3 * 80).to_bytes(4, "little")
    content[at : at + 4] = (3 << 28).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(RequestError, match="acquisition 0 holds 805306368 numbers"):
        open_kspace_h5(path, InputOptions()).read(0)


def test_a_heap_whose_objects_do_not_end_is_refused(tmp_path, kspace, monkeypatch):
    monkeypatch.setattr(hdf5_trial, "launch", lambda path: "")  # our own reading, unprotected
    """The HDF5 library itself may loop for ever over such a heap."""
    path = write_mrd(tmp_path / "scan.h5", lines_of(kspace), XML)
    content = bytearray(path.read_bytes())
    at = content.find(b"GCOL")
    while at >= 0:
        content[at + 24 : at + 32] = (2**64 - 16).to_bytes(8, "little")  # size of the first object
        at = content.find(b"GCOL", at + 4)
    path.write_bytes(content)
    with pytest.raises(RequestError, match="variable-length values do not fit"):
        open_kspace_h5(path, InputOptions()).read(0)
