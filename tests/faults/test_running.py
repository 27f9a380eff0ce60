"""Trouble in the middle of the computation: memory, numbers, bugs, disks and clocks."""

import itertools
import json
import time
from unittest import mock

import numpy as np
import pytest
import torch
from fault_injection import FULL, GONE, failing, strays
from fault_stages import SCAN, command

from engine.physics.ct import CTOperator
from engine.priors.analytic import GaussianPrior

STEPS = 6
LONG = ["--nfe", str(STEPS), "--cg-iterations", "2", "--prior", "gaussian", "--quiet"]


def after(calls, original, fault):
    """``original`` until it was called often enough, then the fault."""
    count = itertools.count()

    def faulty(*args, **options):
        if next(count) >= calls:
            return fault(original, *args, **options)
        return original(*args, **options)

    return faulty


def raising(error):
    def fault(original, *args, **options):
        raise error

    return fault


def nan(original, *args, **options):
    return original(*args, **options) * float("nan")


CPU = RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory")
CUDA = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
FAULTS = {
    "out of memory, CPU": (raising(CPU), "not enough memory"),
    "out of memory, CUDA": (raising(CUDA), "--device cpu"),
    "out of memory, Python": (raising(MemoryError()), "not enough memory"),
    "a prior that returns NaN": (nan, "denoiser produced NaN or infinity at iteration 4"),
    "exception in the computation": (raising(ZeroDivisionError("x")), "fault in Dualscope"),
    "vanished network drive": (raising(OSError(GONE, "Stale file handle", "cache")), "Stale"),
}


@pytest.fixture
def undisturbed(inputs, tmp_path):
    path = tmp_path / "undisturbed.npy"
    assert command("reconstruct", inputs / "ct.npy", *SCAN, *LONG, "-o", path)[0] == 0
    return np.load(path)


def resumed(folder):
    code, words = command(
        "reconstruct", "--resume", folder / "r.json", "-o", folder / "y.npy", "--quiet"
    )
    assert code == 0, words
    return np.load(folder / "y.npy")


@pytest.mark.parametrize("fault", FAULTS)
def test_the_last_good_image_is_kept_and_the_run_goes_on(
    fault, cell, inputs, undisturbed, tmp_path
):
    cell(fault, "in the middle of iterating")
    happens, words = FAULTS[fault]
    request = ["reconstruct", inputs / "ct.npy", *SCAN, *LONG, "-o", tmp_path / "x.npy"]
    broken = after(3, GaussianPrior.__call__, happens)
    with mock.patch.object(GaussianPrior, "__call__", broken):
        code, said = command(*request, "--record", tmp_path / "r.json", "--checkpoint-seconds", "0")
    assert code == 1
    cell.said(said, words)
    record = json.loads((tmp_path / "r.json").read_text())
    assert (record["status"], len(record["history"])) == ("failed", 3)
    assert np.isfinite(np.load(tmp_path / "x.npy")).all()
    cell.kept("the image of iteration 3, in the output and in the checkpoint")
    assert np.array_equal(resumed(tmp_path), undisturbed)
    assert strays(tmp_path) == []
    cell.usable("resumed, it gives the undisturbed run's bits")


@pytest.mark.parametrize("fault", [name for name in FAULTS if "NaN" not in name])
def test_a_fault_while_preparing_is_one_sentence(fault, cell, inputs, tmp_path):
    cell(fault, "preparing")
    happens, words = FAULTS[fault]
    request = ["reconstruct", inputs / "ct.npy", *SCAN, *LONG, "-o", tmp_path / "x.npy"]
    (tmp_path / "x.npy").write_text("precious")
    broken = after(0, CTOperator.forward, happens)
    with mock.patch.object(CTOperator, "forward", broken):
        code, said = command(*request, "--overwrite")
    assert code == 1
    cell.said(said, words)
    assert (tmp_path / "x.npy").read_text() == "precious"
    cell.kept("the file that was to be replaced")
    assert command(*request, "--overwrite")[0] == 0
    cell.usable("the next command works")


@pytest.mark.parametrize("kind", ["write", "create", "rename"])
def test_a_disk_that_fills_up_during_a_run_costs_nothing_saved(
    kind, cell, inputs, undisturbed, tmp_path
):
    cell("disk full", f"checkpoint in the middle of iterating ({kind})")
    out = tmp_path / "out"
    out.mkdir()
    request = ["reconstruct", inputs / "ct.npy", *SCAN, *LONG, "--checkpoint-seconds", "0"]
    with failing(out, FULL, kind, after=5):
        code, said = command(*request, "--record", out / "r.json")
    assert code == 1
    cell.said(said, "No space left", "r.")
    assert 0 < len(json.loads((out / "r.json").read_text())["history"]) < STEPS
    cell.kept("record and checkpoint of the iteration before")
    assert np.array_equal(resumed(out), undisturbed)
    assert strays(out) == []
    cell.usable("resumed, it gives the undisturbed run's bits")


def test_a_result_that_cannot_be_written_is_kept_elsewhere(cell, inputs, undisturbed, tmp_path):
    cell("disk full", "export after a run without a record")
    out = tmp_path / "out"
    out.mkdir()
    request = ["reconstruct", inputs / "ct.npy", *SCAN, *LONG, "-o", out / "x.npy"]
    with failing(out, FULL, "write"):
        code, said = command(*request)
    assert code == 1
    cell.said(said, "No space left", "--resume")
    (record,) = (tmp_path / "state" / "kept").glob("*.json")
    assert str(record) in said
    cell.kept("the result, in a folder of the program's own")
    assert command("reconstruct", "--resume", record, "-o", out / "x.npy", "--quiet")[0] == 0
    assert np.array_equal(np.load(out / "x.npy"), undisturbed)
    cell.usable("written from there, bit for bit")


def test_a_clock_that_jumps_changes_nothing(cell, inputs, undisturbed, tmp_path):
    cell("system sleep", "in the middle of iterating")
    jumps = itertools.count()
    clocks = {name: getattr(time, name) for name in ("monotonic", "perf_counter", "time")}

    def late(name):
        return lambda: clocks[name]() + 3600.0 * next(jumps)

    request = ["reconstruct", inputs / "ct.npy", *SCAN, *LONG, "-o", tmp_path / "x.npy"]
    with mock.patch.multiple(time, **{name: late(name) for name in clocks}):
        code, said = command(*request, "--record", tmp_path / "r.json")
    assert (code, said) == (0, "")
    cell.silent("the run goes on as if nothing had been")
    assert np.array_equal(np.load(tmp_path / "x.npy"), undisturbed)
    assert json.loads((tmp_path / "r.json").read_text())["status"] == "done"
    cell.kept("the whole result, bit for bit")
    assert command(*request, "--overwrite")[0] == 0
    cell.usable("the next command works")
