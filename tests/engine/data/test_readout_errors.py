"""Gradients that come late and spokes with a phase of their own."""

import numpy as np
import pytest
import torch

from engine.data.kspace.readout_errors import readout_errors
from engine.data.source import open_input
from engine.physics.noncartesian import NonCartesianMRI
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import IntensityMap
from engine.solvers.catalogue import find_solver
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions
from tests.support.spokes_files import blobs, direct, radial, spiral

SIZE, SPOKES, COILS, NOISE = 48, 60, 4, 0.004


@pytest.fixture
def late(tmp_path):
    """Path, delays and phases: gradients 0.4 and 0.1 samples late, every other spoke turned."""
    positions = radial(SPOKES, 2 * SIZE, SIZE / 2)
    positions[:, 1::2] = positions[:, 1::2, ::-1].copy()  # there and back, as scanners do
    step = positions[:, :, 1:2] - positions[:, :, :1]
    share = (step / np.linalg.norm(step, axis=0)) ** 2
    delay = 0.4 * share[0] + 0.1 * share[1]
    phase = 0.2 * (-1.0) ** np.arange(SPOKES)[:, None]
    coils = birdcage_maps(COILS, SIZE, SIZE).numpy().reshape(COILS, SIZE, SIZE) * blobs(SIZE)
    samples = direct(coils, positions - delay * step) * np.exp(1j * phase)
    rng = np.random.default_rng(0)
    samples = samples + NOISE * (
        rng.normal(size=samples.shape) + 1j * rng.normal(size=samples.shape)
    )
    path = tmp_path / "late.npz"
    np.savez(path, kspace=samples.astype(np.complex64), trajectory=positions)
    return path, delay[:, 0], phase[:, 0]


def chi2(path, **options):
    dataset = open_input(str(path), InputOptions(kind="kspace", size=SIZE, **options))
    problem = dataset.problem([0], {}, IntensityMap("mr", 1.0), 0)
    solver = find_solver("cg")
    settings = solver.settings_class.pick({"iterations": 40, "stop_at_noise": False})
    with torch.no_grad():
        *_, last = solver.iterate(problem, None, settings, [torch.Generator()])
    return dataset, float(problem.reduced_chi2(problem.residual(last.z)))


def test_late_and_turned_spokes_are_found_and_taken_away(late):
    path = late[0]
    _, before = chi2(path)
    dataset, after = chi2(path, correct_readouts=True)
    assert after < 0.05 * before
    said = next(fact.value for fact in dataset.facts if fact.name == "spokes corrected")
    assert said.startswith("delays of ")


def test_with_known_maps_every_delay_and_phase_is_right(late):
    path, delay, phase = late
    held = np.load(path)
    maps = birdcage_maps(COILS, SIZE, SIZE).reshape(1, COILS, SIZE, SIZE)
    operator = NonCartesianMRI(held["trajectory"], (SIZE, SIZE), maps)
    found = readout_errors(operator, held["kspace"])
    np.testing.assert_allclose(found.delay, delay, atol=0.15)
    np.testing.assert_allclose(found.phase_rad - found.phase_rad.mean(), phase, atol=0.05)


def test_readouts_that_are_no_spokes_are_refused(tmp_path):
    paths = spiral(8, 200, 10, 6)
    path = tmp_path / "spiral.npz"
    np.savez(path, kspace=direct(blobs(24)[None], paths).astype(np.complex64), trajectory=paths)
    with pytest.raises(RequestError, match="radial spokes"):
        chi2(path, correct_readouts=True)
