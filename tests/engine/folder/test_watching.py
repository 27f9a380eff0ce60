"""A file is taken when it is complete, and a watched folder takes every new one."""

import threading
import time

from folder_inputs import SETTLE, request, run_folder, save_slice

from engine.spec.control import RunControl
from engine.workflows.folder import finding as settling
from engine.workflows.folder.finding import Finder
from engine.workflows.folder.runner import FolderRunner

PATIENCE_S = 120.0  # only ends what would hang


def watching(folder, results, events):
    """The rows as they end, while ``events`` are made to happen; then it is stopped."""
    control, said = RunControl(), []
    runner = FolderRunner(request(folder, results, watch=True), control)
    runner.ended = lambda row: said.append((row.name, row.status))
    thread = threading.Thread(target=runner.run)
    thread.start()
    try:
        events(said)
    finally:
        control.cancel()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
    return said


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_a_watched_folder_takes_new_and_changed_files(place):
    folder, results = place

    def events(said):
        wait_for(lambda: len(said) == 2)
        save_slice(folder / "new" / "c.npy", seed=3)
        wait_for(lambda: len(said) == 3)
        save_slice(folder / "a.npy", seed=8)
        wait_for(lambda: len(said) == 4)
        (folder / "b.json").write_text('{"pixel_mm": 3}')
        wait_for(lambda: len(said) == 5)

    said = watching(folder, results, events)
    assert [name for name, _ in said] == ["a.npy", "b.npy", "new/c.npy", "a.npy", "b.npy"]
    assert {status for _, status in said} == {"done"}


def test_a_growing_file_is_taken_when_it_has_stopped_growing(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(settling.time, "monotonic", lambda: clock[0])
    path = tmp_path / "in" / "a.npy"
    whole = save_slice(path).read_bytes()
    runner = FolderRunner(request(path.parent, tmp_path / "out", watch=True), RunControl())
    seen = []
    for size in (100, 500, len(whole)):
        path.write_bytes(whole[:size])
        clock[0] += 0.9 * SETTLE
        seen.append(len(runner.settling.look(runner.finder.look())[0]))
    assert seen == [0, 0, 0]
    clock[0] += 0.9 * SETTLE
    assert not runner.settling.look(runner.finder.look())[0]
    clock[0] += 0.2 * SETTLE
    (ready,), growing = runner.settling.look(runner.finder.look())
    assert (ready.path, growing) == (path, [])


def test_without_watching_a_file_that_grows_is_left_out_and_a_quiet_one_taken(place, monkeypatch):
    folder, results = place
    look = Finder.look

    def growing(self):
        with (folder / "b.npy").open("ab") as stream:
            stream.write(b"more")
        return look(self)

    monkeypatch.setattr(Finder, "look", growing)
    rows, _ = run_folder(request(folder, results, settle_seconds=0.3))
    assert rows["a.npy"].status == "done"
    assert (rows["b.npy"].status, rows["b.npy"].error.split(":")[0]) == (
        "left out",
        "It is still being written",
    )
