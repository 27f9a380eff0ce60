"""A volume by several workers: the same bits, whoever dies, and nothing told but numbers."""

import dataclasses
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from volume_runs import images, plan_of, run_volume, small_job, small_stack, stored_numbers

from engine.priors.catalogue import prior_file
from engine.spec.control import RunControl
from engine.spec.errors import RequestError
from engine.workflows.cluster import pulse
from engine.workflows.cluster.run import ClusterRun
from engine.workflows.volume.folder import VolumeFolder
from engine.workflows.volume.reconstruct import Begun, Stored, WorkerState


@pytest.fixture
def plan(tmp_path):
    return plan_of(small_job(small_stack(tmp_path / "in.npy", count=8)), batch=2)


@pytest.fixture
def long_plan(tmp_path):
    """Slices that take a while."""
    stack = small_stack(tmp_path / "in.npy", count=6)
    return plan_of(small_job(stack, settings={"nfe": 60}), batch=1)


def compute(path, plan, where, control=None, watch=None):
    with VolumeFolder.create(path, plan) as folder:
        run, events = ClusterRun(folder, where, control=control), []
        for event in run:
            events.append(event)
            if watch:
                watch(event)
    return run, events


def pids(site):
    """Of the workers that are there, by name."""
    found = site.client.run(_name_and_process, on_error="ignore")
    return dict(found.values())


def _name_and_process(dask_worker):
    return str(dask_worker.name), os.getpid()


def test_the_result_is_that_of_one_process_bit_for_bit(tmp_path, plan, shared):
    run_volume(tmp_path / "one", plan)
    run, events = compute(tmp_path / "two", plan, shared)
    assert run.status == "done"
    assert sorted(stored_numbers(events)) == list(range(8))
    assert [e.done for e in events if isinstance(e, Stored)] == list(range(1, 9))
    assert np.array_equal(images(tmp_path / "one"), images(tmp_path / "two"))
    one, two = (VolumeFolder.open(tmp_path / name).read(5) for name in ("one", "two"))
    assert torch.equal(one.reference, two.reference)
    assert (one.intensity, one.metrics, one.residual) == (two.intensity, two.metrics, two.residual)
    states = [e for e in events if isinstance(e, WorkerState)]
    assert {state.name for state in states} == {"0", "1"}
    assert sum(max(s.slices for s in states if s.name == name) for name in ("0", "1")) == 8
    assert all(state.memory_bytes > 0 for state in states[-2:])


def test_mr_slices_with_coil_maps_travel_as_well(tmp_path, shared):
    job = small_job(
        small_stack(tmp_path / "in.npy", count=2),
        options={"modality": "mr", "pixel_mm": 1.0},
        acquisition={"acceleration": 3, "coils": 2},
    )
    plan = plan_of(job)
    run_volume(tmp_path / "one", plan)
    compute(tmp_path / "two", plan, shared)
    assert np.array_equal(images(tmp_path / "one"), images(tmp_path / "two"))


def test_a_worker_killed_twice_costs_nothing_but_time(tmp_path, long_plan, shared):
    run_volume(tmp_path / "undisturbed", long_plan)
    killed = []

    def kill(event):
        """Worker 0, as soon as it has something, and its successor; both are waited for."""
        has_work = isinstance(event, WorkerState) and event.state == "computing"
        if not has_work or event.name != "0" or len(killed) == 2:
            return
        pid = pids(shared.site)["0"]
        if pid not in killed:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            while pids(shared.site).get("0", pid) == pid:
                time.sleep(0.1)

    run, events = compute(tmp_path / "v", long_plan, shared, watch=kill)
    assert (run.status, len(killed)) == ("done", 2)
    assert [e.state for e in events if isinstance(e, WorkerState)].count("lost") == 2
    assert np.array_equal(images(tmp_path / "v"), images(tmp_path / "undisturbed"))
    done = set()
    for event in events:
        if isinstance(event, Begun):
            assert not done & set(event.numbers), "a stored slice was computed again"
        elif isinstance(event, Stored):
            done.add(event.result.number)


def test_a_frozen_worker_of_ours_is_replaced(tmp_path, long_plan, shared, monkeypatch):
    """It counts as frozen only when all others are idle, so that nothing depends on speed."""
    monkeypatch.setattr(pulse, "HEARTBEAT_S", float("inf"))
    run_volume(tmp_path / "undisturbed", long_plan)
    frozen, stored = [], []

    def freeze(event):
        stored.extend([event] if isinstance(event, Stored) else [])
        if isinstance(event, WorkerState) and event.state == "computing" and not frozen:
            frozen.append(pids(shared.site)[event.name])
            os.kill(frozen[0], signal.SIGSTOP)
        elif isinstance(event, WorkerState) and event.state == "refused":
            monkeypatch.setattr(pulse, "HEARTBEAT_S", float("inf"))
        elif isinstance(event, Stored) and len(stored) == 4:  # the other two are with the frozen
            monkeypatch.setattr(pulse, "HEARTBEAT_S", 1.0)

    run, events = compute(tmp_path / "v", long_plan, shared, watch=freeze)
    assert run.status == "done"
    notes = {e.note for e in events if isinstance(e, WorkerState) and e.state == "refused"}
    assert len(notes) == 1
    assert "has not been heard of" in notes.pop()
    assert np.array_equal(images(tmp_path / "v"), images(tmp_path / "undisturbed"))
    begun = time.monotonic()
    while Path(f"/proc/{frozen[0]}").exists() or len(pids(shared.site)) < 2:
        assert time.monotonic() - begun < 120, "it is not killed and started again"
        time.sleep(0.1)


def test_cancelling_stops_the_workers_and_keeps_what_is_stored(tmp_path, long_plan, shared):
    control = RunControl()

    def cancel(event):
        if isinstance(event, Stored):
            control.cancel()

    run, _ = compute(tmp_path / "v", long_plan, shared, control, cancel)
    assert run.status == "cancelled"
    kept = VolumeFolder.open(tmp_path / "v").stored
    assert 1 <= len(kept) < 6
    begun = time.monotonic()
    while any(shared.site.client.run(_executing).values()):
        assert time.monotonic() - begun < 120, "a worker goes on"
        time.sleep(0.05)


def _executing(dask_worker):
    return dask_worker.state.executing_count


def test_closing_the_generator_is_cancelling(tmp_path, long_plan, shared):
    with VolumeFolder.create(tmp_path / "v", long_plan) as folder:
        run = ClusterRun(folder, shared)
        events = iter(run)
        next(event for event in events if isinstance(event, Begun))
        events.close()
    assert run.status == "cancelled"


def test_a_request_that_fails_on_a_worker_is_the_same_sentence(tmp_path, shared):
    path = small_stack(tmp_path / "in.npy", count=2)
    stack = np.load(path)
    stack[1, 3, 3] = np.nan
    np.save(path, stack)
    with pytest.raises(RequestError, match="Slice 1: "):
        compute(tmp_path / "v", plan_of(small_job(path)), shared)


def test_another_version_on_the_workers_is_refused_in_a_sentence(tmp_path, plan, shared):
    other = dataclasses.replace(plan, versions={**plan.versions, "torch": "2.12.0"})
    with pytest.raises(RequestError, match=r"No worker can be used \(0: it has torch 2\.1.*2\.12"):
        compute(tmp_path / "v", other, shared)
    absent = dataclasses.replace(plan, device="cuda")
    with pytest.raises(RequestError, match="it has no cuda"):
        compute(tmp_path / "w", absent, shared)


def test_a_network_crosses_once_to_each_worker_and_is_checked(tmp_path, shared, monkeypatch):
    sent, submit = [], shared.site.client.submit

    def counted(function, *arguments, **options):
        plain = [value for value in arguments if isinstance(value, bytes | str)]
        sent.append((function.__name__, sum(map(len, plain))))
        return submit(function, *arguments, **options)

    monkeypatch.setattr(shared.site.client, "submit", counted)
    job = small_job(
        small_stack(tmp_path / "in.npy", count=4), prior="ct-small", settings={"nfe": 1}
    )
    plan = plan_of(job)
    compute(tmp_path / "v", plan, shared)
    large = [name for name, size in sent if size > prior_file("ct-small").stat().st_size // 2]
    assert large == ["bytes"], "the network leaves this process once"
    assert [name for name, _ in sent].count("handshake") == 2
    assert [name for name, _ in sent].count("compute") == 4
    run_volume(tmp_path / "one", plan)
    assert np.array_equal(images(tmp_path / "v"), images(tmp_path / "one"))
