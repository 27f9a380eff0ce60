"""Faults while the window computes: it says so, keeps the image and runs again."""

import errno
import os
import time
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from fault_injection import failing
from window_driver import HU, save_phantom, sentences, until

from engine.files.record import RunRecord
from engine.priors.analytic import GaussianPrior


def raised(error):
    def fault(original, *args):
        raise error

    return fault


CPU = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")
COMPUTING = {
    "out of memory, CPU": (raised(CPU), "not enough memory"),
    "out of memory, CUDA": (raised(torch.OutOfMemoryError("CUDA out of memory.")), "“Device” cpu"),
    "a prior that returns NaN": (lambda call, *args: call(*args) * float("nan"), "at iteration 4"),
    "exception in a worker": (raised(ZeroDivisionError("x")), "fault in Dualscope"),
}
DISKS = {
    "disk full": (errno.ENOSPC, "write"),
    "read-only folder": (errno.EROFS, "create"),
    "vanished network drive": (errno.ESTALE, "rename"),
}


def opened(bench):
    if bench.window.setup.data is None:
        bench.open(save_phantom(bench.folder), HU)
    return bench


@pytest.mark.parametrize("fault", COMPUTING)
def test_the_image_stays_and_the_next_run_works(fault, cell, bench):
    cell(fault, "a run in the window")
    happens, words = COMPUTING[fault]
    opened(bench)
    original, calls = GaussianPrior.__call__, []

    def faulty(*args):
        calls.append(None)
        return happens(original, *args) if len(calls) > 3 else original(*args)

    with mock.patch.object(GaussianPrior, "__call__", faulty):
        entry = bench.run(prior="gaussian", nfe=6)
    until(lambda: sentences(bench.window), what="the message")
    cell.said(sentences(bench.window)[-1], words)
    assert entry.status == "failed"
    assert entry.images is not None
    assert np.isfinite(entry.images).all()
    assert RunRecord.read(entry.record_path).status == "failed"
    cell.kept("the last good image, on the screen and in the record")
    assert bench.run(prior="gaussian", nfe=3).status == "done"
    cell.usable("the next run in the same window")


@pytest.mark.parametrize("fault", DISKS)
def test_a_run_that_cannot_be_saved_says_so(fault, cell, bench):
    cell(fault, "autosave of a run in the window")
    number, kind = DISKS[fault]
    opened(bench)
    with failing(bench.window.context.run_library.root, number, kind, after=4):
        entry = bench.run(prior="gaussian", nfe=4000)  # longer than any of them takes to be saved
    until(lambda: sentences(bench.window), what="the message")
    cell.said(sentences(bench.window)[-1], os.strerror(number))
    assert entry.status == "failed"
    assert entry.images is not None
    assert np.isfinite(entry.images).all()
    cell.kept("the image so far, on the screen; what was saved before, on the disk")
    assert bench.run(prior="gaussian", nfe=3).status == "done"
    cell.usable("the next run in the same window, when the disk is back")


def test_a_sleep_of_hours_changes_nothing(cell, bench):
    cell("system sleep", "a run in the window")
    opened(bench)
    expected = bench.run(prior="gaussian", nfe=5).images
    jumps = []

    def late(clock):
        def read():
            jumps.append(None)
            return clock() + 3600.0 * len(jumps)

        return read

    fake = SimpleNamespace(
        **{**vars(time), "monotonic": late(time.monotonic), "perf_counter": late(time.perf_counter)}
    )
    with (
        mock.patch("engine.runs.run.time", fake),
        mock.patch("app.runs.run_group.time", fake),
        mock.patch("app.runs.presenter.time", fake),
        mock.patch("engine.solvers.diagnostics.time", fake),
    ):
        entry = bench.run(prior="gaussian", nfe=5)
    assert jumps
    assert sentences(bench.window) == []
    cell.silent("the run goes on as if nothing had been")
    assert entry.status == "done"
    assert np.array_equal(entry.images, expected)
    cell.kept("the whole result, bit for bit")
    assert bench.run(prior="gaussian", nfe=3).status == "done"
    cell.usable("the next run in the same window")
