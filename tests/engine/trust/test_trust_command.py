"""``dualscope trust``: what it writes, how it stops, and the study that comes with it."""

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from recorded_runs import record_run, save_disc

from engine.cli import main
from engine.physics.phantoms import brain_mr
from engine.runs.certificate import certify
from engine.runs.prepare import prepare
from engine.runs.rerun import run_again
from engine.spec.control import RunControl
from engine.spec.errors import StepFailed
from engine.spec.job import Job
from engine.workflows.trust import words
from engine.workflows.trust.assess import assess, noise_weights
from engine.workflows.trust.study import CONTRAST_HU, SCANS, SIZE, study_figure, study_scan

SMALL = {"options": {"unit": "hu"}, "prior": "gaussian", "settings": {"nfe": 3}}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_disc(Path("disc.npy"))


def recorded(**job):
    return record_run(Path("r.json"), "dc-pnpdp", **{"input": "disc.npy", **SMALL, **job})


def test_the_maps_and_numbers_of_a_ct(capsys):
    acquisition = {"views": 12, "gaussian_noise": 0.01}
    image = recorded(acquisition=acquisition)
    assert main(["trust", "r.json", "-o", "t", "--seeds", "3"]) == 0
    maps = {n: np.load(f"t/{n}.npy") for n in ("measured", "guessed", "spread", "pull")}
    assert {m.shape for m in maps.values()} == {(48, 48)}
    assert np.allclose(maps["measured"] + maps["guessed"], image[0], atol=0.01)
    assert maps["pull"].min() >= 0
    said = json.loads(Path("t/trust.json").read_text())
    assert said["same_bits_as_recorded"] is True
    assert said["spread"]["seeds"] == [3, 4, 5]
    assert said["unit"] == "HU"
    for name, sentences in words.ALL.items():
        assert said[name]["cannot_tell"] == sentences.cannot_tell
    assert said["certificate"]["slices"][0]["says"][0] in capsys.readouterr().out
    for name in ("guessed", "spread", "pull", "trust"):
        assert Image.open(f"t/{name}.png").mode == "RGB"
    assert main(["trust", "r.json", "-o", "t"]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_the_spread_is_that_of_separate_runs_on_the_same_measurement():
    job = {"input": "disc.npy", "acquisition": {"views": 12, "gaussian_noise": 0.05}, **SMALL}
    prepared = prepare(Job.from_dict({**job, "seed": 5, "device": "cpu"}))
    found = assess(prepared, 3, 3, RunControl())
    samples = []
    for seed in (5, 6, 7):
        again = prepare(Job.from_dict({**job, "seed": seed, "device": "cpu"}), prepared.dataset)
        again.problem = prepared.problem
        samples.append(assess(again, 3, 1, RunControl()).image)
    assert np.allclose(found.spread.sd, np.std(samples, axis=0, ddof=1), atol=1e-3)
    assert found.spread.sd.max() > 0


def test_mr_parts_are_complex_and_add_up_to_the_magnitude():
    np.save("mr.npy", brain_mr(seed=1, size=64).image)
    image = recorded(input="mr.npy", options={}, acquisition={"acceleration": 4.0})
    assert main(["trust", "r.json", "-o", "t", "--seeds", "1", "--quiet"]) == 0
    whole = np.load("t/measured.npy") + np.load("t/guessed.npy")
    assert np.iscomplexobj(whole)
    assert np.allclose(np.abs(whole), image[0], atol=1e-4 * image.max())
    assert not Path("t/spread.npy").exists()


def test_a_cancelled_assessment_keeps_the_seeds_that_are_done():
    job = {"input": "disc.npy", "acquisition": {"views": 12}, "device": "cpu", **SMALL}
    prepared, control = prepare(Job.from_dict(job)), RunControl()

    def stop_in_the_third(done, share, word):
        if done == 2:
            control.cancel()

    found = assess(prepared, 3, 8, control, progress=stop_in_the_third)
    assert (found.spread.count, found.complete) == (2, False)
    assert assess(prepared, 3, 8, control) is None


def test_a_later_seed_that_fails_costs_only_itself(monkeypatch):
    job = {"input": "disc.npy", "acquisition": {"views": 12}, "device": "cpu", **SMALL}
    prepared = prepare(Job.from_dict(job))

    monkeypatch.setattr("engine.workflows.trust.assess.run_again", failing_from(2))
    found = assess(prepared, 3, 5, RunControl())
    assert (found.spread.count, found.complete) == (2, False)
    assert "Seed 2: The denoiser produced NaN" in found.spread_sentence()


def failing_from(seed):
    """The real thing, until a seed whose denoiser breaks."""

    def again(prepared, until, control, tick, number):
        if number >= seed:
            raise StepFailed("denoiser", 2, "produced NaN")
        return run_again(prepared, until, control, tick, number)

    return again


def test_it_stops_early_when_the_map_has_settled():
    job = {"input": "disc.npy", "acquisition": {"views": 12}, "device": "cpu", **SMALL}
    found = assess(prepare(Job.from_dict(job)), 3, 20, RunControl(), below=1e6)
    assert (found.spread.count, found.settled, found.complete) == (4, True, True)
    assert "settled" in found.spread_sentence()


def test_unweighted_photon_data_are_still_judged_ray_by_ray():
    acquisition = {"views": 12, "photons": 1e5, "weighted": False}
    job = {"input": "disc.npy", **SMALL, "acquisition": acquisition, "device": "cpu"}
    job["options"] = {"unit": "hu", "pixel_mm": 6.0}  # thick enough for rays to differ
    prepared = prepare(Job.from_dict(job))
    problem = prepared.problem
    (blind,) = certify(problem, problem.reference)
    (aware,) = certify(problem, problem.reference, noise_weights(prepared))
    assert blind.reduced > 1.2
    assert aware.reduced == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["none.json", "-o", "t"], "none.json"),
        (["-o", "t"], "RUN.json is missing"),
        (["r.json", "-o", "t", "--seeds", "0"], "--seeds"),
        (["r.json", "-o", "t", "--stop-below", "0"], "--stop-below"),
        (["r.json", "-o", "t", "--study"], "leave RUN.json"),
    ],
)
def test_a_wrong_request_is_one_sentence(options, said, capsys):
    assert main(["trust", *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_study_tells_the_seen_change_from_the_unseen_one(monkeypatch):
    monkeypatch.setattr("engine.workflows.trust.split.MOST_STEPS", 150)  # near enough for this
    settings = {"nfe": 3, "cg_iterations": 30}
    found = study_scan(SCANS[0], 2, RunControl(), lambda s, w: None, "gaussian", settings)
    rows = {row["change"]: row for row in found.rows}
    false, unseen = rows["false lesion inserted"], rows["unseen part of a false lesion"]
    assert SCANS[0].false.contrast(CONTRAST_HU * SCANS[0].false.cover(SIZE)) > 40
    assert false["evidence_sd"] > 50 > 1 > unseen["evidence_sd"]
    assert false["chi2_after"] > false["chi2_before"] + 0.5
    assert unseen["chi2_after"] == pytest.approx(unseen["chi2_before"], abs=0.01)
    assert unseen["null_share"] > 0.9 > 0.5 > false["null_share"]
    seen, hidden = (
        found.images[f"correction: {name}"] for name in (false["change"], unseen["change"])
    )
    assert SCANS[0].false.contrast(seen - hidden) < -0.3 * CONTRAST_HU
    assert Image.open(BytesIO(study_figure([found]))).mode == "RGB"
