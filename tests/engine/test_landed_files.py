"""Files that version 0.2.0 wrote, before the engine had rooms: they open, resume and repeat."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from app.workspace.reading import read_workspace
from engine.files.checkpoint import Checkpoint
from engine.files.presets import PresetStore
from engine.files.record import RunRecord
from engine.runs.prepare import prepare, recorded_job, resume_run
from engine.spec.control import RunControl
from engine.workflows.trust.verify import verify

LANDED = Path(__file__).parents[1] / "landed"
# of images in units of the prior (1000 HU): processors round differently
CLOSE = 1e-4


@pytest.fixture
def landed(tmp_path):
    return Path(shutil.copytree(LANDED, tmp_path / "landed"))


def finished_in(folder):
    return next((folder / "landed.dualscope.runs").glob("*.json"))


def test_an_interrupted_run_goes_on_to_the_image_it_would_have_had(landed):
    _, run = resume_run(landed / "interrupted.json")
    ks = [iteration.k for iteration in run]
    assert ks == [4, 5, 6]
    image = Checkpoint.read(Checkpoint.path_beside(finished_in(landed))).image
    assert run.image is not None
    assert np.abs(run.image.numpy() - image.numpy()).max() < CLOSE


def test_a_finished_run_made_again_is_the_same(landed):
    found = verify(finished_in(landed), RunControl())
    assert found is not None
    assert found.same or (found.largest is not None and found.largest <= found.tolerance)
    assert found.history < 1e-4


def test_its_settings_mean_what_they_meant(landed):
    record = RunRecord.read(finished_in(landed))
    prepared = prepare(recorded_job(record, "the record"), gate=False)
    now = prepared.settings.to_dict()
    assert {name: now[name] for name in record.job["settings"]} == record.job["settings"]


def test_the_workspace_opens_with_its_run(landed):
    workspace = read_workspace(landed / "landed.dualscope")
    (run,) = workspace.runs
    assert workspace.data is not None
    assert (workspace.data.text, workspace.data.options) == ("demo:ct", {"size": 64})
    assert (run.label, run.note) == ("DC-PnPDP", "a note")
    assert run.record_path.exists()


def test_the_preset_is_offered(landed):
    store = PresetStore(landed / "presets")
    (saved,) = [preset for preset in store.presets("CT") if not preset.built_in]
    assert store.problems == []
    assert saved.name == "Twelve views"
    assert saved.settings == {"nfe": 6, "paired_below": 0.25}
