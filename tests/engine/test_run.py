"""Runs: reproducible to the bit, stoppable at any step, never losing what was done."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import torch
from helpers import FunctionPrior, dense_problem
from solver_cases import IDS, SOLVERS

from engine.files.checkpoint import Checkpoint
from engine.files.record import RunRecord
from engine.runs.run import Run
from engine.solvers.dc_pnpdp import DcPnpdp
from engine.spec.control import RunControl
from engine.spec.errors import RequestError, StepFailed

PATIENCE_S = 120.0  # only ends what would hang


def shrink(x, sigma):
    return x / (1 + sigma**2)


def make(solver, values, *, seed=0, path=None, denoise=shrink, control=None):
    problem = dense_problem(rows=150, size=12, batch=2)
    problem.operator.matrix = problem.operator.matrix.abs()  # SIRT needs positive lengths
    problem.measurement = problem.operator.forward(problem.reference)
    return Run(
        problem,
        solver,
        solver.settings_class(**values),
        FunctionPrior(denoise),
        seed=seed,
        record_path=path,
        checkpoint_seconds=0,
        control=control,
    )


def finish(run):
    for _ in run:
        pass
    return run.image


@pytest.mark.parametrize(("solver", "values"), SOLVERS, ids=IDS)
def test_same_seed_same_bits(solver, values):
    assert torch.equal(finish(make(solver, values)), finish(make(solver, values)))


def test_another_seed_gives_another_image():
    solver, values = SOLVERS[0]
    first, second = finish(make(solver, values)), finish(make(solver, values, seed=1))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(("solver", "values"), SOLVERS, ids=IDS)
@pytest.mark.parametrize("stop", [1, 5])
def test_cancelled_and_resumed_equals_uninterrupted(solver, values, stop, tmp_path):
    whole = make(solver, values)
    finish(whole)
    path = tmp_path / "run.json"
    first = make(solver, values, path=path)
    for iteration in first:
        if iteration.k == stop:
            first.control.cancel()
    assert first.status == "cancelled"

    second = make(solver, values, path=path)
    second.record = RunRecord.read(path)
    second.resume_from(Checkpoint.read(Checkpoint.path_beside(path)))
    assert [iteration.k for iteration in second] == list(range(stop + 1, 9))
    assert torch.equal(second.image, whole.image)
    without_times = [
        [{k: v for k, v in entry.items() if k != "seconds"} for entry in run.record.history]
        for run in (whole, second)
    ]
    assert without_times[0] == without_times[1]


def test_resuming_a_finished_run_returns_its_image(tmp_path):
    solver, values = SOLVERS[0]
    path = tmp_path / "run.json"
    first = make(solver, values, path=path)
    finish(first)
    again = make(solver, values, path=path)
    again.record = RunRecord.read(path)
    again.resume_from(Checkpoint.read(Checkpoint.path_beside(path)))
    assert list(again) == []
    assert torch.equal(again.image, first.image)
    assert again.status == "done"


def test_finishing_early_keeps_the_iterate_of_that_step():
    solver, values = SOLVERS[0]
    run = make(solver, values)
    for iteration in run:
        if iteration.k == 3:
            kept = iteration.image.clone()
            run.control.finish()
    assert run.status == "finished early"
    assert len(run.record.history) == 3
    assert torch.equal(run.image, kept)


def test_a_broken_step_is_named_and_the_last_good_image_kept(tmp_path):
    calls = []

    def breaks(x, sigma):
        calls.append(sigma)
        return shrink(x, sigma) * (float("nan") if len(calls) == 4 else 1)

    solver, values = SOLVERS[0]
    run = make(solver, values, denoise=breaks, path=tmp_path / "run.json")
    with pytest.raises(StepFailed, match="denoiser produced NaN or infinity at iteration 4"):
        finish(run)
    assert run.last.k == 3
    assert torch.equal(run.image, run.last.image)
    record = RunRecord.read(tmp_path / "run.json")
    assert record.status == "failed"
    assert "denoiser" in record.message
    assert Checkpoint.read(Checkpoint.path_beside(tmp_path / "run.json")).k == 3


def test_pause_step_resume_and_cancel_from_another_thread():
    solver, _ = SOLVERS[0]
    control = Asked()
    run, seen = make(solver, {"nfe": 100_000}, control=control), []

    def work():
        for iteration in run:
            seen.append(iteration.k)

    control.pause()
    thread = threading.Thread(target=work)
    thread.start()
    assert control.asked.wait(PATIENCE_S)
    assert (seen, control.paused) == ([], True)
    for count in (1, 2):
        control.step()
        wait_until(lambda count=count: len(seen) == count)
        assert control.paused
    control.resume()
    wait_until(lambda: len(seen) > 4)
    control.cancel()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert run.status == "cancelled"
    assert len(seen) < 100_000


class Asked(RunControl):
    """Tells when a run has come to its buttons."""

    def __init__(self):
        super().__init__()
        self.asked = threading.Event()

    def wait(self):
        self.asked.set()
        return super().wait()


def wait_until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


def test_gradients_and_modes_do_not_leak_to_the_consumer():
    solver, values = SOLVERS[0]
    for _ in make(solver, values):
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


def test_the_record_tells_the_story(tmp_path):
    solver, values = SOLVERS[0]
    finish(make(solver, values, path=tmp_path / "run.json"))
    body = json.loads((tmp_path / "run.json").read_text())
    assert body["status"] == "done"
    assert [entry["k"] for entry in body["history"]] == list(range(1, 9))
    entry = body["history"][0]
    assert {"sigma", "residual_x", "residual_z", "gap", "dual", "psnr", "ssim"} <= set(entry)
    assert set(entry["seconds"]) == {"data", "sh", "denoiser"}
    assert len(entry["dual"]) == 2  # one number per slice
    assert body["metrics"]["ct-dcpnpdp"]["psnr"] == pytest.approx(
        body["history"][-1]["psnr"], rel=1e-3
    )
    assert body["timings"]["total"] > 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"format": "other"}',
        b'{"format": "dualscope-run", "format_version": 99}',
        b'{"format": "dualscope-run", "format_version": 1}',
        b'{"format": "dualscope-run", "format_version": 1, "job": []}',
        b'{"format": "dualscope-run", "format_version": 1, "job": {}, "write": 1}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
)
def test_a_damaged_record_is_one_sentence(content, tmp_path):
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(RequestError, match=r"run\.json"):
        RunRecord.read(path)


def test_a_damaged_checkpoint_is_one_sentence(tmp_path):
    solver, values = SOLVERS[0]
    finish(make(solver, values, path=tmp_path / "run.json"))
    path = Checkpoint.path_beside(tmp_path / "run.json")
    whole = path.read_bytes()
    rng = random.Random(0)
    refused = 0
    for _ in range(200):
        broken = bytearray(whole[: rng.randrange(len(whole))])
        if broken and rng.random() < 0.5:
            broken[rng.randrange(min(len(broken), 400))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        with pytest.raises(RequestError, match="checkpoint"):
            Checkpoint.read(path)
        refused += 1
    assert refused == 200


def test_a_checkpoint_of_another_problem_is_refused(tmp_path):
    solver, values = SOLVERS[0]
    finish(make(solver, values, path=tmp_path / "run.json"))
    checkpoint = Checkpoint.read(Checkpoint.path_beside(tmp_path / "run.json"))
    other = Run(dense_problem(size=6, batch=2), solver, solver.settings_class(**values))
    with pytest.raises(RequestError, match="another problem"):
        other.resume_from(checkpoint)


WORKER = """
import os, signal, sys, time
sys.path[:0] = [{root!r}, {support!r}, {tests!r}]
from pathlib import Path
import test_run
from engine.files.checkpoint import Checkpoint
from engine.files.record import RunRecord

def slow(x, sigma):
    time.sleep(0.004)
    return test_run.shrink(x, sigma)

def work(path, most):
    run = test_run.make(test_run.DcPnpdp(), {{"nfe": 400}}, path=path, denoise=slow)
    if path.exists():
        run.record = RunRecord.read(path)
        beside = Checkpoint.path_beside(path)
        if beside.exists():
            run.resume_from(Checkpoint.read(beside))
    print(os.getpid(), flush=True)
    for made, iteration in enumerate(run, 1):
        print(iteration.k, flush=True)
        if made == most:
            signal.pause()  # however late the kill comes

for line in sys.stdin:  # importing takes seconds: done once, every run is a child by fork
    child = os.fork()
    if child == 0:
        most, path = line.strip().split(" ", 1)
        work(Path(path), int(most))
        os._exit(0)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_killed_twenty_times_it_always_resumes_to_the_same_bits(tmp_path):
    here = Path(__file__).resolve().parent
    script = tmp_path / "worker.py"
    script.write_text(
        textwrap.dedent(WORKER).format(
            root=str(here.parents[1]), support=str(here.parent / "support"), tests=str(here)
        )
    )
    path, rng, reached = tmp_path / "run.json", random.Random(1), set()
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:

        def begin(most):
            print(most, path, file=parent.stdin, flush=True)
            return int(parent.stdout.readline())

        for _ in range(20):
            steps = rng.randrange(16)
            worker = begin(steps + 3)
            for _ in range(steps):  # steps, not seconds: a busy machine is slower
                parent.stdout.readline()
            time.sleep(rng.uniform(0, 0.004))
            os.kill(worker, signal.SIGKILL)
            while parent.stdout.readline() != "ended\n":
                pass
            beside = Checkpoint.path_beside(path)
            if beside.exists():
                reached.add(Checkpoint.read(beside).k)
        assert len(reached) >= 5, "the kills struck at different steps"
        assert max(reached) < 400, "none came too late"
        begin(0)
        parent.stdin.close()
        assert parent.stdout.read().endswith("400\nended\n")
    whole = make(DcPnpdp(), {"nfe": 400})
    assert torch.equal(Checkpoint.read(Checkpoint.path_beside(path)).image, finish(whole))
    assert not list(tmp_path.glob(".*.partial"))
