"""Runs that died are offered, runs that live are left alone, old ones make room."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from app.workspace.autosave import SessionFolder, adopt, forget, is_alive, prune, unfinished
from engine.spec.errors import DualscopeError

ROOT = Path(__file__).resolve().parents[2]


def leave(folder, name, status="running", age=0.0, k=23, size=100, checkpoint=True):
    """A record as the engine writes it, with a checkpoint of some size."""
    folder.mkdir(parents=True, exist_ok=True)
    body = {
        "format": "dualscope-run",
        "format_version": 2,
        "job": {"input": "/data/abc/scan.npy", "solver": "dc-pnpdp", "settings": {"nfe": 50}},
        "input": {"name": "/data/abc/scan.npy"},
        "status": status,
        "history": [{"k": n + 1} for n in range(k)],
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(body))
    if checkpoint:
        (folder / f"{name}.checkpoint.safetensors").write_bytes(bytes(size))
    when = 1_700_000_000 - age
    os.utime(path, (when, when))
    return path


def test_runs_cut_short_are_listed_newest_first(tmp_path):
    old = leave(tmp_path / "a", "old", age=100)
    new = leave(tmp_path / "b", "new", k=7)
    leave(tmp_path / "b", "done", status="done")
    leave(tmp_path / "b", "nothing-yet", checkpoint=False, k=0)
    (tmp_path / "b" / "broken.json").write_text("{")
    (tmp_path / "b" / "other.json").write_text('{"format": "x"}')
    found = unfinished(tmp_path)
    assert [run.record_path for run in found] == [new, old]
    first = found[0]
    assert (first.solver, first.k, first.K, first.input_name) == ("dc-pnpdp", 7, 50, "scan.npy")
    assert first.when == datetime.fromtimestamp(1_700_000_000)
    assert first.words.startswith("dc-pnpdp, 7 of 50, 2023-11-1")
    assert first.job["settings"] == {"nfe": 50}
    assert unfinished(tmp_path / "nowhere") == []


def test_a_running_record_of_an_open_window_is_not_taken_for_a_crashed_one(tmp_path):
    session = SessionFolder(tmp_path)
    leave(session.path, "mine")
    assert is_alive(session.path)
    assert unfinished(tmp_path) == []
    assert prune(tmp_path, keep=0) == []
    session.close()
    assert not is_alive(session.path)
    assert [run.record_path.stem for run in unfinished(tmp_path)] == ["mine"]


def test_a_killed_process_lets_go_of_its_runs(tmp_path):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from app.workspace.autosave import SessionFolder\n"
        "session = SessionFolder(Path(sys.argv[1]))\n"
        "print(session.path, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        leave(Path(process.stdout.readline().strip()), "theirs")
        while_alive = unfinished(tmp_path)
        process.kill()
    assert while_alive == []
    assert [run.record_path.stem for run in unfinished(tmp_path)] == ["theirs"]


def test_a_run_is_taken_over_by_one_window_only(tmp_path):
    path = leave(tmp_path / "dead", "run")
    session = SessionFolder(tmp_path)
    taken = adopt(path, session.path)
    assert taken == session.path / "run.json"
    assert taken.with_name("run.checkpoint.safetensors").exists()
    assert not path.parent.exists()
    assert unfinished(tmp_path) == []
    with pytest.raises(DualscopeError, match="cannot be taken over"):
        adopt(path, session.path)
    session.close()


def test_a_forgotten_run_leaves_nothing(tmp_path):
    path = leave(tmp_path / "dead", "run")
    other = leave(tmp_path / "dead", "other")
    forget(path)
    assert [run.record_path for run in unfinished(tmp_path)] == [other]
    forget(other)
    forget(other)  # another window was quicker
    assert list(tmp_path.iterdir()) == []


def test_old_runs_make_room_but_never_pinned_or_unfinished_ones(tmp_path):
    for age in range(6):
        leave(tmp_path / str(age), f"done{age}", status="done", age=age)
    cut_short = leave(tmp_path / "x", "cut", age=1000)
    pinned = tmp_path / "5" / "done5.json"
    gone = prune(tmp_path, pinned=[pinned], keep=3)
    assert sorted(path.stem for path in gone) == ["done3", "done4"]
    left = sorted(path.name for path in tmp_path.rglob("*.json"))
    assert left == ["cut.json", "done0.json", "done1.json", "done2.json", "done5.json"]
    assert cut_short.exists()
    assert not (tmp_path / "4").exists()


def test_large_runs_make_room_too(tmp_path):
    for age in range(4):
        leave(tmp_path / str(age), f"done{age}", status="cancelled", age=age, size=4000)
    gone = prune(tmp_path, most_bytes=12_000)
    assert sorted(path.stem for path in gone) == ["done2", "done3"]


def test_a_session_without_runs_leaves_no_folder(tmp_path):
    session = SessionFolder(tmp_path / "autosave")
    session.close()
    session.close()
    assert list((tmp_path / "autosave").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DualscopeError, match="Runs cannot be kept in"):
        SessionFolder(tmp_path / "file")
