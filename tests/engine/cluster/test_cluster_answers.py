"""What a client sends to workers, and what it makes of their answers, without any worker."""

import contextlib
import dataclasses
import hashlib
import hmac
from collections import deque

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from volume_runs import plan_of, run_volume, small_job, small_stack

from engine.spec.errors import DualscopeError, OutOfMemory, RequestError
from engine.workflows.cluster import run
from engine.workflows.cluster.answers import (
    ERROR,
    MEMORY,
    REQUEST,
    SLICES,
    pack_answer,
    unpack_answer,
)
from engine.workflows.cluster.compute_targets import LocalWorkers
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


KEY, PARCEL = bytes(32), b"a parcel"


def sealed(*parts, kind=SLICES, key=KEY, parcel=PARCEL):
    return pack_answer(kind, list(parts), key, parcel)


ANSWERS = {
    "a trace": RuntimeError("secret"),
    "no bytes": [1],
    "nothing": b"",
    "too few": sealed(),
    "no slice": sealed(b"x", b"y"),
    "too much": sealed(b"x" * (1 << 22), b""),
    "unknown": sealed(kind=9),
    "another key": sealed(b"x", b"y", key=bytes(31) + b"1"),
    "another parcel's": sealed(b"x", b"y", parcel=b"another"),
    "cut short": sealed(b"x", b"y")[:-1],
    "lengths": pack_answer(SLICES, [], KEY, PARCEL)[:-32].replace(b"\0\0\0\0", b"\xff" * 4)
    + b"?" * 32,
}


def given_of(plan):
    return Given(plan.batches[0], plan.intensity, {}, KEY, hashlib.sha256(PARCEL).digest())


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
    this, handed = ClusterRun(folder, LocalWorkers(1, check_every=0)), given_of(plan)

    def take(answer):
        crew, waiting = FakeCrew(), deque()
        member = Member("a", "w", "p")
        events = list(this._taken(crew, member, handed, answer, waiting))
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
    assert answered(sealed(pack_slice(good[0]), pack_slice(bad)))[1]
    assert not answered(sealed(*map(pack_slice, good)))[1]


@given(st.binary(max_size=200), st.integers(0, 99))
def test_no_bytes_but_a_sealed_answer_are_taken(noise, at):
    """Noise of all kinds, also sealed as it should be: lengths and counts are checked, too."""
    sha256 = hashlib.sha256(PARCEL).digest()
    for content in (noise, sealed(noise, noise)[:-32]):
        spoiled = content[:at] + noise[:3] + content[at + 3 :]
        seal = hmac.digest(KEY, sha256 + spoiled, hashlib.sha256)
        with contextlib.suppress(ValueError):
            kind, parts = unpack_answer(spoiled + seal, KEY, sha256)
            assert pack_answer(kind, parts, KEY, PARCEL) == spoiled + seal
        if content != spoiled:
            with pytest.raises(ValueError, match="answer"):
                unpack_answer(spoiled + sealed(noise, noise)[-32:], KEY, sha256)


def sha_of(image):
    return hashlib.sha256(image.contiguous().numpy().astype("<f4").tobytes()).hexdigest()


def test_failures_of_a_worker_are_ours(answered, plan):
    events, _, waiting = answered(sealed(kind=MEMORY))
    assert events == [Halved((0, 1))]
    assert [batch.kept for batch in waiting] == [(0,), (1,)]


@pytest.mark.parametrize("kind", [REQUEST, ERROR])
def test_a_worker_that_fails_where_this_computer_does_not_is_refused(answered, kind):
    """And what it says cannot colour a terminal."""
    events, faults, waiting = answered(sealed("\x1b[31mred\u202e\n".encode() + b"\xff", kind=kind))
    assert [event.result.number for event in events] == [0, 1]
    assert waiting == []
    assert faults[0].isprintable()
    assert "red" in faults[0]


def test_what_fails_here_too_ends_the_run(answered, monkeypatch):
    def fails(*_):
        raise RequestError("no")

    monkeypatch.setattr(run, "compute_batch", fails)
    with pytest.raises(RequestError, match="Slice 0 to 1: no"):
        answered(sealed(b"no", kind=REQUEST))


def test_a_worker_whose_bits_differ_loses_all_its_slices(tmp_path, plan):
    good = compute_batch(plan, plan.batches[0])
    image = good[1].image + 1
    bad = [good[0], dataclasses.replace(good[1], image=image, sha256=sha_of(image))]
    crew, waiting, member = FakeCrew(), deque(), Member("a", "w", "p")
    with VolumeFolder.create(tmp_path / "v", plan) as folder:
        this = ClusterRun(folder, LocalWorkers(1, check_every=1))
        earlier = compute_batch(plan, plan.batches[2])
        folder.store(earlier)
        member.done.append(plan.batches[2])
        events = list(
            this._taken(crew, member, given_of(plan), sealed(*map(pack_slice, bad)), waiting)
        )
        assert len(crew.faults) == 1
        assert waiting == deque([plan.batches[2]])
        assert folder.stored == {0, 1}
        assert [event.result.sha256 for event in events] == [good[0].sha256, good[1].sha256]
    assert VolumeFolder.open(tmp_path / "v").stored == {0, 1}


def test_a_single_slice_that_does_not_fit_ends_the_run(tmp_path):
    plan = plan_of(small_job(small_stack(tmp_path / "in.npy", count=1)))
    with VolumeFolder.create(tmp_path / "v", plan) as folder:
        this, answer = ClusterRun(folder, None), sealed(kind=MEMORY)
        taken = this._taken(None, None, given_of(plan), answer, None)
        with pytest.raises(OutOfMemory):
            list(taken)


def test_a_batch_that_kills_every_worker_is_named(tmp_path, plan):
    this = ClusterRun(VolumeFolder.create(tmp_path / "v", plan), None)
    lost = [(plan.batches[1], True)]
    waiting = deque()
    for _ in range(MOST_DEATHS):
        this._again(lost, waiting)
    with pytest.raises(DualscopeError, match="Slice 2 to 3: 4 workers died"):
        this._again(lost, waiting)
    this.folder.close()


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
        this = ClusterRun(volume, None, bench)
        for batch in plan.batches:
            list(this._give(crew, None, batch))
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
        this = ClusterRun(folder, None)
        for message in ("x", {}, {"run": "other", "numbers": [1], "k": 1, "K": 2}):
            this._on_report((0.0, message))
        this._on_report((0.0, {"run": this._id, "numbers": ["?"], "k": 1, "K": 2}))
        assert not this._steps
        this._on_report((0.0, {"run": this._id, "numbers": [3], "k": 1, "K": 2}))
        assert list(this._steps) == [Step((3,), 1, 2)]


def test_nothing_to_do_starts_nobody(tmp_path, plan):
    run_volume(tmp_path / "v", plan)
    with VolumeFolder.create(tmp_path / "v", plan) as folder:
        assert list(ClusterRun(folder, None)) == []
