"""The pieces under the run views: mailbox, snapshots, control, history, store, pace."""

import threading

import numpy as np
import pytest

from app.background import Mailbox
from app.runs.progress import Pace, Progress
from app.runs.snapshots import Snapshots
from app.runs.store import RunColumns, RunStore, settings_diff
from engine.spec.control import RunControl


def test_the_mailbox_keeps_the_newest_frame_and_every_number():
    box = Mailbox()

    def fill(run_id):
        for k in range(1, 501):
            box.put_frame(run_id, k)
            box.add_scalars(run_id, {"k": k})

    threads = [threading.Thread(target=fill, args=(name,)) for name in "ab"]
    heard = []
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        heard.append(box.drain())
    heard.append(box.drain())
    for name in "ab":
        ks = [values["k"] for mail in heard for run_id, values in mail.scalars if run_id == name]
        assert ks == list(range(1, 501))
        assert [mail.frames[name] for mail in heard if name in mail.frames][-1] == 500
    assert not box.drain()


def test_snapshots_span_the_whole_run_within_their_memory():
    image = np.zeros((1, 8, 8), np.float32)
    kept = Snapshots(most_bytes=10 * image.nbytes)
    for k in range(1, 1001):
        kept.add(k, 1 / k, image + k)
        assert kept.nbytes <= 10 * image.nbytes
        assert kept.newest() == k
        assert kept.iterations()[0] == 1
    gaps = np.diff(kept.iterations())
    assert gaps.max() <= 128
    k, sigma, images = kept.at(300)
    assert abs(k - 300) <= 64
    assert sigma == 1 / k
    assert (images == k).all()


def test_snapshots_keep_every_iteration_while_there_is_room():
    kept = Snapshots()
    for k in range(5, 30):
        kept.add(k, 1.0, np.zeros((1, 4, 4), np.float32))
    assert kept.iterations() == list(range(5, 30))
    kept.keep_ends()
    assert kept.iterations() == [5, 29]


@pytest.mark.parametrize("press", ["finish", "cancel"])
def test_a_paused_run_that_shows_itself_goes_on_to_its_end_when_told_to(press):
    control, shown = RunControl(), threading.Event()
    control.before_waiting = shown.set
    control.pause()
    heard = []
    thread = threading.Thread(target=lambda: heard.append(control.wait()))
    thread.start()
    assert shown.wait(20)
    getattr(control, press)()
    thread.join(20)
    assert heard == [False]
    assert (control.finishing, control.cancelled) == (press == "finish", press == "cancel")


def test_a_waiting_run_shows_itself_again_when_asked_and_takes_every_step_pressed():
    control, shown = RunControl(), threading.Semaphore(0)
    control.before_waiting = shown.release
    control.step()
    control.step()
    assert control.wait()
    assert control.wait()
    assert control.paused
    thread = threading.Thread(target=control.wait)
    thread.start()
    assert shown.acquire(timeout=20)
    control.refresh()
    assert shown.acquire(timeout=20)
    control.resume()
    thread.join(20)
    assert not thread.is_alive()


def test_history_fills_what_is_missing_with_nan():
    history = RunColumns()
    for k in range(1, 200):
        history.append({"k": k} | ({"psnr": 30.0} if k > 100 else {}))
    assert history.column("k").tolist() == list(range(1, 200))
    assert np.isnan(history.column("psnr")[:100]).all()
    assert history.last("psnr") == 30
    assert history.last("ssim") is None


def test_a_drawn_column_does_not_change_when_the_run_goes_on():
    history = RunColumns()
    history.append({"k": 1})
    drawn = history.column("k")
    history.append({"k": 2})
    assert drawn.tolist() == [1]


def test_settings_diff_names_only_what_differs():
    a = {"solver": "dc-pnpdp", "settings": {"nfe": 50, "rho": 1.0}, "seed": 0}
    b = {"solver": "dc-pnpdp", "settings": {"nfe": 20, "rho": 1.0, "zeta": 0.5}, "seed": 0}
    assert settings_diff(a, b) == [("settings.nfe", 50, 20), ("settings.zeta", None, 0.5)]
    assert settings_diff(a, a) == []


def test_runs_of_one_method_share_its_colour_and_differ_in_dashes(qapp):
    store = RunStore()
    runs = [store.create(str(n), {"solver": "dc-pnpdp"}, "DC-PnPDP") for n in range(4)]
    naive = store.create("n", {"solver": "dc-pnpdp", "settings": {"injection": "awgn"}}, "naive")
    assert {run.colour for run in runs} == {"#E69F00"}
    assert len({run.dash for run in runs}) == 4
    assert naive.colour == "#D55E00"


def test_old_runs_give_up_their_iterations_when_memory_is_short(qapp):
    from app.runs.events import RunFinished

    image = np.zeros((1, 16, 16), np.float32)
    store = RunStore(most_bytes=25 * image.nbytes)
    for n in range(4):
        entry = store.create(str(n), {}, "run")
        for k in range(1, 11):
            entry.snapshots.add(k, 1.0, image)
        store.finish(RunFinished(str(n), "done", image))
    lengths = [len(entry.snapshots) for entry in store]
    assert lengths == [2, 2, 10, 10]
    assert all(entry.images is not None for entry in store)


def test_time_left_is_that_of_all_runs_that_take_turns():
    one, two = Pace("A"), Pace("B")
    for k in range(1, 5):
        one.take({"k": k, "K": 10, "seconds_step": 0.5, "seconds_data": 0.1})
        two.take({"k": k, "K": 10, "seconds_step": 0.25})
    progress = Progress.of([one, two])
    assert progress.text == "A 4/10, B 4/10"
    assert progress.fraction == 0.4
    assert progress.seconds_left == pytest.approx(6 * 0.75)
    assert progress.ms["data"] == pytest.approx(100)
    two.ended = True
    assert Progress.of([one, two]).seconds_left == pytest.approx(3)
