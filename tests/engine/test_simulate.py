"""From image to problem: the unit conversion is physics."""

import numpy as np
import pytest
import torch
from helpers import relative

from engine.acquisition import CTAcquisition, MRIAcquisition
from engine.data.dataset import Slices
from engine.data.source import open_input, parse_slices
from engine.errors import RequestError
from engine.metrics.profiles import evaluate
from engine.physics.units import (
    MU_WATER_PER_MM,
    hu_to_mu,
    mu_to_hu,
    normalise_line_integrals,
    physical_line_integrals,
)
from engine.priors.prior import IntensityMap
from engine.simulate import simulate, simulate_ct

MAPS = [IntensityMap("hu", 1000.0), IntensityMap("hu", 800.0), IntensityMap("hu", 500.0, 250.0)]


def slice_of(image, modality="CT", pixel_mm=1.5):
    return Slices(image, modality, pixel_mm, tuple(range(len(image))))


@pytest.mark.parametrize("intensity", MAPS)
def test_normalised_line_integrals_are_the_projection_of_the_normalised_image(intensity):
    hu = 1000 * torch.rand(1, 1, 32, 32) - 600
    problem = simulate_ct(slice_of(hu), CTAcquisition(views=7), intensity, seed=0)
    operator = problem.operator
    y = operator.forward(hu_to_mu(hu))  # what a scanner would measure
    lengths = operator.forward(torch.ones_like(hu))
    y_n = normalise_line_integrals(y, lengths, intensity)
    assert relative(y_n, operator.forward(intensity.to_normalised(hu))) < 1e-5
    assert relative(y_n, problem.measurement) < 1e-5
    assert relative(physical_line_integrals(y_n, lengths, intensity), y) < 1e-5


def test_water_has_zero_hu_and_air_minus_thousand():
    assert float(hu_to_mu(torch.tensor(0.0))) == pytest.approx(MU_WATER_PER_MM)
    assert float(hu_to_mu(torch.tensor(-1000.0))) == 0
    assert float(mu_to_hu(torch.tensor(MU_WATER_PER_MM))) == pytest.approx(0, abs=1e-3)


def test_a_centimetre_of_water_attenuates_by_ten_mu_water():
    """The ray through a 10 mm water square in air, in a 40 mm field."""
    hu = torch.full((1, 1, 40, 40), -1000.0)
    hu[..., 15:25, 15:25] = 0
    acquisition = CTAcquisition(views=1)
    problem = simulate_ct(slice_of(hu, pixel_mm=1.0), acquisition, MAPS[0], seed=0)
    lengths = problem.operator.forward(torch.ones_like(hu))
    y = physical_line_integrals(problem.measurement, lengths, MAPS[0])
    centre = y[0, 0, 0, y.shape[-1] // 2]
    assert float(centre) == pytest.approx(10 * MU_WATER_PER_MM, rel=1e-4)


def test_photon_noise_has_the_announced_level_in_normalised_units():
    hu = torch.zeros(1, 1, 64, 64)
    clean = simulate_ct(slice_of(hu), CTAcquisition(views=60), MAPS[1], seed=0)
    noisy = simulate_ct(slice_of(hu), CTAcquisition(views=60, photons=1e4), MAPS[1], seed=0)
    difference = noisy.measurement - clean.measurement
    # weights say variance = sigma^2 / W, so the weighted difference has SD sigma
    spread = float((noisy.weights.sqrt() * difference).std())
    assert spread == pytest.approx(float(noisy.noise_sigma), rel=0.05)
    assert clean.noise_sigma == 0
    assert (
        simulate_ct(
            slice_of(hu), CTAcquisition(views=6, photons=1e4, weighted=False), MAPS[1], seed=0
        ).weights
        is None
    )


def test_gaussian_noise_is_given_in_physical_units():
    hu = torch.zeros(1, 1, 64, 64)
    clean = simulate_ct(slice_of(hu), CTAcquisition(views=60), MAPS[1], seed=0)
    noisy = simulate_ct(slice_of(hu), CTAcquisition(views=60, gaussian_noise=0.01), MAPS[1], seed=0)
    lengths = clean.operator.forward(torch.ones_like(hu))
    physical = [physical_line_integrals(p.measurement, lengths, MAPS[1]) for p in (clean, noisy)]
    assert float((physical[1] - physical[0]).std()) == pytest.approx(0.01, rel=0.05)
    spread = float((noisy.measurement - clean.measurement).std())
    assert spread == pytest.approx(noisy.noise_sigma, rel=0.05)


def test_the_mr_scale_is_the_quantile_and_leads_back():
    image = 37 * torch.randn(1, 2, 32, 32, generator=torch.Generator().manual_seed(0))
    problem = simulate(slice_of(image, "MR"), MRIAcquisition(acceleration=2), MAPS[0], 0)
    magnitude = np.hypot(*problem.reference[0].numpy())
    assert np.quantile(magnitude, 0.99) == pytest.approx(1, rel=1e-3)
    assert relative(problem.physical(problem.reference), image) < 1e-5


def test_coil_noise_has_the_announced_level():
    image = torch.randn(1, 2, 64, 64, generator=torch.Generator().manual_seed(0))
    clean = simulate(slice_of(image, "MR"), MRIAcquisition(acceleration=1), MAPS[0], 0)
    noisy = simulate(
        slice_of(image, "MR"), MRIAcquisition(acceleration=1, kspace_noise=0.1), MAPS[0], 0
    )
    assert float((noisy.measurement - clean.measurement).std()) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [(None, 4, [0, 1, 2, 3]), ("2", 4, [2]), ("1:3", 4, [1, 2]), ("::2", 4, [0, 2])],
)
def test_slices_are_counted_as_in_python(text, count, expected):
    assert list(parse_slices(text, count)) == expected


@pytest.mark.parametrize("text", ["9", "x", "1:2:3:4", "3:1", "", "::0"])
def test_slices_that_select_nothing_are_refused(text):
    with pytest.raises(RequestError, match="--slice"):
        parse_slices(text, 4)


def test_demos_differ_by_seed_and_repeat():
    first, again, other = (open_input(f"demo:ct:{s}") for s in (3, 3, 4))
    assert first.sha256() == again.sha256() != other.sha256()


@pytest.mark.parametrize("geometry", ["parallel", "fan"])
def test_full_view_fbp_of_the_phantom_exceeds_30_db(geometry):
    source = open_input("demo:ct").load([0])
    span = 180.0 if geometry == "parallel" else 360.0
    acquisition = CTAcquisition(views=360, angular_range=span, geometry=geometry)
    problem = simulate_ct(source, acquisition, MAPS[0], seed=0)
    image = problem.operator.pseudo_inverse(problem.measurement)
    assert evaluate("ct-dcpnpdp", image, problem.reference, MAPS[0])["psnr"] > 30
