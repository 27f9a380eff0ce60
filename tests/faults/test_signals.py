"""SIGTERM at any stage of a command: it ends as Ctrl-C would, with the work so far kept."""

import json
import os
import signal
from unittest import mock

import numpy as np
import pytest
from fault_injection import strays, watched
from fault_stages import QUICK, SCAN, STAGES, command, copied

from engine.physics.ct import CTOperator
from engine.priors.analytic import GaussianPrior

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals differ on Windows")


@pytest.fixture(autouse=True)
def caught(monkeypatch):
    """A signal that the program does not take must not end the tests."""
    escaped = []
    old = signal.signal(signal.SIGTERM, lambda *_: escaped.append(True))
    yield
    signal.signal(signal.SIGTERM, old)
    assert not escaped, "the command did not listen to SIGTERM"


def terminating(original, at=0):
    """``original``, which sends this process a SIGTERM in one of its calls."""
    calls = []

    def signalled(*args, **options):
        calls.append(None)
        if len(calls) == at + 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(*args, **options)

    return signalled


def test_a_run_is_saved_and_can_go_on(cell, inputs, tmp_path):
    cell("SIGTERM", "in the middle of iterating")
    request = ["reconstruct", inputs / "ct.npy", *SCAN, *QUICK, "--nfe", "6"]
    assert command(*request, "-o", tmp_path / "whole.npy")[0] == 0
    with mock.patch.object(GaussianPrior, "__call__", terminating(GaussianPrior.__call__, 2)):
        code, words = command(*request, "-o", tmp_path / "x.npy", "--record", tmp_path / "r.json")
    assert (code, words) == (130, "")
    cell.silent("exit code 130, the summary says 'cancelled'")
    assert json.loads((tmp_path / "r.json").read_text())["status"] == "cancelled"
    assert np.isfinite(np.load(tmp_path / "x.npy")).all()
    cell.kept("the image so far, the record and the checkpoint")
    resume = ["reconstruct", "--resume", tmp_path / "r.json", "-o", tmp_path / "x.npy", "--quiet"]
    assert command(*resume)[0] == 0
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.load(tmp_path / "whole.npy"))
    cell.usable("resumed, it gives the undisturbed run's bits")


def test_preparing_ends_at_once(cell, inputs, tmp_path):
    cell("SIGTERM", "preparing")
    request = ["reconstruct", inputs / "ct.npy", *SCAN, *QUICK, "-o", tmp_path / "x.npy"]
    with mock.patch.object(CTOperator, "forward", terminating(CTOperator.forward)):
        code, words = command(*request)
    assert code == 130
    cell.said(words, "cancelled")
    assert not (tmp_path / "x.npy").exists()
    cell.kept("nothing was there to lose")
    assert command(*request)[0] == 0
    cell.usable("the next command works")


def test_a_comparison_keeps_the_methods_that_are_done(cell, inputs, tmp_path):
    cell("SIGTERM", "comparing methods")
    request = ["compare", inputs / "ct.npy", *SCAN, *QUICK, "--solvers", "fbp,diffpir,dc-pnpdp"]
    with mock.patch.object(GaussianPrior, "__call__", terminating(GaussianPrior.__call__)):
        code, words = command(*request, "-o", tmp_path / "c.json")
    assert (code, words) == (130, "")
    cell.silent("exit code 130, the table shows what is done")
    assert [row["solver"] for row in json.loads((tmp_path / "c.json").read_text())] == ["fbp"]
    cell.kept("the methods that were finished")
    assert command(*request, "-o", tmp_path / "d.json")[0] == 0
    cell.usable("the next command works")


@pytest.mark.parametrize(
    "stage", ["export .h5", "export DICOM folder", "experiment store", "training checkpoint"]
)
def test_a_write_is_ended_cleanly(stage, cell, before, inputs, tmp_path):
    cell("SIGTERM", f"{stage}, while writing")
    known, sent = before(stage), []
    out = copied(known.folder, tmp_path / "out")

    def strike(kind, path):
        if kind == "write" and not sent:
            sent.append(path)
            os.kill(os.getpid(), signal.SIGTERM)

    with watched(out, strike):
        code, words = STAGES[stage].act(inputs, out, "new")
    assert sent
    assert code in (0, 130)
    if words:
        cell.said(words)
    else:
        cell.silent("the write was already the last step: it ends it first")
    assert known.state(out) in ("old", "new")
    assert strays(out) == []
    cell.kept("old or new content, whole")
    assert known.stage.act(inputs, out, "new")[0] == 0
    assert known.state(out) == "new"
    cell.usable("the same request works again")
