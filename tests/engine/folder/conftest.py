"""Two inputs and a place for their results; presets of a person are nobody's business here."""

import time

import pytest
from folder_inputs import SETTLE, save_slice


@pytest.fixture(autouse=True)
def own_presets(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALSCOPE_CONFIG", str(tmp_path / "config"))


@pytest.fixture
def place(tmp_path):
    """A folder with two inputs, and one for the results."""
    for number, name in enumerate(("a.npy", "b.npy")):
        save_slice(tmp_path / "in" / name, seed=number)
    time.sleep(2 * SETTLE)  # both are complete at the first look
    return tmp_path / "in", tmp_path / "out"
