"""kill -9 at any moment: at the next opening index and files say the same, nothing is lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import library_child
import pytest

from engine.files.run_library import GONE, RunLibrary
from engine.files.run_library_entry import read_entry

ROUNDS = int(os.environ.get("DUALSCOPE_ROUNDS", "6"))
CHILD = Path(library_child.__file__)


def killed(root: Path, seed: int, chance: random.Random) -> tuple[set[str], set[str]]:
    """What a window had finished, and had begun to delete, when it was killed."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(root), str(seed)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    lines = [child.stdout.readline()]  # it works: from now on it may be killed at any moment
    time.sleep(chance.random() * 0.06)
    child.kill()
    lines += child.stdout.readlines()
    child.wait()
    child.stdout.close()
    told = [line.split() for line in lines if line.endswith("\n")]
    assert told, "the child said nothing"
    return tuple({run for word, run in told if word == said} for said in ("finished", "deleting"))


def check(root: Path, finished: set[str], deleted: set[str]) -> None:
    library = RunLibrary(root)
    library.agree()
    assert library.problem == ""
    listed = {entry.id: entry for entry in library.find()}
    names = set(os.listdir(root))
    assert not [name for name in names if name.startswith(GONE)]
    assert {name for name in names if not name.startswith("library.sqlite")} == set(listed)
    for run_id, entry in listed.items():
        assert entry == read_entry(library.record(run_id), running=False)
        assert entry.status in ("finished", "interrupted")
    assert {run for run in finished - deleted if listed[run].status != "finished"} == set()
    assert library.used() == sum(entry.bytes for entry in listed.values())
    library.close()


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_after_a_kill_index_and_files_agree_and_nothing_finished_is_lost(tmp_path: Path) -> None:
    chance = random.Random(ROUNDS)
    finished, deleted = set[str](), set[str]()
    for number in range(ROUNDS):
        one, two = killed(tmp_path, number, chance)
        finished |= one
        deleted |= two
        if chance.random() < 0.1:  # the index itself is damaged, or gone
            index = tmp_path / "library.sqlite"
            index.write_bytes(b"no database") if chance.random() < 0.5 else index.unlink()
        check(tmp_path, finished, deleted)
    assert finished - deleted
