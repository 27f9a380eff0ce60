"""What a client sends to workers, and what it makes of their answers, without any worker."""

import dataclasses
import hashlib
from collections import deque

import pytest
import torch
from volume_runs import plan_of, run_volume, small_job, small_stack

from engine.spec.errors import DualscopeError, OutOfMemory, RequestError
from engine.workflows.cluster.run import MOST_DEATHS, ClusterRun
from engine.workflows.cluster.worker_pool import Given, Member
from engine.workflows.volume.batches import SliceContext
from engine.workflows.volume.compute import Step, compute_batch
from engine.workflows.volume.folder import VolumeFolder
from engine.workflows.volume.plan import VolumePlan
from engine.workflows.volume.reconstruct import Halved
from engine.workflows.volume.slice_file import pack_slice


@pytest.fixture
def plan(tmp_path):
    return plan_of(small_job(small_stack(tmp_path / "in.npy", count=8)), batch=2)


ANSWERS = {
    "a trace": RuntimeError("secret"),
    "no dict": [1],
    "too few": {"slices": []},
    "no bytes": {"slices": ["x", "y"]},
    "no slice": {"slices": [b"x", b"y"]},
    "too much": {"slices": [b"x" * (1 << 22)] * 2},
    "unknown": {"failed": ["?"]},
}


class FakeCrew:
    def __init__(self):
        self.faults = []

    def refuse(self, member, fault):
        self.faults.append(fault)
        return []


@pytest.fixture
def answered(tmp_path, plan):
    """What a run makes of an answer to its first batch: events, refused workers, what waits."""
    folder = VolumeFolder.create(tmp_path / "v", plan)
    run, batch = ClusterRun(folder, None), plan.batches[0]
    given = Given(batch, plan.intensity, {})

    def take(answer):
        crew, waiting = FakeCrew(), deque()
        member = Member("a", "w", "p")
        events = list(run._taken(crew, member, given, answer, waiting))
        return events, crew.faults, list(waiting)

    yield take
    folder.close()


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_hostile_answer_refuses_the_worker_and_is_computed_again(answered, plan, kind):
    events, faults, waiting = answered(ANSWERS[kind])
    assert (events, waiting) == ([], [plan.batches[0]])
    assert faults == ["what it sent for slice 0 to 1 is no such slice"]


@pytest.mark.parametrize("change", ["number", "nan", "image", "shape"])
def test_a_slice_that_is_not_the_one_asked_for_is_refused(tmp_path, answered, plan, change):
    good = compute_batch(plan, plan.batches[0])
    image = good[1].image.clone()
    if change == "number":
        bad = dataclasses.replace(good[1], number=7)
    elif change == "nan":
        image[0, 0, 0] = torch.nan
        bad = dataclasses.replace(good[1], image=image, sha256=sha_of(image))
    elif change == "image":
        bad = dataclasses.replace(good[1], image=image + 1)
    else:
        bad = dataclasses.replace(good[1], image=image[:, 1:], sha256=sha_of(image[:, 1:]))
    assert answered({"slices": [pack_slice(good[0]), pack_slice(bad)]})[1]
    assert not answered({"slices": [pack_slice(result) for result in good]})[1]


def sha_of(image):
    return hashlib.sha256(image.contiguous().numpy().astype("<f4").tobytes()).hexdigest()


def test_failures_of_a_worker_are_ours(answered, plan):
    events, _, waiting = answered({"failed": "memory", "said": ""})
    assert events == [Halved((0, 1))]
    assert [batch.kept for batch in waiting] == [(0,), (1,)]
    with pytest.raises(RequestError, match="Slice 0 to 1: no"):
        answered({"failed": "request", "said": "no"})
    with pytest.raises(DualscopeError, match="Slice 0 to 1: a fault"):
        answered({"failed": "error", "said": "a fault"})


def test_a_single_slice_that_does_not_fit_ends_the_run(tmp_path):
    plan = plan_of(small_job(small_stack(tmp_path / "in.npy", count=1)))
    with VolumeFolder.create(tmp_path / "v", plan) as folder:
        given = Given(plan.batches[0], plan.intensity, {})
        taken = ClusterRun(folder, None)._taken(None, None, given, {"failed": "memory"}, None)
        with pytest.raises(OutOfMemory):
            list(taken)


def test_a_batch_that_kills_every_worker_is_named(tmp_path, plan):
    run = ClusterRun(VolumeFolder.create(tmp_path / "v", plan), None)
    lost = [(plan.batches[1], True)]
    waiting = deque()
    for _ in range(MOST_DEATHS):
        run._again(lost, waiting)
    with pytest.raises(DualscopeError, match="Slice 2 to 3: 4 workers died"):
        run._again(lost, waiting)
    run.folder.close()


def test_no_name_of_a_file_or_patient_crosses(tmp_path, monkeypatch):
    folder = tmp_path / "DOE^JANE-1923"
    folder.mkdir()
    job = small_job(small_stack(folder / "secret-scan.npy", count=2))
    job = dataclasses.replace(job, options={**job.options, "sidecar": None})
    plan, bench = plan_of(job), SliceContext(job)
    parcels = []
    crew = FakeCrew()
    crew.give = lambda member, parcel, given: parcels.append(parcel)
    with VolumeFolder.create(tmp_path / "v", plan) as volume:
        run = ClusterRun(volume, None, bench)
        for batch in plan.batches:
            list(run._give(crew, None, batch))
    assert len(parcels) == 2
    for parcel in parcels:
        for word in (b"DOE", b"JANE", b"secret", b"npy", str(tmp_path).encode(), b"sidecar"):
            assert word not in parcel
        assert plan.input_sha256.encode() not in parcel
        matrix_free = 6 * 64 * 64 * 4
        assert len(parcel) < matrix_free, "the system matrix does not travel"
    assert VolumePlan.from_dict(plan.to_dict()).job.input.endswith("secret-scan.npy")


def test_progress_of_other_runs_is_not_ours(tmp_path, plan):
    with VolumeFolder.create(tmp_path / "v", plan) as folder:
        run = ClusterRun(folder, None)
        for message in ("x", {}, {"run": "other", "numbers": [1], "k": 1, "K": 2}):
            run._on_report((0.0, message))
        run._on_report((0.0, {"run": run._id, "numbers": ["?"], "k": 1, "K": 2}))
        assert not run._steps
        run._on_report((0.0, {"run": run._id, "numbers": [3], "k": 1, "K": 2}))
        assert list(run._steps) == [Step((3,), 1, 2)]


def test_nothing_to_do_starts_nobody(tmp_path, plan):
    run_volume(tmp_path / "v", plan)
    with VolumeFolder.create(tmp_path / "v", plan) as folder:
        assert list(ClusterRun(folder, None)) == []
