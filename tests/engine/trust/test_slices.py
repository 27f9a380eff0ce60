"""One slice of a run is judged as it is among the others."""

import numpy as np
import pytest
from recorded_runs import record_run

from engine.runs.reopen import Rebuilder
from engine.runs.rerun import run_again
from engine.spec.control import RunControl
from engine.spec.errors import RequestError
from engine.workflows.trust.assess import conclude, noise_weights
from engine.workflows.trust.slices import certificate, open_slice, pull, split, spread
from engine.workflows.trust.split import Spread

SETTINGS = {"nfe": 3, "cg_iterations": 3}
CASES = {
    "CT": ({"unit": "hu"}, {"views": 12, "photons": 1e4}),
    "MR": ({"kind": "image", "modality": "mr"}, {"coils": 3, "kspace_noise": 0.01}),
}


def images(modality):
    """Two discs: of tissue in air, or of a bright signal in nothing."""
    rows, columns = np.mgrid[-1:1:48j, -1:1:48j]
    inside, outside = (40.0, -1000.0) if modality == "CT" else (1.0, 0.0)
    return np.stack([np.where(rows**2 + columns**2 < r, inside, outside) for r in (0.6, 0.3)])


@pytest.fixture(params=CASES)
def recorded(request, tmp_path):
    """A record of two slices, and what is true of both together."""
    options, acquisition = CASES[request.param]
    np.save(tmp_path / "two.npy", images(request.param).astype(np.float32))
    job = {"input": str(tmp_path / "two.npy"), "options": options, "acquisition": acquisition}
    path = tmp_path / "r.json"
    record_run(path, "dc-pnpdp", SETTINGS, slices="0:2", **job)
    prepared = Rebuilder().rebuild(path, job).prepared
    made = run_again(prepared, 3, RunControl())
    assert made is not None
    return path, job, conclude(made, Spread(), 1, None, noise_weights(prepared))


def quiet(share, words):
    assert 0 <= share <= 1
    assert words


def test_the_second_slice_alone_is_the_second_slice_of_both(recorded):
    path, job, both = recorded
    run = open_slice(path, job, 1)
    parts = split(run, RunControl(), quiet).maps
    scale = np.abs(both.image).max()
    signed = both.guessed()[1] if np.isrealobj(both.guessed()) else np.abs(both.guessed()[1])
    assert np.allclose(parts["guessed"], signed, atol=1e-3 * scale)
    own, among = certificate(run).certificate, both.certificates[1]
    assert own.reduced == pytest.approx(among.reduced, rel=1e-4)
    values = [np.array(one.parts, dtype=float) for one in (own, among)]
    assert np.allclose(*values, rtol=1e-3, equal_nan=True)
    assert np.allclose(pull(run, RunControl(), quiet).maps["pull"], both.pull[1], atol=1e-3 * scale)


def test_cancelled_it_ends_soon_and_keeps_the_image_that_is_there(recorded):
    path, job, _ = recorded
    run, pressed = open_slice(path, job, 0), RunControl()
    pressed.cancel()
    assert split(run, pressed, quiet) is None
    assert pull(run, pressed, quiet) is None
    answer = spread(run, 8, pressed, quiet)
    assert (answer.maps, answer.says[0]) == ({}, "1 of 8 seeds: a spread needs at least two.")
    with pytest.raises(RequestError, match="not made of slice 7"):
        open_slice(path, job, 7)


def test_a_method_without_random_numbers_says_so(tmp_path):
    record_run(tmp_path / "r.json", "fbp")
    answer = spread(open_slice(tmp_path / "r.json", {}, 0), 8, RunControl(), quiet)
    assert not answer.maps["sd"].any()
    assert answer.says[0].startswith("4 of 8 seeds, and the map has settled")
    assert "draws no random numbers" in answer.says[1]
