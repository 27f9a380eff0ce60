"""HDF5 from strangers: nothing is read from elsewhere, and a crash or hang stays outside."""

import h5py
import numpy as np
import pytest

from engine.data import hdf5_safe, hdf5_trial
from engine.errors import RequestError


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
    monkeypatch.setattr(hdf5_trial, "__file__", str(fatal))
    with pytest.raises(RequestError, match=r"secret\.h5 is damaged: reading it fails"):
        read(secret, "numbers")


def test_a_file_that_never_ends_is_refused(secret, monkeypatch, tmp_path):
    endless = tmp_path / "endless.py"
    endless.write_text("while True: pass")
    monkeypatch.setattr(hdf5_trial, "__file__", str(endless))
    monkeypatch.setattr(hdf5_trial, "SECONDS", 0.5)
    with pytest.raises(RequestError, match=r"secret\.h5 is damaged: reading it does not end"):
        read(secret, "numbers")


def test_a_good_file_is_tried_once(secret, monkeypatch):
    runs = []
    monkeypatch.setattr(hdf5_trial, "launch", lambda path: runs.append(path) or "")
    for _ in range(3):
        assert read(secret, "numbers").tolist() == [0, 1, 2, 3]
    assert len(runs) == 1
