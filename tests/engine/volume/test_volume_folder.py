"""A volume's folder keeps what is finished, and knows whose it is."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from fault_injection import FULL, watched
from volume_runs import images, plan_of, run_volume, small_job, small_stack, stored_numbers

from engine.runs.prepare import make_run, prepare
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, OutOfMemory, RequestError
from engine.workflows.volume import compute
from engine.workflows.volume.batches import Batch, divide, halves
from engine.workflows.volume.compute import Step, compute_batch
from engine.workflows.volume.folder import JOURNAL, PLAN, VolumeFolder
from engine.workflows.volume.plan import VolumePlan
from engine.workflows.volume.reconstruct import Halved, VolumeRun
from engine.workflows.volume.slice_file import slice_name


@pytest.fixture
def job(tmp_path):
    return small_job(small_stack(tmp_path / "in.npy"))


@pytest.fixture
def plan(job):
    return plan_of(job)


def test_batches_cover_the_slices_and_halos_stay_inside():
    whole = divide(range(10), 4, halo=2)
    assert [b.kept for b in whole] == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9)]
    assert whole[1].computed == (2, 3, 4, 5, 6, 7, 8, 9)
    assert whole[2].computed == (6, 7, 8, 9)
    first, second = halves(whole[1], tuple(range(10)), halo=2)
    assert (first.kept, second.kept) == ((4, 5), (6, 7))
    assert first.computed == (2, 3, 4, 5, 6, 7)


def test_a_plan_survives_json(plan):
    assert VolumePlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert plan.job.settings["rho"] is None  # every setting is there, not only those typed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("numbers", [0, 1, 1, 2, 3]),
        ("numbers", "01234"),
        ("numbers", [-1, 1, 2, 3, 4]),
        ("batches", [{"computed": [0], "kept": [0, 1, 2, 3, 4]}]),
        ("batches", None),
        ("threads", 10**9),
        ("threads", True),
        ("image_shape", [1, 64]),
        ("image_shape", [1, 64, 10**9]),
        ("intensity", {"kind": "hu", "scale": "much"}),
        ("job", {"input": 7}),
        ("modality", "PET"),
        ("versions", []),
    ],
)
def test_a_hostile_plan_is_refused_in_a_sentence(plan, name, value):
    with pytest.raises(RequestError, match="cannot be used"):
        VolumePlan.from_dict({**plan.to_dict(), name: value})


def test_a_slice_of_a_volume_is_the_slice_reconstructed_alone(tmp_path, job, plan):
    events = run_volume(tmp_path / "v", plan)
    assert stored_numbers(events) == [0, 1, 2, 3, 4]
    with compute.planned_threads(1):
        run = make_run(prepare(dataclasses.replace(job, slices="3")))
        list(run)
    result = VolumeFolder.open(tmp_path / "v").read(3)
    assert torch.equal(result.image, run.image[0])
    assert result.nfe == 3
    assert result.metrics["psnr"] == pytest.approx(run.record.metrics["ct-dcpnpdp"]["psnr"])
    assert result.residual == pytest.approx(float(run.last.residual_z[0]), rel=1e-5)


def test_cancelling_keeps_what_is_stored_and_the_rest_follows(tmp_path, plan):
    control = RunControl()
    with VolumeFolder.create(tmp_path / "v", plan) as folder:
        run = VolumeRun(folder, control=control)
        for event in run:
            if isinstance(event, Step) and event.numbers == (2,) and event.k == 2:
                control.cancel()
        assert run.status == "cancelled"
        assert folder.stored == {0, 1}
    assert stored_numbers(run_volume(tmp_path / "v", plan)) == [2, 3, 4]
    run_volume(tmp_path / "undisturbed", plan)
    assert np.array_equal(images(tmp_path / "v"), images(tmp_path / "undisturbed"))
    assert run_volume(tmp_path / "v", plan) == []


@pytest.mark.parametrize("damage", ["cut", "changed", "swapped", "empty", "folder"])
def test_a_damaged_slice_is_computed_again(tmp_path, plan, damage):
    run_volume(tmp_path / "v", plan)
    good = images(tmp_path / "v")
    path = tmp_path / "v" / slice_name(2)
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        path.write_bytes(content[:-20000] + bytes([content[-20000] ^ 1]) + content[-19999:])
    elif damage == "swapped":
        path.write_bytes((tmp_path / "v" / slice_name(1)).read_bytes())
    elif damage == "empty":
        path.touch()
    else:
        path.mkdir()
        with pytest.raises(DualscopeError, match=path.name):  # not ours to remove
            run_volume(tmp_path / "v", plan)
        return
    assert stored_numbers(run_volume(tmp_path / "v", plan)) == [2]
    assert np.array_equal(images(tmp_path / "v"), good)


def test_memory_running_out_halves_the_batch_and_says_so(tmp_path, job, monkeypatch):
    plan, real = plan_of(job, batch=4), compute.make_run

    def scarce(prepared, **options):
        if len(prepared.problem.slices) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(prepared, **options)

    monkeypatch.setattr(compute, "make_run", scarce)
    events = run_volume(tmp_path / "v", plan)
    assert stored_numbers(events) == [0, 1, 2, 3, 4]
    assert [e.numbers for e in events if isinstance(e, Halved)] == [(0, 1, 2, 3), (0, 1), (2, 3)]
    folder = VolumeFolder.open(tmp_path / "v")
    assert [batch.kept for batch in folder.division] == [(0,), (1,), (2,), (3,), (4,)]
    assert folder.plan == plan
    monkeypatch.setattr(compute, "make_run", real)
    (tmp_path / "v" / slice_name(1)).unlink()
    assert stored_numbers(run_volume(tmp_path / "v", plan)) == [1]  # divided as it was


def test_a_single_slice_that_does_not_fit_is_a_sentence(tmp_path, plan, monkeypatch):
    def scarce(prepared, **options):
        raise OutOfMemory

    run_volume(tmp_path / "v", plan)
    (tmp_path / "v" / slice_name(4)).unlink()
    monkeypatch.setattr(compute, "make_run", scarce)
    with pytest.raises(OutOfMemory):
        run_volume(tmp_path / "v", plan)
    assert VolumeFolder.open(tmp_path / "v").stored == {0, 1, 2, 3}


def test_another_volume_in_the_folder_is_refused_by_what_differs(tmp_path, job, plan):
    run_volume(tmp_path / "v", plan)
    other = plan_of(dataclasses.replace(job, seed=1))
    with pytest.raises(RequestError, match="seed 1 instead of 0"):
        VolumeFolder.create(tmp_path / "v", other)
    with pytest.raises(RequestError, match="views 9 instead of 8"):
        VolumeFolder.create(tmp_path / "v", plan_of(small_job(job.input, acquisition={"views": 9})))
    with pytest.raises(RequestError, match="nfe 4 instead of 3"):
        VolumeFolder.create(tmp_path / "v", plan_of(small_job(job.input, settings={"nfe": 4})))
    with pytest.raises(RequestError, match="threads 2 instead of 1"):
        VolumeFolder.create(tmp_path / "v", plan_of(job, threads=2))
    np.save(job.input, np.load(job.input) + 1)
    with pytest.raises(RequestError, match="input sha256"):
        VolumeFolder.create(tmp_path / "v", plan_of(job))


def test_what_was_not_asked_for_is_as_it_was_stored(tmp_path, job):
    plan = plan_of(job, batch=2, threads=3)
    run_volume(tmp_path / "v", plan)
    stored = VolumeFolder.open(tmp_path / "v").plan
    assert plan_of(job, batch=None, threads=None, stored=stored) == plan


def test_two_processes_do_not_share_a_folder(tmp_path, plan):
    with (
        VolumeFolder.create(tmp_path / "v", plan),
        pytest.raises(RequestError, match="in use"),
    ):
        VolumeFolder.create(tmp_path / "v", plan)
    VolumeFolder.create(tmp_path / "v", plan).close()


def test_a_folder_with_other_things_is_left_alone(tmp_path, plan):
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "thesis.txt").write_text("mine")
    with pytest.raises(RequestError, match=r"other things \(thesis.txt\)"):
        VolumeFolder.create(tmp_path / "v", plan)


def test_a_folder_whose_maker_died_before_its_plan_is_taken_over(tmp_path, plan):
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / f".{PLAN}.x1.partial").write_text("{")
    assert stored_numbers(run_volume(tmp_path / "v", plan)) == [0, 1, 2, 3, 4]
    assert not list((tmp_path / "v").glob(".*"))


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": "dualscope-volume"}', '{"plan": 3', "[" * 99999]
)
def test_a_broken_plan_file_is_refused_in_a_sentence(tmp_path, plan, text):
    run_volume(tmp_path / "v", plan)
    (tmp_path / "v" / PLAN).write_text(text)
    with pytest.raises(RequestError, match=PLAN):
        VolumeFolder.create(tmp_path / "v", plan)


def test_a_full_disk_is_a_sentence_and_loses_nothing(tmp_path, plan):
    def strike(kind, path):
        if kind == "write" and slice_name(3) in str(path):
            raise OSError(FULL, "No space left on device")

    with watched(tmp_path / "v", strike), pytest.raises(DualscopeError, match="No space left"):
        run_volume(tmp_path / "v", plan)
    assert VolumeFolder.open(tmp_path / "v").stored == {0, 1, 2}
    assert stored_numbers(run_volume(tmp_path / "v", plan)) == [3, 4]
    assert not list((tmp_path / "v").glob(".*"))


def test_a_deidentified_volume_does_not_name_its_input(tmp_path, job):
    plan = plan_of(dataclasses.replace(job, deidentify=True))
    run_volume(tmp_path / "v", plan)
    assert "in.npy" not in (tmp_path / "v" / PLAN).read_text()
    assert run_volume(tmp_path / "v", plan) == []


def test_the_journal_tells_what_was_begun_and_stored(tmp_path, plan):
    run_volume(tmp_path / "v", plan)
    path = tmp_path / "v" / JOURNAL
    path.write_bytes(path.read_bytes()[:-9])  # as a power cut may leave it
    (tmp_path / "v" / slice_name(1)).unlink()
    run_volume(tmp_path / "v", plan)
    entries = VolumeFolder.open(tmp_path / "v").journal()
    told = [(entry["what"], entry["slice"]) for entry in entries]
    written = [(what, n) for n in range(5) for what in ("start", "stored")]
    assert told == [*written[:-1], ("start", 1), ("stored", 1)]


def test_a_worker_needs_the_plan_alone(plan):
    steps = []
    (result,) = compute_batch(plan, Batch((2,), (2,)), on_step=steps.append)
    assert result.number == 2
    assert steps == [Step((2,), k, 3) for k in (1, 2, 3)]


def test_a_blank_slice_at_the_end_is_no_error(tmp_path):
    path = small_stack(tmp_path / "in.npy", count=2)
    np.save(path, np.concatenate([np.load(path), np.full((1, 64, 64), -1000, np.float32)]))
    events = run_volume(tmp_path / "v", plan_of(small_job(path)))
    assert stored_numbers(events) == [0, 1, 2]
    blank = VolumeFolder.open(tmp_path / "v").read(2)
    assert blank.metrics == {}
    assert blank.reference is not None


def test_an_error_names_the_slice(tmp_path):
    path = small_stack(tmp_path / "in.npy", count=2)
    stack = np.load(path)
    stack[1, 3, 3] = np.nan
    np.save(path, stack)
    with pytest.raises(RequestError, match="Slice 1: "):
        run_volume(tmp_path / "v", plan_of(small_job(path)))
