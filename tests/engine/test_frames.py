"""Frames: what the screen gets of an iteration, and nothing the solver still uses."""

import numpy as np
import pytest
import torch

from engine.physics.simulate import Slices, simulate
from engine.physics.units import MU_WATER_PER_MM, IntensityMap
from engine.runs.frames import PLANES, Frame, frame_of, pictures_of, scalars_of
from engine.solvers.diagnostics import norms, psd_curves
from engine.solvers.homogenize import power
from engine.solvers.iteration import Iteration
from engine.spec.acquisition import CTAcquisition, MRIAcquisition

SIZE = 16


def problem_of(modality, batch=2):
    generator = torch.Generator().manual_seed(0)
    channels = 1 if modality == "CT" else 2
    images = torch.randn(batch, channels, SIZE, SIZE, generator=generator)
    if modality == "CT":
        slices = Slices(300 * images, "CT", 1.0, tuple(range(batch)))
        return simulate(slices, CTAcquisition(views=6), IntensityMap("hu", 1000.0, 24.0), 0)
    slices = Slices(images, "MR", 1.0, tuple(range(batch)))
    return simulate(slices, MRIAcquisition(acceleration=2, acs_lines=4), IntensityMap("mr"), 0)


def iteration_of(problem):
    generator = torch.Generator().manual_seed(1)
    shape = problem.reference.shape
    x, z, u = (torch.randn(shape, generator=generator) for _ in range(3))
    return Iteration(
        k=3,
        K=9,
        sigma=0.5,
        z=z,
        x=x,
        image=z,
        residual_x=norms(problem.residual(x)),
        residual_z=norms(problem.residual(z)),
        gap=norms(x - z),
        dual=norms(u),
        state={"z": z, "u": u},
        psd=psd_curves(x + u, x + u, z, 0.5),
        seconds={"data": 0.1},
        nfe=3,
        metrics={"psnr": 30.0},
    )


@pytest.fixture(params=["CT", "MR"])
def problem(request):
    return problem_of(request.param)


def test_planes_are_fresh_contiguous_float32(problem):
    iteration = iteration_of(problem)
    frame = frame_of(problem, iteration, set(PLANES))
    before = {name: plane.copy() for name, plane in frame.planes.items()}
    assert set(before) == set(PLANES)
    for tensor in (iteration.z, iteration.x, iteration.state["u"]):
        tensor.zero_()
    for name, plane in frame.planes.items():
        assert plane.dtype == np.float32
        assert plane.flags.c_contiguous
        assert plane.flags.owndata
        assert plane.ndim == 2
        assert np.array_equal(plane, before[name])
        assert frame.units[name]


def test_only_what_is_wanted_is_converted(problem, monkeypatch):
    iteration = iteration_of(problem)
    monkeypatch.setattr(type(problem), "residual", None)  # a projection nobody asked for
    frame = frame_of(problem, iteration, {"z"})
    assert set(frame.planes) == {"z"}
    assert frame.psd == {}
    assert frame.frequency is None


def test_ct_planes_are_in_hu_and_differences_have_no_offset():
    problem = problem_of("CT")
    iteration = iteration_of(problem)
    frame = frame_of(problem, iteration, set(PLANES), sample=1)
    np.testing.assert_allclose(frame.planes["z"], 1000 * iteration.z[1, 0] + 24, rtol=1e-5)
    np.testing.assert_allclose(
        frame.planes["x - z"], frame.planes["x"] - frame.planes["z"], atol=1e-2
    )
    np.testing.assert_allclose(frame.planes["u"], 1000 * iteration.state["u"][1, 0], rtol=1e-5)
    assert frame.units["z"] == "HU"


def test_the_sinogram_residual_is_in_line_integrals():
    problem = problem_of("CT")
    iteration = iteration_of(problem)
    frame = frame_of(problem, iteration, {"residual"})
    expected = problem.residual(iteration.x)[0, 0] * MU_WATER_PER_MM  # of 1000 HU per unit
    np.testing.assert_allclose(frame.planes["residual"], expected, rtol=1e-4, atol=1e-6)
    assert frame.planes["residual"].shape[0] == 6


def test_mr_planes_are_magnitudes_and_its_residual_is_logarithmic():
    problem = problem_of("MR")
    iteration = iteration_of(problem)
    frame = frame_of(problem, iteration, set(PLANES))
    scale = problem.intensity.scale
    magnitude = torch.hypot(iteration.z[0, 0], iteration.z[0, 1]) * scale
    np.testing.assert_allclose(frame.planes["z"], magnitude, rtol=1e-5)
    residual = problem.residual(iteration.x)[0]
    expected = (torch.hypot(residual[0], residual[1]) * scale).clamp_min(1e-12).log10()
    np.testing.assert_allclose(frame.planes["residual"], expected, rtol=1e-4, atol=1e-5)
    assert np.isfinite(frame.planes["residual"]).all()


def test_a_method_without_dual_has_no_u(problem):
    iteration = iteration_of(problem)
    del iteration.state["u"]
    assert "u" not in frame_of(problem, iteration, set(PLANES)).planes


def test_radial_spectra_belong_to_the_slice_and_reach_nyquist(problem):
    iteration = iteration_of(problem)
    frame = frame_of(problem, iteration, {"psd"}, sample=1)
    assert frame.frequency[0] == 0
    assert frame.frequency[-1] == 0.5
    np.testing.assert_allclose(frame.psd["residual"], iteration.psd["residual"][1].mean(0))


def test_spectrum_pictures_are_centred_and_relative_to_the_target(problem):
    iteration = iteration_of(problem)
    noise = torch.zeros_like(iteration.z) + 0.5  # all its power at frequency zero
    iteration.noise = {"residual": noise}
    picture = frame_of(problem, iteration, {"psd image"}).psd_images["residual"]
    assert np.unravel_index(picture.argmax(), picture.shape) == (SIZE // 2, SIZE // 2)
    expected = 10 * np.log10(float(power(noise)[0, 0, 0, 0]) / (0.25 * SIZE * SIZE))
    assert picture.max() == pytest.approx(expected, rel=1e-4)
    assert np.isfinite(picture).all()


def test_numbers_are_plain_floats_of_one_slice(problem):
    iteration = iteration_of(problem)
    frame = frame_of(problem, iteration, set(), sample=1)
    assert isinstance(frame, Frame)
    assert frame.norms["gap"] == float(iteration.gap[1])
    values = scalars_of(iteration, 1)
    assert values["psnr"] == 30
    assert values["seconds_data"] == 0.1
    assert all(isinstance(value, (int, float)) for value in values.values())


def test_pictures_hold_every_slice(problem):
    pictures = pictures_of(problem, problem.reference)
    assert pictures.shape == (2, SIZE, SIZE)
    assert pictures.flags.owndata
