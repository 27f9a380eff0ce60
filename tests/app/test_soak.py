"""The soak: what it prints, and that it finds what is lost and what leaks."""

import itertools
import json
import tempfile
import threading
from unittest import mock

import numpy as np
import pytest
from dicom_files import picture, write_slice
from soak import work
from soak.__main__ import main
from soak.loop import Task
from soak.probe import RSS, leaks
from soak.readback import fault_of
from soak.recipes import command
from soak.work import EngineWork

LOOKS = 40  # at the clock: about ten tasks


@pytest.fixture
def soak(tmp_path, monkeypatch, capsys):
    """Run the command; its exit code, what it printed and what it wrote."""
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))

    def run(seconds, *words, tasks=None):
        if tasks is not None:
            monkeypatch.setattr("soak.__main__.engine_tasks", tasks)
            # a clock that moves on with every look at it, however busy the machine is
            monkeypatch.setattr("soak.loop.monotonic", itertools.count(0.0).__next__)
        out = tmp_path / "out"
        code = main(["--seconds", str(seconds), "-o", str(out), *words])
        assert list((tmp_path / "temp").iterdir()) == [], "the soak left its own folder"
        return code, capsys.readouterr().out, json.loads((out / "soak.json").read_bytes())

    return run


@pytest.fixture
def simple(monkeypatch):
    """Tasks for the soak that do nothing but one thing, and need no data."""
    monkeypatch.setattr("soak.__main__.make_inputs", lambda folder: None)
    return only


def only(act):
    def tasks(home, inputs, random, window):
        return [Task("simple", 1, act)]

    return tasks


def test_a_short_soak_of_engine_and_window_loses_nothing(soak):
    code, printed, found = soak(2)
    assert "Tasks" in printed
    assert "Leaks" in printed
    assert found["troubles"] == []
    assert any(name.startswith("window: ") for name in found["rows"])
    assert any(not name.startswith("window: ") for name in found["rows"])
    assert sum(row["faults"] for row in found["rows"].values()) > 0
    assert all(row["lost"] == row["unexpected"] == 0 for row in found["rows"].values())
    assert {"engine", "window"} == set(found["leaks"])
    leaked = any(leak["leaked"] for rows in found["leaks"].values() for leak in rows)
    assert code == int(leaked)  # memory of so short a time says little


def test_work_without_loss_and_leak_ends_well(soak, simple):
    code, printed, found = soak(LOOKS, "--no-window", tasks=simple(lambda mark: None))
    assert code == 0, printed
    assert found["rows"]["simple"]["runs"] > 3
    assert {leak["name"] for leak in found["leaks"]["engine"]} >= {"threads", "temp files"}


def test_a_result_with_one_other_bit_is_lost(soak):
    def spoiling(*words):
        answer = command(*words)
        for path in (word for word in words if str(word).endswith("a.npy")):
            image = np.load(path)
            image.view(np.uint32).flat[7] ^= 1
            np.save(path, image)
        return answer

    def tasks(home, inputs, random, window):
        engine = EngineWork(home, inputs, random)

        def spoilt(mark):
            with mock.patch.object(work, "command", spoiling):
                engine.reconstruct(mark)

        return [Task("spoilt", 1, spoilt)]

    code, printed, found = soak(8, "--no-window", tasks=tasks)
    assert code == 1
    assert found["rows"]["spoilt"]["lost"] >= 1
    assert "other bits than undisturbed" in printed


def test_threads_that_stay_are_a_leak(soak, simple):
    stop, started = threading.Event(), []

    def leak(mark):
        started.append(threading.Thread(target=stop.wait))
        started[-1].start()

    try:
        code, printed, found = soak(LOOKS, "--no-window", tasks=simple(leak))
    finally:
        stop.set()
        for thread in started:
            thread.join()
    assert code == 1
    (threads,) = [row for row in found["leaks"]["engine"] if row["name"] == "threads"]
    assert threads["leaked"]
    assert "LEAK" in printed


def test_an_error_in_a_task_is_counted_and_the_soak_goes_on(soak, simple):
    def broken(mark):
        raise ZeroDivisionError

    code, printed, found = soak(LOOKS, "--no-window", tasks=simple(broken))
    assert code == 1
    assert found["rows"]["simple"]["unexpected"] == found["rows"]["simple"]["runs"] > 1
    assert "ZeroDivisionError" in printed


def test_ctrl_c_ends_it_with_the_table(soak, simple):
    def interrupted(mark):
        raise KeyboardInterrupt

    code, printed, found = soak(LOOKS, "--no-window", tasks=simple(interrupted))
    assert code == 130
    assert "Tasks" in printed
    assert found["rows"]["simple"]["runs"] == 1


def test_memory_is_compared_after_the_warm_up():
    def of(end_mb):
        # 100 MB at first, 200 MB after the warm-up of 2 minutes
        sizes = [(60.0 * minute, 100.0 if minute < 2 else 200.0) for minute in range(8)]
        sizes += [(60.0 * minute, end_mb) for minute in (8, 9, 10)]
        return leaks([{"at": at, RSS: size} for at, size in sizes])[0]

    assert of(204.0).growth == pytest.approx(2.0)
    assert not of(204.0).leaked
    assert of(208.0).leaked


def test_what_an_export_has_below_air_may_come_back_as_air_and_nothing_else(tmp_path):
    stored = picture() + 3000
    stored[0, 0] = 100
    path = write_slice(tmp_path / "soak.dcm", stored=stored, RescaleIntercept=-3024)
    image = stored[None].astype(np.float32) - 3024
    assert fault_of(path, image) == ""
    image[0, 3, 3] += 20
    assert "off by 20" in fault_of(path, image)
    image[0, 3, 3] = -1500
    assert "off by" in fault_of(path, image)
