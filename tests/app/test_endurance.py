"""The window over a long run and over many: steady, of constant memory, and quick to end."""

import gc
import json
import sys
import threading
import time

import pytest
from PySide6.QtTest import QTest
from window_driver import HU, LONG, save_phantom, slowness, until

from app.bench import Heartbeat, memory_mb
from engine.cli import bench_app

STALL_S = 0.050
GROWTH_MB = 20.0
FAST = {"solver": "dc-pnpdp", "prior": "gaussian", "seed": 0, "device": "cpu"}
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read in /proc")


@pytest.fixture
def alone(benches, folders, collecting):
    """A window with everything unfolded on an image of 64 x 64 pixels."""
    made = benches()
    made.open(save_phantom(folders), HU)
    # the images of past iterations may fill their share: here it is soon full
    made.window.runs.worker.snapshot_bytes = 1 << 20
    return made


def start(alone, nfe, **settings):
    window = alone.window
    asked = FAST | {"settings": {"nfe": nfe, "cg_iterations": 1, **settings}}
    return window.start_runs([asked])[-1]


def done(alone, run_id):
    return len(alone.window.store.get(run_id).history)


def settled_mb():
    gc.collect()
    return memory_mb()


@pytest.fixture
def only_own_objects():
    """A collection of garbage walks the objects of this test, not those other tests have left."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def thousand_iterations(alone):
    """The longest that the GUI thread computed at once, and what the memory grew by."""
    beat = Heartbeat(alone.window)
    beat.start()
    run_id = start(alone, 1000)
    until(lambda: done(alone, run_id) >= 200, what="the warm-up")
    before = memory_mb()
    alone.wait_idle()
    beat.stop()
    assert done(alone, run_id) == 1000
    grown = settled_mb() - before
    print(f"longest turn {1e3 * beat.busiest:.0f} ms of computing, {1e3 * beat.longest:.0f} ms")
    print(f"memory grew by {grown:.1f} MB; load {beat.load:.0%}")
    return beat.busiest, grown


@linux
@pytest.mark.usefixtures("only_own_objects")
def test_a_thousand_iterations_neither_stall_the_window_nor_grow(alone):
    busiest, grown = thousand_iterations(alone)
    assert grown < GROWTH_MB
    if busiest >= STALL_S * slowness():  # the window's doing only if it comes again
        busiest, _ = thousand_iterations(alone)
    assert busiest < STALL_S * slowness(), (
        f"the GUI thread computed {1e3 * busiest:.0f} ms at once, twice"
    )


@linux
def test_fifty_runs_in_a_row_leave_no_thread_and_no_memory(alone):
    window = alone.window
    start(alone, 3)
    alone.wait_idle()
    threads, before = set(threading.enumerate()), 0.0
    for number in range(50):
        if number == 10:
            before = settled_mb()
        run_id = start(alone, 3)
        alone.wait_idle()
        assert window.store.get(run_id).status == "done"
    grown = settled_mb() - before
    print(f"memory grew by {grown:.1f} MB in 40 runs")
    assert set(threading.enumerate()) == threads
    assert grown < GROWTH_MB
    assert len(window.store) == 52  # with FBP, made along with the first


def test_cancel_takes_effect_within_one_step(alone):
    run_id = start(alone, LONG)
    until(lambda: done(alone, run_id) >= 5, what="some iterations")
    entry = alone.window.store.get(run_id)
    alone.window.run_bar.buttons["cancel"].click()
    made = entry.snapshots.newest()
    alone.wait_idle()
    assert entry.status == "cancelled"
    assert entry.snapshots.newest() - made <= 1, "only the step in which it was pressed ends"
    assert entry.images is not None


def test_closing_in_the_middle_of_a_run_does_not_wait_for_its_end_and_saves_it(alone):
    window = alone.window
    run_id = start(alone, LONG)
    until(lambda: done(alone, run_id) >= 20, what="some iterations")
    alone.close()
    path = window.autosave / run_id / f"{run_id}.json"
    record = json.loads(path.read_text("utf-8"))
    assert record["status"] == "interrupted"
    assert 20 <= len(record["history"]) < LONG
    assert path.with_name(f"{run_id}.checkpoint.safetensors").is_file()


def test_the_heartbeat_tells_computing_from_waiting(qapp):
    beat = Heartbeat()
    beat.start()
    QTest.qWait(30)
    time.sleep(0.1)
    beat.stop()
    assert beat.longest >= 0.1
    assert beat.busiest < 0.05
    beat.start()
    until_then = time.thread_time() + 0.06
    while time.thread_time() < until_then:
        pass
    beat.stop()
    assert 0.06 <= beat.busiest <= beat.longest
    assert 0 < beat.load <= 1


def test_bench_app_measures_a_window_of_its_own(monkeypatch):
    monkeypatch.delenv("QT_QPA_PLATFORM")  # it needs no display
    rows = bench_app.window(rounds=1, iterations=10)
    assert [row["case"] for row in rows] == [words for words, _, _ in bench_app.CASES.values()]
    found = {name: row["measured"] for name, row in zip(bench_app.CASES, rows, strict=True)}
    assert 0 < found["first paint s"] < found["ready s"]
    assert found["frames per s"] > 0
    assert 0 < found["longest gap, computing ms"] <= found["longest gap ms"]
    assert 0 < found["GUI load %"] <= 100
