"""Workspaces, run records and presets with damage: read or refused, and nothing else happens."""

import json

import fuzz_files
import pytest
from fuzz_cases import PART, run_cases
from mutations import damaged_json

from app.workspace.file import SUFFIX, runs_folder, write_workspace
from app.workspace.reading import read_workspace
from app.workspace.restore import restore_runs
from engine.files.presets import PresetStore
from engine.files.record import RunRecord, shared_record
from engine.files.run_library_entry import read_entry
from engine.runs.prepare import resume_run
from engine.solvers.catalogue import find_solver
from engine.spec.acquisition import CTAcquisition
from engine.spec.errors import RequestError
from engine.spec.job import Job


def parts(count):
    return [range(start, start + PART) for start in range(0, count, PART)]


@pytest.fixture
def runs(room):
    """The folder of a workspace's runs with one good run in it, and what its record says."""
    folder = runs_folder(room.target / f"w{SUFFIX}")
    folder.mkdir()
    body = fuzz_files.record(folder)
    (folder / "disc.npy").replace(room.target / "disc.npy")
    body["job"]["input"] = body["input"]["name"] = str(room.target / "disc.npy")
    return folder, body


@pytest.mark.parametrize("seeds", parts(2500), ids=str)
def test_workspaces(room, runs, seeds, counted):
    path, good = room.target / f"w{SUFFIX}", fuzz_files.workspace()
    (runs[0] / f"{fuzz_files.RUN}.json").write_text(json.dumps(runs[1]))

    def use(rng):
        found = read_workspace(path)
        write_workspace(path.with_name(f"again{SUFFIX}"), found)
        if rng.random() < 0.25:
            restore_runs(path, workspace=found)

    content = json.dumps(good).encode()
    counts = run_cases(room, seeds, path, content, lambda rng: damaged_json(good, rng), use)
    counted("workspaces", counts)


@pytest.mark.parametrize("seeds", parts(3000), ids=str)
def test_records(room, runs, seeds, counted):
    folder, good = runs
    path = folder / f"{fuzz_files.RUN}.json"

    def use(rng):
        read_entry(path, running=False)
        record = RunRecord.read(path)
        Job.from_dict(record.job)
        shared_record(record.content(), deidentify=True)
        if rng.random() < 0.4:
            restore_runs(path)
        if rng.random() < 0.2:
            resume_run(path)

    content = json.dumps(good).encode()
    counts = run_cases(room, seeds, path, content, lambda rng: damaged_json(good, rng), use)
    counted("records", counts)


@pytest.mark.parametrize("seeds", parts(1500), ids=str)
def test_presets(room, seeds, counted):
    store, saved = PresetStore(room.target), PresetStore(room.target / "saved")
    good = fuzz_files.preset()

    def use(rng):
        found = [p for m in ("CT", "MR") for p in store.presets(m) if not p.built_in]
        if store.problems:
            raise RequestError(store.problems[0])
        for preset in found:
            find_solver(str(preset.solver)).settings_class.from_dict(preset.settings)
            CTAcquisition.from_dict(preset.acquisition)
            saved.save(preset)

    content, path = json.dumps(good).encode(), room.target / "mine.json"
    counts = run_cases(room, seeds, path, content, lambda rng: damaged_json(good, rng), use)
    counted("presets", counts)
