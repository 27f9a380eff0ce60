"""HDF5 from strangers: nothing is read from elsewhere, and a crash or hang stays outside."""

import h5py
import numpy as np
import pytest
import sinogram_files as files

from engine.data.readers.hdf5 import safe as hdf5_safe
from engine.data.readers.hdf5 import trial as hdf5_trial
from engine.data.readers.hdf5.safe import array, open_h5
from engine.data.source import open_input
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

LAUNCH = hdf5_trial.launch  # itself: elsewhere one process serves the trials of all tests


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret.h5"
    with h5py.File(path, "w") as file:
        file["numbers"] = np.arange(4.0)
    return path


def read(path, name):
    with hdf5_safe.open_h5(path) as file:
        return hdf5_safe.read(hdf5_safe.array(file, name))


@pytest.mark.parametrize(
    "link", [h5py.ExternalLink("secret.h5", "/numbers"), h5py.SoftLink("/other")]
)
def test_links_are_refused_and_not_followed(link, secret, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["other"] = [1.0]
        file["data"] = link
    with pytest.raises(RequestError, match=r"a\.h5: 'data' is a link to elsewhere"):
        read(path, "data")


def test_a_link_on_the_way_is_refused_too(secret, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["group"] = h5py.ExternalLink("secret.h5", "/")
    with pytest.raises(RequestError, match="link to elsewhere"):
        read(path, "group/numbers")


def test_numbers_kept_in_other_files_are_refused(secret, tmp_path):
    outside = tmp_path / "a.h5"
    with h5py.File(outside, "w") as file:
        file.create_dataset("data", (4,), "f8", external=[(str(secret), 0, 32)])
        layout = h5py.VirtualLayout((4,), "f8")
        layout[:] = h5py.VirtualSource(str(secret), "numbers", (4,))
        file.create_virtual_dataset("virtual", layout)
    for name in ("data", "virtual"):
        with pytest.raises(RequestError, match="keeps its numbers in other files"):
            read(outside, name)


def test_absurd_sizes_are_refused_before_memory_is_asked_for(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("data", (1 << 20, 1 << 20), "f4", chunks=(16, 16))
    with pytest.raises(RequestError, match="would need 4096 GiB"):
        read(path, "data")
    with hdf5_safe.open_h5(path) as file:
        assert hdf5_safe.read(hdf5_safe.array(file, "data"), (0, slice(0, 3))).tolist() == [0, 0, 0]


def test_a_file_that_brings_the_reader_down_is_refused(secret, monkeypatch, tmp_path):
    fatal = tmp_path / "fatal.py"
    fatal.write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    monkeypatch.setattr(hdf5_trial, "launch", LAUNCH)
    monkeypatch.setattr(hdf5_trial, "__file__", str(fatal))
    with pytest.raises(RequestError, match=r"secret\.h5 is damaged: reading it fails"):
        read(secret, "numbers")


def test_a_file_that_never_ends_is_refused(secret, monkeypatch, tmp_path):
    endless = tmp_path / "endless.py"
    endless.write_text("while True: pass")
    monkeypatch.setattr(hdf5_trial, "launch", LAUNCH)
    monkeypatch.setattr(hdf5_trial, "__file__", str(endless))
    monkeypatch.setattr(hdf5_trial, "SECONDS", 0.5)
    with pytest.raises(RequestError, match=r"secret\.h5 is damaged: reading it does not end"):
        read(secret, "numbers")


def test_a_good_file_is_tried_once(secret, monkeypatch):
    runs = []
    monkeypatch.setattr(hdf5_trial, "launch", lambda path: runs.append(path) or LAUNCH(path))
    for _ in range(3):
        assert read(secret, "numbers").tolist() == [0, 1, 2, 3]
    assert len(runs) == 1


# -- links that a person allows ---------------------------------------------------------------

ARRAY = np.arange(12.0).reshape(3, 4)


def linked(folder, link):
    """frame.h5 whose array is elsewhere, and arrays/part.h5 that has it."""
    (folder / "arrays").mkdir()
    with h5py.File(folder / "arrays" / "part.h5", "w") as file:
        file["entry/data"] = ARRAY
    with h5py.File(folder / "frame.h5", "w") as file:
        file["data"] = link
    return folder / "frame.h5"


@pytest.mark.parametrize(
    "name", ["arrays/part.h5", "/beamline/i12/arrays/part.h5"], ids=["relative", "of the beamline"]
)
def test_an_external_link_into_the_named_folder_is_followed(tmp_path, name):
    path = linked(tmp_path, h5py.ExternalLink(name, "/entry/data"))
    with pytest.raises(RequestError, match="--allow-links FOLDER"), open_h5(path) as file:
        array(file, "data")
    with hdf5_safe.allow(tmp_path / "arrays") as followed, open_h5(path) as file:
        np.testing.assert_array_equal(array(file, "data")[()], ARRAY)
    assert followed == [(tmp_path / "arrays" / "part.h5").resolve()]


@pytest.mark.parametrize(
    "name", ["../secret.h5", "arrays/../../secret.h5"], ids=["above", "back and forth"]
)
def test_a_link_out_of_the_named_folder_is_refused(tmp_path, name):
    home = tmp_path / "home"
    home.mkdir()
    path = linked(home, h5py.ExternalLink(name, "/entry/data"))
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["entry/data"] = ARRAY
    with (
        hdf5_safe.allow(home),
        pytest.raises(RequestError, match="outside of"),
        open_h5(path) as file,
    ):
        array(file, "data")


def test_a_symbolic_link_does_not_lead_out_of_the_named_folder(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    path = linked(home, h5py.ExternalLink("arrays/alias.h5", "/entry/data"))
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["entry/data"] = ARRAY
    try:
        (home / "arrays" / "alias.h5").symlink_to(tmp_path / "secret.h5")
    except OSError:
        pytest.skip("no symbolic links here")
    with (
        hdf5_safe.allow(home),
        pytest.raises(RequestError, match="outside of"),
        open_h5(path) as file,
    ):
        array(file, "data")


@pytest.mark.parametrize("link", ["/loop", "/no/such", "/data"])
def test_links_in_circles_and_to_nothing_end_in_a_sentence(tmp_path, link):
    path = linked(tmp_path, h5py.SoftLink(link))
    with h5py.File(path, "a") as file:
        file["loop"] = h5py.SoftLink("/data")
    with (
        hdf5_safe.allow(tmp_path),
        pytest.raises(RequestError, match=r"link .*(followed|not there)"),
        open_h5(path) as file,
    ):
        array(file, "data")


def test_an_array_gathered_from_files_beside_it_is_read_where_links_are_allowed(tmp_path):
    for number in range(2):
        with h5py.File(tmp_path / f"part{number}.h5", "w") as file:
            file["values"] = ARRAY + number
    virtual = h5py.VirtualLayout((2, 3, 4), "f8")
    for number in range(2):
        virtual[number] = h5py.VirtualSource(f"part{number}.h5", "values", (3, 4))
    with h5py.File(tmp_path / "frame.h5", "w") as file:
        file.create_virtual_dataset("data", virtual)
    path = tmp_path / "frame.h5"
    with pytest.raises(RequestError, match="other files"), open_h5(path) as file:
        array(file, "data")
    with hdf5_safe.allow(tmp_path) as followed, open_h5(path) as file:
        np.testing.assert_array_equal(array(file, "data")[()], np.stack([ARRAY, ARRAY + 1]))
    assert len(followed) == 2
    (tmp_path / "part1.h5").unlink()  # HDF5 itself would read zeros
    with (
        hdf5_safe.allow(tmp_path),
        pytest.raises(RequestError, match="not there"),
        open_h5(path) as file,
    ):
        array(file, "data")


def test_a_scan_whose_frames_are_linked_opens_and_its_hash_covers_them(tmp_path):
    geometry = files.scan("parallel", 60, 180.0)
    whole = files.nxtomo(
        tmp_path / "whole.nxs", files.sinogram(geometry), np.rad2deg(geometry.angles_rad)
    )
    expected = open_input(str(whole), InputOptions()).read(1)
    frame = tmp_path / "frame.nxs"
    with h5py.File(whole) as old, h5py.File(frame, "w") as new:
        old.copy("entry0000", new)
        detector = new["entry0000/instrument/detector"]
        del detector["data"]
        detector["data"] = h5py.ExternalLink("whole.nxs", "/entry0000/instrument/detector/data")
    opened = open_input(str(frame), InputOptions(allow_links=str(tmp_path)))
    np.testing.assert_array_equal(opened.read(1), expected)
    assert {one.name for one in opened.files} == {"frame.nxs", "whole.nxs"}
    with pytest.raises(RequestError, match="no such folder"):
        open_input(str(frame), InputOptions(allow_links=str(tmp_path / "none")))
    with pytest.raises(RequestError, match="--allow-links"):
        open_input(str(frame), InputOptions())
