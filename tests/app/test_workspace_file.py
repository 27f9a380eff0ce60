"""A workspace comes back as it was, from wherever it lies now."""

import shutil

import numpy as np
import pytest
from recorded_runs import PNP, record_run, save_disc

from app.runs.store import RunStore
from app.workspace.file import (
    DataReference,
    SavedRun,
    Workspace,
    runs_folder,
    write_workspace,
)
from app.workspace.reading import read_workspace
from app.workspace.restore import restore_runs, saved_run
from engine.files.checkpoint import Checkpoint
from engine.files.record import RunRecord
from engine.spec.errors import RequestError

VIEW = {"window": [40.0, 400.0], "zoom": 2.5, "panes": ["reference", "#1"], "folded": []}


@pytest.fixture(scope="module")
def autosaved(tmp_path_factory):
    """Two runs on a small file, as a session leaves them; with its folder."""
    folder = tmp_path_factory.mktemp("session")
    job = {"input": str(save_disc(folder / "scan.npy")), "options": {"unit": "hu"}}
    for name, solver, settings in (("abcdef", "fbp", {}), ("fedcba", "dc-pnpdp", PNP)):
        record_run(folder / f"20250101-120000-{name}.json", solver, settings, **job)
    return folder


@pytest.fixture
def home(autosaved, tmp_path):
    """A copy of it in a folder of its own, with a saved workspace beside the data."""
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(autosaved / "scan.npy", home)
    entries = []
    for number, path in enumerate(sorted(autosaved.glob("*.json")), start=1):
        (entry,) = restore_runs(path)
        entry.number, entry.note, entry.visible = number, f"note {number} – µ", number == 1
        entry.job = {**entry.job, "input": str(home / "scan.npy")}
        entries.append(entry)
    saved = Workspace(
        data=DataReference(str(home / "scan.npy"), {"unit": "hu"}, "ab" * 32, slice=0),
        acquisition={"views": 12},
        solver={"solver": "dc-pnpdp", "settings": PNP, "prior": "tv"},
        view=VIEW,
        runs=tuple(run for entry in entries if (run := saved_run(entry))),
    )
    assert write_workspace(home / "study.dualscope", saved) == []
    return home, saved, entries


def same(a, b):
    assert (a.number, a.label, a.note, a.visible) == (b.number, b.label, b.note, b.visible)
    assert (a.solver, a.status, a.unit, a.slices, a.pixel_mm) == (
        b.solver,
        b.status,
        b.unit,
        b.slices,
        b.pixel_mm,
    )
    np.testing.assert_array_equal(a.images, b.images)
    np.testing.assert_array_equal(a.reference, b.reference)
    assert a.metrics == b.metrics
    assert a.seconds == b.seconds
    assert a.history.names() == b.history.names()
    for name in a.history.names():
        np.testing.assert_array_equal(a.history.column(name), b.history.column(name))
    assert a.job == b.job


def test_a_workspace_comes_back_as_it_was(home):
    folder, saved, entries = home
    found = read_workspace(folder / "study.dualscope")
    assert (found.data, found.acquisition, found.solver, found.view) == (
        saved.data,
        saved.acquisition,
        saved.solver,
        saved.view,
    )
    said = []
    restored = restore_runs(
        folder / "study.dualscope", lambda share, words: said.append(words), found
    )
    assert said == ["Opening run 1", "Opening run 2"]
    for a, b in zip(restored, entries, strict=True):
        same(a, b)
    assert restored[1].history.column("k").tolist() == [1, 2, 3]
    assert restored[1].metrics["psnr"] > 10
    store = RunStore()
    for entry in (*restored, *restore_runs(folder / "study.dualscope")):
        store.add(entry)  # opened twice: neither hides the other
    assert len(store) == 4
    assert store.create("new", {"solver": "fbp"}, "FBP").number == 3


def test_a_folder_can_be_moved_with_data_and_workspace(home, tmp_path):
    folder, _, entries = home
    text = (folder / "study.dualscope").read_text()
    assert str(folder) not in text
    moved = tmp_path / "elsewhere"
    folder.rename(moved)
    found = read_workspace(moved / "study.dualscope")
    assert found.data.text == str(moved / "scan.npy")
    restored = restore_runs(moved / "study.dualscope")
    for a, b in zip(restored, entries, strict=True):
        assert a.job["input"] == str(moved / "scan.npy")
        assert a.message == ""
        np.testing.assert_array_equal(a.images, b.images)


def test_runs_whose_data_are_gone_still_show_image_and_curves(home, autosaved):
    folder, _, entries = home
    (folder / "scan.npy").unlink()
    for a, b in zip(restore_runs(folder / "study.dualscope"), entries, strict=True):
        assert "does not exist" in a.message
        assert a.reference is None
        np.testing.assert_array_equal(a.images, b.images)
        assert (a.slices, a.unit, a.note, a.metrics) == (b.slices, b.unit, b.note, b.metrics)
        assert len(a.history) == len(b.history)


def test_a_run_whose_record_is_gone_is_named_not_dropped(home):
    folder, _, entries = home
    runs = runs_folder(folder / "study.dualscope")
    (runs / entries[0].record_path.name).unlink()
    lost, kept = restore_runs(folder / "study.dualscope")
    assert (lost.number, lost.label, lost.note) == (1, "FBP", "note 1 – µ")
    assert lost.status == "failed"
    assert "Cannot read" in lost.message
    assert lost.images is None
    same(kept, entries[1])


def test_a_single_record_opens_by_itself(autosaved, tmp_path):
    path = next(autosaved.glob("*fedcba.json"))
    (entry,) = restore_runs(path)
    assert (entry.label, entry.status, entry.unit) == ("DC-PnPDP", "done", "HU")
    assert entry.images.shape == entry.reference.shape == (1, 48, 48)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(RequestError, match="not a run record"):
        restore_runs(tmp_path / "x.json")


def test_an_interrupted_run_comes_back_as_far_as_its_image(autosaved, tmp_path):
    source = next(autosaved.glob("*fedcba.json"))
    path = tmp_path / source.name
    record = RunRecord.read(source)
    record.status = "running"
    record.write(path)
    checkpoint = Checkpoint.read(Checkpoint.path_beside(source))
    checkpoint.k = 2
    checkpoint.write(Checkpoint.path_beside(path))
    (entry,) = restore_runs(path)
    assert (entry.status, entry.message) == ("interrupted", "The run was interrupted.")
    assert len(entry.history) == 2
    assert not entry.running


def test_saving_again_keeps_old_runs_until_the_new_file_is_there(home):
    folder, _, _ = home
    path = folder / "study.dualscope"
    runs = runs_folder(path)
    before = sorted(p.name for p in runs.iterdir())
    assert len(before) == 4
    reopened = read_workspace(path)
    with pytest.raises(Exception, match="cannot be written"):
        write_workspace(path, Workspace(view={"bad": object()}, runs=reopened.runs[:1]))
    assert sorted(p.name for p in runs.iterdir()) == before
    assert read_workspace(path) == reopened

    (runs / "thesis.json").write_text("not ours")
    write_workspace(path, Workspace(runs=reopened.runs[:1]), keep=[reopened.runs[1].record_path])
    assert set(before) < {p.name for p in runs.iterdir()}
    write_workspace(path, Workspace(runs=reopened.runs[:1]))
    assert sorted(p.name for p in runs.iterdir()) == [*before[:2], "thesis.json"]
    assert len(restore_runs(path)) == 1


def test_a_run_that_cannot_be_saved_is_named_and_the_rest_is_saved(home, tmp_path):
    _, saved, _ = home
    path = tmp_path / "other.dualscope"
    gone = SavedRun(tmp_path / "gone.json", 7, "SIRT")
    notes = write_workspace(path, Workspace(runs=(gone, *saved.runs)))
    assert len(notes) == 1
    assert notes[0].startswith("#7 SIRT is not in the workspace:")
    assert [run.number for run in read_workspace(path).runs] == [1, 2]


def test_records_with_other_names_are_renamed_for_a_name_may_be_a_patients(home, tmp_path):
    _, saved, _ = home
    record = saved.runs[0].record_path
    named = tmp_path / "Rumpelstilz.json"
    shutil.copy(record, named)
    shutil.copy(Checkpoint.path_beside(record), Checkpoint.path_beside(named))
    path = tmp_path / "w.dualscope"
    write_workspace(path, Workspace(runs=(SavedRun(named, 4, "FBP", places=saved.runs[0].places),)))
    assert all("Rumpelstilz" not in p.name for p in runs_folder(path).iterdir())
    assert "Rumpelstilz" not in path.read_text()
    assert restore_runs(path)[0].images is not None


def test_a_damaged_checkpoint_costs_the_image_only(home):
    folder, _, entries = home
    runs = runs_folder(folder / "study.dualscope")
    for path in runs.glob("*.safetensors"):
        path.write_bytes(b"\xff" * 100)
    for a, b in zip(restore_runs(folder / "study.dualscope"), entries, strict=True):
        assert a.images is None
        assert "damaged" in a.message
        assert len(a.history) == len(b.history)
