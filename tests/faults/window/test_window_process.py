"""The workstation as a process: ended by a signal, killed, or left without a display."""

import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fault_stages import command, complaints
from window_driver import save_phantom

from engine.files.folders import state_folder
from engine.files.record import RunRecord
from engine.files.run_library import RunLibrary

ROOT = Path(__file__).resolve().parents[3]
SUPPORT = ROOT / "tests" / "support"
PATIENCE_S = 120
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals differ on Windows")


@pytest.fixture
def child(folders):
    """Start a workstation with a run in it; gives the process."""
    started = []

    def start(**environment):
        variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        variables["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(SUPPORT)])
        process = subprocess.Popen(
            [sys.executable, str(SUPPORT / "window_child.py"), str(save_phantom(folders))],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        select.select([process.stdout], [], [], PATIENCE_S)
        line = process.stdout.readline()
        if line != "running\n":
            process.kill()
            errors = process.communicate()[1]
            if "xcb" in errors:  # the system's libraries for it are missing
                pytest.skip(errors.splitlines()[0])
            raise AssertionError(f"the workstation did not start: {errors}")
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def display():
    """An X server of our own: its process, and its name."""
    if shutil.which("Xvfb") is None:
        pytest.skip("there is no Xvfb")
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1280x900x24", "-nolisten", "tcp"],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    with os.fdopen(reading) as stream:
        number = stream.readline().strip()
    yield server, f":{number}"
    server.kill()
    server.wait()


def the_record(status):
    """The long run's record, which the session has left."""
    records = (state_folder() / "runs").glob("*/*.json")
    (path,) = [path for path in records if RunRecord.read(path).job["solver"] == "dc-pnpdp"]
    assert RunRecord.read(path).status in status
    return path


def goes_on_to_the_same_image(record, folder):
    job = RunRecord.read(record).job
    assert command("reconstruct", "--resume", record, "-o", folder / "a.npy", "--quiet")[0] == 0
    settings = job["settings"]
    words = ["--nfe", settings["nfe"], "--cg-iterations", settings["cg_iterations"], "--quiet"]
    words += ["--views", 20, "--prior", "gaussian", "--device", "cpu", "--unit", "hu"]
    assert command("reconstruct", job["input"], *words, "-o", folder / "b.npy")[0] == 0
    assert np.array_equal(np.load(folder / "a.npy"), np.load(folder / "b.npy"))


def test_sigterm_closes_the_window_and_saves_the_run(cell, child, folders):
    cell("SIGTERM", "a run in the window")
    process = child(QT_QPA_PLATFORM="offscreen")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    cell.silent("the window closes")
    record = the_record(["interrupted"])
    cell.kept("the run so far, recorded as interrupted")
    goes_on_to_the_same_image(record, folders)
    cell.usable("it goes on to the undisturbed run's bits")


def test_a_killed_window_leaves_a_run_to_go_on_with(cell, child, folders):
    cell("kill -9", "a run in the window")
    process = child(QT_QPA_PLATFORM="offscreen")
    process.kill()
    process.communicate()
    library = RunLibrary(state_folder() / "runs")
    library.agree()
    (left,) = library.find(status=["interrupted"])
    record = library.record(left.id)
    library.close()
    cell.silent("the next start offers the run")
    assert left.resumable
    assert record == the_record(["running"])
    cell.kept("record and checkpoint, at most a second old")
    goes_on_to_the_same_image(record, folders)
    cell.usable("it goes on to the undisturbed run's bits")


def test_a_display_that_disappears_loses_no_run(cell, child, display, folders):
    cell("a display that disappears", "a run in the window")
    server, name = display
    process = child(QT_QPA_PLATFORM="xcb", DISPLAY=name)
    server.kill()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, errors
    cell.said(complaints(errors), "display has gone")
    record = the_record(["interrupted"])
    cell.kept("the run so far, recorded as interrupted")
    goes_on_to_the_same_image(record, folders)
    cell.usable("it goes on to the undisturbed run's bits")
