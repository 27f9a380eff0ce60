"""The library: what is listed, found, deleted, and kept from harm by another window."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from library_child import make, name_of, record_of

from engine.files.atomic import write_bytes_atomic
from engine.files.run_library import INDEX, RunLibrary
from engine.files.run_library_entry import RESULT
from engine.spec.errors import RequestError


def test_a_run_is_listed_with_data_scan_slice_calls_and_metrics(tmp_path: Path) -> None:
    library = RunLibrary(tmp_path)
    make(library, name_of(1, 0))
    (entry,) = library.find()
    assert (entry.data, entry.slices, entry.scan) == ("phantom.npy", "5", "R 4.27")
    assert (entry.solver, entry.done, entry.asked, entry.status) == ("dc-pnpdp", 8, 8, "finished")
    assert (entry.psnr, entry.ssim, entry.seconds) == (31.5, 0.9, 1.5)
    assert entry.bytes == sum(
        path.stat().st_size for path in library.folder(entry.id).iterdir() if path.name != "lock"
    )
    assert entry.started.tm_sec == 1


def test_every_word_of_a_search_must_be_there_and_signs_mean_themselves(tmp_path: Path) -> None:
    library = RunLibrary(tmp_path)
    for number in range(3):
        make(library, name_of(number, 0))
    library.remark(name_of(1, 0), note="100% Sure")
    assert [entry.id for entry in library.find("sure PHANTOM")] == [name_of(1, 0)]
    assert [entry.id for entry in library.find("0%")] == [name_of(1, 0)]
    assert library.find("_") == []
    assert len(library.find("r 4.27 finished")) == 3
    assert library.find(status=["failed"]) == []
    assert [entry.id for entry in library.find()] == [name_of(n, 0) for n in (2, 1, 0)]


def test_a_run_of_a_window_that_is_gone_was_interrupted(tmp_path: Path) -> None:
    window = RunLibrary(tmp_path)
    make(window, name_of(1, 0), finish=False)
    assert [entry.status for entry in window.find()] == ["running"]
    other = RunLibrary(tmp_path)
    other.agree()
    assert [entry.status for entry in other.find()] == ["running"]
    window.close()
    other.agree()
    (entry,) = other.find()
    assert (entry.status, entry.done, entry.resumable) == ("interrupted", 1, 1)


def test_what_is_open_in_one_window_is_not_deleted_or_continued_by_another(tmp_path: Path) -> None:
    one, two = RunLibrary(tmp_path), RunLibrary(tmp_path)
    run_id = name_of(1, 0)
    make(one, run_id)
    assert not two.hold(run_id)
    assert not two.delete(run_id)
    assert two.make_room(0) == []
    with pytest.raises(RequestError, match="open in another window"):
        two.begin(run_id)
    one.let_go(run_id)
    assert two.delete(run_id)
    assert not one.folder(run_id).exists()
    assert one.find() == two.find() == []


def test_a_running_run_is_not_deleted_by_its_own_window(tmp_path: Path) -> None:
    library = RunLibrary(tmp_path)
    make(library, name_of(1, 0), finish=False)
    assert not library.delete(name_of(1, 0))
    assert library.record(name_of(1, 0)).exists()


def test_room_is_made_by_the_oldest_that_are_neither_pinned_nor_open(tmp_path: Path) -> None:
    window = RunLibrary(tmp_path)
    names = [name_of(number, 0) for number in range(5)]
    for name in names:
        make(window, name)
    window.close()
    library = RunLibrary(tmp_path)
    library.remark(names[0], pinned=True)
    library.hold(names[1])
    each = library.find()[0].bytes
    assert library.make_room(3 * each + 1000) == [names[2], names[3]]
    assert [entry.id for entry in library.find()] == [names[4], names[1], names[0]]
    assert library.used() <= 3 * each + 1000


def test_the_index_is_made_again_from_the_files(tmp_path: Path) -> None:
    library = RunLibrary(tmp_path)
    for number in range(3):
        make(library, name_of(number, 0))
    library.remark(name_of(1, 0), note="kept", pinned=True)
    before = library.find()
    library.close()
    for spoil in (lambda path: path.unlink(), lambda path: path.write_bytes(b"\0" * 5000)):
        spoil(tmp_path / INDEX)
        again = RunLibrary(tmp_path)
        again.agree()
        assert again.find() == before
        again.close()


def test_an_index_of_another_version_is_made_again(tmp_path: Path) -> None:
    library = RunLibrary(tmp_path)
    make(library, name_of(1, 0))
    library.close()
    with sqlite3.connect(tmp_path / INDEX) as db:
        db.execute("ALTER TABLE runs DROP COLUMN words")
        db.execute("PRAGMA user_version = 99")
    db.close()
    again = RunLibrary(tmp_path)
    again.agree()
    assert len(again.find("phantom")) == 1


def test_files_that_came_changed_or_went_outside_are_noticed(tmp_path: Path) -> None:
    library = RunLibrary(tmp_path)
    names = [name_of(number, 0) for number in range(3)]
    for name in names:
        make(library, name)
    (library.folder(names[0]) / f"{names[0]}{RESULT}").unlink()
    for path in library.folder(names[1]).iterdir():
        path.unlink()
    library.let_go(names[1])
    library.let_go(names[2])
    write_bytes_atomic(library.record(names[2]), record_of("cancelled", 5))
    library.agree()
    found = {entry.id: entry for entry in library.find()}
    assert set(found) == {names[0], names[2]}
    assert found[names[0]].bytes == found[names[2]].bytes - 2000 + len(record_of("done", 8)) - len(
        record_of("cancelled", 5)
    )
    assert (found[names[2]].status, found[names[2]].done) == ("cancelled", 5)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"format": "dualscope-run"}', b"\xff"])
def test_a_damaged_record_is_listed_as_such_and_can_be_deleted(
    tmp_path: Path, content: bytes
) -> None:
    library = RunLibrary(tmp_path)
    make(library, name_of(1, 0))
    library.record(name_of(1, 0)).write_bytes(content)
    library.agree()
    (entry,) = library.find()
    assert entry.status == "failed"
    assert library.delete(entry.id)
    assert library.find() == []


def test_strange_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "a.json").write_text("{}")
    strange = tmp_path / name_of(1, 0)
    strange.mkdir()
    (strange / "letter.txt").write_text("to keep")
    library = RunLibrary(tmp_path)
    library.agree()
    assert library.find() == []
    assert (strange / "letter.txt").exists()
    assert (tmp_path / "holiday" / "a.json").exists()


def test_an_index_that_cannot_be_on_the_disk_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / INDEX).mkdir()
    library = RunLibrary(tmp_path)
    assert "in memory only" in library.problem
    make(library, name_of(1, 0))
    assert len(library.find("phantom")) == 1


def test_threads_and_windows_at_once_do_not_hurt_each_other(tmp_path: Path) -> None:
    windows = [RunLibrary(tmp_path), RunLibrary(tmp_path)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        library = windows[number % 2]
        try:
            for turn in range(6):
                make(library, name_of(turn, number))
                library.remark(name_of(turn, number), note=str(turn))
                library.agree()
                library.find("phantom")
                if turn % 2:
                    assert library.delete(name_of(turn, number))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    expected = sorted(name_of(turn, number) for number in range(4) for turn in (0, 2, 4))
    assert [entry.id for entry in windows[0].find()][::-1] == expected
    assert windows[0].find() == windows[1].find()


NEEDED = "import sys, engine.files.run_library; print({'torch', 'PySide6'} & set(sys.modules))"


def test_the_library_needs_neither_torch_nor_qt() -> None:
    told = subprocess.run(
        [sys.executable, "-c", NEEDED], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.strip() == "set()"


def test_remarks_survive_beside_the_record(tmp_path: Path) -> None:
    library = RunLibrary(tmp_path)
    make(library, name_of(1, 0))
    library.remark(name_of(1, 0), note="good")
    library.remark(name_of(1, 0), pinned=True)
    said = json.loads((library.folder(name_of(1, 0)) / "remarks.json").read_text())
    assert said == {"note": "good", "pinned": True}
    (entry,) = library.find()
    assert (entry.note, entry.pinned) == ("good", 1)


def test_an_index_that_is_damaged_while_open_costs_no_run(tmp_path: Path) -> None:
    library = RunLibrary(tmp_path)
    make(library, name_of(1, 0))
    with sqlite3.connect(tmp_path / INDEX) as db:
        db.execute("DROP TABLE runs")
    db.close()
    assert library.find() == []
    make(library, name_of(2, 0))
    assert "in memory only" in library.problem
    library.agree()
    assert [entry.id for entry in library.find()] == [name_of(2, 0), name_of(1, 0)]


def test_a_run_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    library = RunLibrary(tmp_path)
    library.begin(name_of(1, 0))
    library.clear(name_of(1, 0))
    assert not library.folder(name_of(1, 0)).exists()
    make(library, name_of(2, 0))
    library.clear(name_of(2, 0))
    assert len(library.find()) == 1
