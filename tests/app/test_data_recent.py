"""Recent files: newest first, kept on this machine, honest about what is gone."""

import json

import pytest

from app.data.recent import MOST, RecentFiles, read_recent


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config" / "recent.json"


@pytest.fixture
def recent(tasks, path, qtbot):
    recent = RecentFiles(tasks, path)
    yield recent
    qtbot.waitUntil(lambda: not tasks.busy)


def settle(qtbot, recent):
    qtbot.waitUntil(lambda: not recent.tasks.busy)


def add(qtbot, recent, text, options=None):
    recent.add(str(text), options or {})
    settle(qtbot, recent)


def files(folder, count):
    made = [folder / f"scan {number}.npy" for number in range(count)]
    for file in made:
        file.touch()
    return made


def test_the_newest_comes_first_and_a_file_is_listed_once(qtbot, recent, tmp_path):
    a, b = files(tmp_path, 2)
    for file in (a, b, a):
        add(qtbot, recent, file)
    assert [entry.label for entry in recent.menu_entries()] == [a.name, b.name]


def test_only_the_last_twelve_are_kept(qtbot, recent, tmp_path):
    made = files(tmp_path, MOST + 3)
    for file in made:
        add(qtbot, recent, file)
    assert [e.text for e in recent.menu_entries()] == [str(f) for f in reversed(made[3:])]


def test_the_list_and_its_options_survive_a_restart(qtbot, recent, tasks, path, tmp_path):
    (file,) = files(tmp_path, 1)
    add(qtbot, recent, file, {"scan_pitch_mm": 0.5})
    again = RecentFiles(tasks, path)
    qtbot.waitUntil(lambda: bool(again.entries))
    entry = again.menu_entries()[0]
    assert (entry.text, entry.options) == (str(file), {"scan_pitch_mm": 0.5})


def test_a_missing_file_is_grey_and_says_not_found(qtbot, recent, tmp_path):
    (file,) = files(tmp_path, 1)
    add(qtbot, recent, file)
    file.unlink()
    recent.refresh()
    settle(qtbot, recent)
    entry = recent.menu_entries()[0]
    assert not entry.enabled
    assert "not found" in entry.label
    assert str(file) in entry.tip


def test_clearing_leaves_nothing_in_the_file(qtbot, recent, path, tmp_path):
    (file,) = files(tmp_path, 1)
    add(qtbot, recent, file)
    recent.clear()
    settle(qtbot, recent)
    assert recent.menu_entries() == []
    assert file.name not in path.read_text()


def test_two_windows_keep_each_others_files(qtbot, recent, tasks, path, tmp_path):
    a, b = files(tmp_path, 2)
    other = RecentFiles(tasks, path)
    add(qtbot, recent, a)
    add(qtbot, other, b)
    assert [entry.text for entry in read_recent(path)] == [str(b), str(a)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"[]",
        b'{"format": "other", "files": []}',
        json.dumps({"format": "dualscope-recent-1", "files": [1, {"text": 3}, None]}).encode(),
    ],
)
def test_a_broken_list_is_an_empty_one(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    assert read_recent(path) == []


def test_a_list_that_cannot_be_written_is_kept_in_memory_and_says_why(qtbot, tasks, tmp_path):
    (tmp_path / "config").write_text("in the way")
    recent = RecentFiles(tasks, tmp_path / "config" / "recent.json")
    a, b = files(tmp_path, 2)
    add(qtbot, recent, a)
    add(qtbot, recent, b)
    recent.refresh()
    settle(qtbot, recent)
    assert [entry.text for entry in recent.entries] == [str(b), str(a)]
    assert "Recent files are not kept" in recent.problem
