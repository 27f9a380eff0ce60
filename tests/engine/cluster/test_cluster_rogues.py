"""What workers achieve that mean harm, or nothing at all: they are named, dropped and outlived.

A real scheduler and two workers of it, one of which does what a file tells it.
"""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rogue_worker import Canary, sung
from volume_runs import images, plan_of, run_volume, small_job, small_stack

from engine.spec.errors import DualscopeError
from engine.workflows.cluster import pulse, worker_pool
from engine.workflows.cluster.compute_targets import ClusterAddress
from engine.workflows.cluster.run import TOPIC, ClusterRun
from engine.workflows.volume.folder import VolumeFolder
from engine.workflows.volume.reconstruct import Begun, Stored, WorkerState

ROOT = Path(__file__).resolve().parents[3]
ROGUE = ROOT / "tests" / "support" / "rogue_worker.py"
SCHEDULER = "import sys; from distributed.cli.dask_scheduler import main; sys.exit(main())"
PATIENCE_S = 120


def until(condition, what):
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < PATIENCE_S, what
        time.sleep(0.05)


class Cluster:
    """``rogue`` and ``honest`` are the same program; only one is ever told to misbehave."""

    def __init__(self, folder, stack):
        self.folder = folder
        file = folder / "scheduler.json"
        self.scheduler = self._start(
            stack,
            *("-c", SCHEDULER, "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
            *("--dashboard-address", ":0", "--scheduler-file", str(file)),
        )
        until(lambda: file.exists() and file.read_text().endswith("}"), "no scheduler")
        self.address = json.loads(file.read_text())["address"]
        self.workers = {}
        for name in ("honest", "rogue"):
            place = folder / name
            place.mkdir()
            (place / "mode").write_text("honest")
            self.workers[name] = self._start(stack, ROGUE, self.address, name, str(place))
        for name in self.workers:
            until((folder / name / "ready").exists, f"{name} does not start")

    def _start(self, stack, *arguments):
        process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    def tell(self, mode):
        (self.folder / "rogue" / "mode").write_text(mode)

    @property
    def canary(self):
        return self.folder / "rogue" / "canary"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with contextlib.ExitStack() as stack:
        yield Cluster(tmp_path_factory.mktemp("cluster"), stack)


@pytest.fixture
def plan(tmp_path):
    return plan_of(small_job(small_stack(tmp_path / "in.npy", count=4)))


@pytest.fixture(autouse=True)
def rogue_first(monkeypatch):
    """The rogue gets work before anybody else, or it might miss a run of milliseconds."""
    free = worker_pool.Crew.free

    def chosen(crew, waiting):
        rogues = [m for m in crew.members.values() if m.name == "rogue"]
        if rogues and not (rogues[0].fault or rogues[0].slices or rogues[0].tasks):
            return rogues[0] if rogues[0].ready else None
        return free(crew, waiting)

    monkeypatch.setattr(worker_pool.Crew, "free", chosen)


def compute(path, plan, address, watch=None):
    with VolumeFolder.create(path, plan) as folder:
        run, events = ClusterRun(folder, ClusterAddress(address)), []
        for event in run:
            events.append(event)
            if watch:
                watch(event)
    assert run.status == "done"
    return events


def refused(events):
    return {e.name: e.note for e in events if isinstance(e, WorkerState) and e.state == "refused"}


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("pickle", "is no such slice"),
        ("exception", "is no such slice"),
        ("escapes", "which this computer can do"),
        ("lesion", "differs from what this computer computes, so all its slices are done again"),
    ],
)
def test_a_rogue_is_named_and_its_slices_done_again(tmp_path, plan, cluster, mode, said):
    run_volume(tmp_path / "one", plan)
    cluster.tell(mode)
    try:
        events = compute(tmp_path / "v", plan, cluster.address)
    finally:
        cluster.tell("honest")
    faults = refused(events)
    assert list(faults) == ["rogue"]
    assert said in faults["rogue"]
    assert faults["rogue"].isprintable(), "nothing that a terminal obeys"
    assert np.array_equal(images(tmp_path / "v"), images(tmp_path / "one"))
    ours = {os.getpid(), cluster.scheduler.pid, cluster.workers["honest"].pid}
    assert not sung(cluster.canary) & ours, "a pickle of a worker was opened"
    if mode == "exception":  # as Dask does with its own: the trap works
        assert sung(cluster.canary) == {cluster.workers["rogue"].pid}


def test_a_rogue_that_begins_later_is_caught_by_chance(tmp_path, plan, cluster):
    """Here with certainty: every slice is checked."""
    run_volume(tmp_path / "one", plan)
    (stored, events), told = ([], []), False
    with VolumeFolder.create(tmp_path / "v", plan) as folder:
        run = ClusterRun(folder, ClusterAddress(cluster.address, check_every=1))
        try:
            for event in run:
                events.append(event)
                stored += [event.result.number] if isinstance(event, Stored) else []
                if stored and not told:
                    told = True
                    cluster.tell("lesion")
        finally:
            cluster.tell("honest")
    assert set(refused(events)) <= {"rogue"}
    assert np.array_equal(images(tmp_path / "v"), images(tmp_path / "one"))


def test_a_worker_that_sleeps_is_replaced(tmp_path, plan, cluster, monkeypatch):
    monkeypatch.setattr(pulse, "FIRST_S", 1.0)
    run_volume(tmp_path / "one", plan)
    cluster.tell("sleep")
    try:
        faults = refused(compute(tmp_path / "v", plan, cluster.address))
    finally:
        cluster.tell("honest")
    assert "not done after" in faults["rogue"]
    assert np.array_equal(images(tmp_path / "v"), images(tmp_path / "one"))


def test_a_frozen_worker_is_replaced(tmp_path, plan, cluster, monkeypatch):
    """It counts as frozen only when nobody else has work, so that nothing depends on speed."""
    monkeypatch.setattr(pulse, "HEARTBEAT_S", float("inf"))
    run_volume(tmp_path / "one", plan)
    cluster.tell("freeze")
    stored = []

    def watch(event):
        stored.extend([event] if isinstance(event, Stored) else [])
        if isinstance(event, WorkerState) and event.state == "refused":
            monkeypatch.setattr(pulse, "HEARTBEAT_S", float("inf"))
        elif isinstance(event, Stored) and len(stored) == 3:
            monkeypatch.setattr(pulse, "HEARTBEAT_S", 1.0)

    try:
        faults = refused(compute(tmp_path / "v", plan, cluster.address, watch))
    finally:
        cluster.tell("honest")
        cluster.workers["rogue"].send_signal(signal.SIGCONT)
    assert "has not been heard of for" in faults["rogue"]
    assert np.array_equal(images(tmp_path / "v"), images(tmp_path / "one"))


def test_a_killed_scheduler_is_one_sentence(tmp_path, plan, cluster):
    with VolumeFolder.create(tmp_path / "v", plan) as folder:
        run = ClusterRun(folder, ClusterAddress(cluster.address))
        events = iter(run)
        next(event for event in events if isinstance(event, Begun))
        cluster.scheduler.kill()
        cluster.scheduler.wait()
        with pytest.raises(DualscopeError, match=r"connection to the scheduler is lost: is it run"):
            list(events)
    assert run.status == "failed"


# -- workers of ours, whose scheduler is in this process -----------------------------------------


async def _attack(path, dask_worker):
    """All ways by which a worker can hand a pickle to its scheduler."""
    import asyncio

    from distributed.core import rpc
    from distributed.protocol.serialize import ToPickle

    evil = Canary(path)
    warning = {"message": pickle.dumps(evil), "category": pickle.dumps(evil)}
    stream = dask_worker.batched_stream
    stream.send({"op": "log-event", "topic": "warn", "msg": warning})
    stream.send({"op": "log-event", "topic": "dualscope", "msg": ToPickle(evil)})
    tried = {
        "run_function": {"function": pickle.dumps(evil), "wait": True},
        "feed": {"function": pickle.dumps(evil)},
        "register_scheduler_plugin": {"plugin": pickle.dumps(evil), "name": "x"},
    }
    security = dask_worker.security.get_connection_args("worker")
    for op, message in tried.items():
        async with rpc(dask_worker.scheduler.address, connection_args=security) as scheduler:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(getattr(scheduler, op)(**message), 5)
    return len(tried)


def test_no_pickle_of_a_worker_is_opened_by_a_scheduler_of_ours(tmp_path, plan, shared):
    said = []
    shared.site.client.subscribe_topic(TOPIC, said.append)
    canary = tmp_path / "canary"
    assert set(shared.site.client.run(_attack, str(canary)).values()) == {3}
    until(lambda: any("not opened" in str(event) for event in said), "the event is not heard")
    assert os.getpid() not in sung(canary)
    run_volume(tmp_path / "one", plan)
    with VolumeFolder.create(tmp_path / "v", plan) as folder:
        list(ClusterRun(folder, shared))
    assert np.array_equal(images(tmp_path / "v"), images(tmp_path / "one"))
    with contextlib.suppress(AttributeError):  # Dask has its own way with exceptions
        pickle.loads(pickle.dumps(Canary(canary)))
    assert os.getpid() in sung(canary), "the trap works"
