"""What would be written, known before anything is: names, and reasons why not."""

from pathlib import Path

import numpy as np
import pytest

from app.export.dialog import ExportDialog
from app.export.formats import FORMATS, files_of, name_fault, series_outputs
from app.export.plan import Choices, Shown, look, make_plan
from app.runs.store import RunEntry


@pytest.fixture
def entry(tmp_path):
    """A finished run of three slices."""
    return RunEntry(
        "id",
        1,
        "fbp",
        {"input": "demo:ct"},
        "#ffffff",
        (),
        "FBP",
        status="done",
        slices=(0, 1, 2),
        images=np.zeros((3, 8, 8), np.float32),
        record_path=tmp_path / "id.json",
    )


def test_dicom_is_a_file_for_one_slice_and_a_folder_for_more():
    assert series_outputs(Path("/x"), "scan", 1) == Path("/x/scan.dcm")
    assert series_outputs(Path("/x"), "scan", 2) == Path("/x/scan-dicom")


def test_looking_finds_what_is_there_and_what_must_stay(entry, tmp_path):
    choices = Choices("current", True, ("dicom", "numpy"), str(tmp_path), "scan")
    plan = make_plan(Shown(entry), choices)
    assert not look(plan).existing
    (tmp_path / "scan.npy").touch()
    (tmp_path / "scan-dicom").mkdir()  # empty: may be filled
    assert look(plan).existing == {tmp_path / "scan.npy"}
    (tmp_path / "scan-dicom" / "IM0001.dcm").touch()
    assert len(look(plan).existing) == 2
    assert look(plan).reason == ""
    (tmp_path / "scan-dicom" / "letter.txt").touch()
    assert "holds other files" in look(plan).reason


@pytest.mark.parametrize(
    "name", ["", " ", "a:b", "..", ".x", "x.", "CON", "nul.txt", "a\tb", "x" * 101]
)
def test_names_that_some_system_refuses_are_refused(name):
    assert name_fault(name).endswith(".")


def test_a_name_with_dots_still_gives_every_file_its_suffix(entry, tmp_path):
    for what in ("current", "visible"):
        choices = Choices(what, True, tuple(f.key for f in FORMATS), str(tmp_path), "scan.v1.png")
        plan = make_plan(Shown(entry, (entry,), 0), choices)
        assert not plan.reason
        assert len(set(plan.files)) == len(plan.files) == 5 + 2 * 3
        for run in plan.runs:
            assert sum(len(files_of(path, (0, 1, 2))) for path in run.outputs) == 11


def test_folder_and_formats_are_remembered(qtbot, tasks, tmp_path):
    dialog = ExportDialog(tasks)
    qtbot.addWidget(dialog)
    dialog.restore({"folder": str(tmp_path), "formats": ["numpy"], "what": "report"})
    dialog.formats.boxes["hdf5"].click()
    dialog.cancel()
    again = ExportDialog(tasks)
    qtbot.addWidget(again)
    again.restore(dialog.state())
    assert again.state() == dialog.state()
    assert again.state()["formats"] == ["numpy", "hdf5"]
    for odd in ({}, {"folder": 3, "formats": "png", "what": []}, {"formats": [1]}):
        again.restore(odd)
        assert again.state() == dialog.state()
    again.restore({"formats": ["png", "exe"]})
    assert again.state()["formats"] == ["png"]
