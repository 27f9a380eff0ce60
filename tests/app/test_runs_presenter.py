"""Runs in the background, driven through the presenter with the real engine."""

import itertools
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from PySide6.QtCore import QTimer
from window_driver import LONG, slowness, stands_at

from app.forms.choices import load_choices
from app.runs.presenter import RunPresenter
from app.runs.store import RunStore
from engine.files.checkpoint import Checkpoint
from engine.files.record import RunRecord
from engine.files.run_library import RunLibrary


@pytest.fixture(scope="session")
def phantom_file(tmp_path_factory):
    rows, columns = np.mgrid[-1:1:64j, -1:1:64j]
    image = np.full((64, 64), -1000.0, dtype=np.float32)
    image[rows**2 + columns**2 < 0.8] = 40
    image[(rows - 0.3) ** 2 + columns**2 < 0.05] = 400
    path = tmp_path_factory.mktemp("data") / "phantom.npy"
    np.save(path, image)
    return path


def job(path, solver="dc-pnpdp", nfe=12, **settings):
    return {
        "input": str(path),
        "options": {"unit": "hu"},
        "acquisition": {"views": 12},
        "solver": solver,
        "settings": {"nfe": nfe, "cg_iterations": 3, **settings},
        "prior": "gaussian",
        "seed": 7,
        "device": "cpu",
    }


@pytest.fixture
def presenter(qtbot, tmp_path):
    library = RunLibrary(tmp_path / "runs")
    made = RunPresenter(RunStore(), library)
    made.worker.submit([])  # the engine's import is not what these tests time
    yield made
    assert made.close()
    library.close()


def wait_until_idle(qtbot, presenter):
    qtbot.waitUntil(lambda: presenter.state == "idle")


def collect(signal):
    """What a signal says, in order."""
    heard = []
    signal.connect(lambda *values: heard.append(values))
    return heard


def test_a_run_leaves_every_number_its_newest_frames_and_its_record(qtbot, presenter, phantom_file):
    frames, states = collect(presenter.frame), collect(presenter.state_changed)
    presenter.show({"z", "x", "u", "x - z", "residual", "psd"})
    (run_id,) = presenter.start([job(phantom_file)])
    wait_until_idle(qtbot, presenter)

    entry = presenter.store.get(run_id)
    assert entry.status == "done"
    assert entry.history.column("k").tolist() == list(range(1, 13))
    assert np.isfinite(entry.history.column("residual_x")).all()
    assert entry.metrics["psnr"] > 15
    assert entry.images.shape == entry.reference.shape == (1, 64, 64)
    ks = [frame.k for _, frame in frames]
    assert ks == sorted(ks)
    assert ks[-1] == 12
    last = frames[-1][1]
    assert {"image", "z", "x", "u", "x - z", "residual"} <= set(last.planes)
    assert [state for (state,) in states] == ["preparing", "running", "idle"]
    record = RunRecord.read(entry.record_path)
    assert record.status == "done"
    assert Checkpoint.path_beside(entry.record_path).exists()


def start_slowly(qtbot, presenter, phantom_file, *jobs):
    """A run long enough to be caught in the middle."""
    ids = presenter.start(jobs or [job(phantom_file, nfe=LONG)])
    qtbot.waitUntil(lambda: len(presenter.store.get(ids[-1]).history) >= 3)
    return ids


def test_pause_stops_and_shows_the_newest_iteration_and_step_makes_exactly_one(
    qtbot, presenter, phantom_file
):
    (run_id,) = start_slowly(qtbot, presenter, phantom_file)
    entry = presenter.store.get(run_id)
    presenter.pause()
    stood = stands_at(presenter, run_id)
    assert stands_at(presenter, run_id) == stood == entry.last_frame.k == len(entry.history)
    presenter.step()
    qtbot.waitUntil(lambda: entry.last_frame.k > stood)
    assert stands_at(presenter, run_id) == stood + 1 == len(entry.history)
    assert presenter.state == "paused"
    presenter.resume()
    qtbot.waitUntil(lambda: len(entry.history) > stood + 3)


def test_a_paused_run_shows_another_plane_when_asked(qtbot, presenter, phantom_file):
    (run_id,) = start_slowly(qtbot, presenter, phantom_file)
    presenter.pause()
    stands_at(presenter, run_id)
    presenter.show({"image"})
    qtbot.waitUntil(lambda: set(presenter.store.get(run_id).last_frame.planes) == {"image"})
    assert "residual" not in presenter.store.get(run_id).last_frame.planes
    presenter.show({"residual"})
    qtbot.waitUntil(lambda: "residual" in presenter.store.get(run_id).last_frame.planes)


@pytest.mark.parametrize(
    ("button", "status"), [("finish", "finished early"), ("cancel", "cancelled")]
)
@pytest.mark.parametrize("paused", [False, True])
def test_finish_and_cancel_act_within_one_step(
    qtbot, presenter, phantom_file, button, status, paused
):
    (run_id,) = start_slowly(qtbot, presenter, phantom_file)
    entry = presenter.store.get(run_id)
    if paused:
        presenter.pause()
        stands_at(presenter, run_id)
    getattr(presenter, button)()
    done = entry.snapshots.iterations()[-1]
    wait_until_idle(qtbot, presenter)
    assert entry.status == status
    assert len(entry.history) <= done + 1
    assert RunRecord.read(entry.record_path).status == status
    assert np.array_equal(entry.images, entry.snapshots.at(10**9)[2])


def test_two_jobs_alternate_from_the_same_problem_and_equal_runs_made_alone(
    qtbot, presenter, phantom_file
):
    jobs = [job(phantom_file, solver) for solver in ("dc-pnpdp", "diffpir")]
    order = []
    presenter.scalars.connect(lambda rows: order.extend(run_id for run_id, _ in rows))
    pair = presenter.start(jobs)
    wait_until_idle(qtbot, presenter)
    alone = [presenter.start([one])[0] for one in reversed(jobs)][::-1]
    wait_until_idle(qtbot, presenter)

    assert order[:24] == list(itertools.chain.from_iterable([pair] * 12))
    for together, single in zip(pair, alone, strict=True):
        a, b = presenter.store.get(together), presenter.store.get(single)
        assert np.array_equal(a.images, b.images)
        assert np.array_equal(a.history.column("gap"), b.history.column("gap"))
    entries = [presenter.store.get(run_id) for run_id in pair]
    assert entries[0].colour != entries[1].colour
    assert entries[0].dash != entries[1].dash


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"input": "/nowhere/at-all.npy"}, "at-all.npy"),
        ({"solver": "magic"}, "magic"),
        ({"settings": {"nfe": -1}}, "“NFE (denoiser calls)”"),
    ],
)
def test_a_wrong_request_becomes_one_sentence(qtbot, presenter, phantom_file, change, words):
    failures = collect(presenter.failed)
    load_choices()  # the labels of the methods' settings come with the engine
    (run_id,) = presenter.start([job(phantom_file) | change])
    wait_until_idle(qtbot, presenter)
    ((failure,),) = failures
    assert failure.run_id == run_id
    assert failure.expected
    assert words in failure.sentence
    assert "Traceback" in failure.details
    assert presenter.store.get(run_id).status == "failed"


def test_a_fault_in_the_middle_keeps_the_last_image_and_the_other_run(
    qtbot, presenter, phantom_file, monkeypatch
):
    from engine.solvers.diffpir import Diffpir

    whole = Diffpir.iterate

    def broken(*arguments):
        yield from itertools.islice(whole(*arguments), 3)
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Diffpir, "iterate", broken)
    failures = collect(presenter.failed)
    good, bad = presenter.start([job(phantom_file), job(phantom_file, "diffpir")])
    wait_until_idle(qtbot, presenter)
    ((failure,),) = failures
    assert not failure.expected
    assert "ZeroDivisionError" in failure.sentence
    assert "broken" in failure.details
    assert failure.images.shape == (1, 64, 64)
    assert presenter.store.get(good).status == "done"
    assert len(presenter.store.get(bad).history) == 3
    assert RunRecord.read(presenter.store.get(bad).record_path).status == "failed"


def test_closing_in_the_middle_ends_at_once_saves_and_can_be_continued(
    qtbot, presenter, phantom_file, tmp_path
):
    (run_id,) = start_slowly(qtbot, presenter, phantom_file, job(phantom_file, nfe=150))
    with qtbot.waitSignal(presenter.closed):
        presenter.request_close()
    assert not presenter.worker.alive
    entry = presenter.store.get(run_id)
    assert entry.status == "interrupted"
    done = len(entry.history)

    again = RunPresenter(RunStore(), presenter.run_library)
    resumed = again.resume_record(entry.record_path, entry.job)
    wait_until_idle(qtbot, again)
    assert again.close()
    other = again.store.get(resumed)
    assert other.status == "done"
    assert other.history.column("k").tolist() == list(range(1, 151))
    assert other.snapshots.iterations()[0] == 1, "those of the first part were kept, too"
    assert done > 0


def test_twenty_runs_leave_no_thread(qtbot, tmp_path, phantom_file):
    before = set(threading.enumerate())
    presenter = RunPresenter(RunStore(), RunLibrary(tmp_path))
    for _ in range(20):
        presenter.start([job(phantom_file, nfe=2)])
    wait_until_idle(qtbot, presenter)
    assert [entry.status for entry in presenter.store] == ["done"] * 20
    assert len(set(threading.enumerate()) - before) == 1
    assert presenter.close()
    assert set(threading.enumerate()) <= before


def test_cancel_ends_this_run_and_not_the_ones_that_wait(qtbot, presenter, phantom_file):
    (first,) = start_slowly(qtbot, presenter, phantom_file)
    (second,) = presenter.start([job(phantom_file, nfe=3)])
    presenter.cancel()
    wait_until_idle(qtbot, presenter)
    assert presenter.store.get(first).status == "cancelled"
    assert presenter.store.get(second).status == "done"


def test_the_window_stays_awake_during_a_fast_run(qtbot, presenter, phantom_file):
    (run_id,) = presenter.start([job(phantom_file, nfe=300)])
    qtbot.waitUntil(lambda: presenter.state == "running")
    bursts, beat = [time.thread_time()], QTimer()

    # of computing, not of waiting: what else the machine does must not decide a test
    beat.timeout.connect(lambda: bursts.append(time.thread_time()))
    beat.start(5)
    wait_until_idle(qtbot, presenter)
    beat.stop()
    assert len(presenter.store.get(run_id).history) == 300
    assert np.diff(bursts).max() < 0.2 * slowness()


def test_the_window_opens_without_torch():
    code = (
        "import sys, app.runs.presenter, app.runs.table, app.runs.bar, app.runs.scrubber,"
        "app.plots.panel, app.plots.psd_image; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
