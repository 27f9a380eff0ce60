"""From image to problem: the unit conversion is physics."""

import numpy as np
import pytest
import torch
from ct_ellipses import head, line_integrals, raster
from helpers import relative

from engine.data.source import open_input, parse_slices
from engine.metrics.profiles import evaluate
from engine.physics.simulate import Slices, ct_geometry, finer, simulate, simulate_ct
from engine.physics.units import (
    MU_WATER_PER_MM,
    IntensityMap,
    hu_to_mu,
    mu_to_hu,
    normalise_line_integrals,
    physical_line_integrals,
)
from engine.spec.acquisition import CTAcquisition, MRIAcquisition, demo_acquisition
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

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
    source = open_input("demo:ct", InputOptions(size=128)).load([0])
    span = 180.0 if geometry == "parallel" else 360.0
    acquisition = CTAcquisition(views=180, angular_range=span, geometry=geometry)
    problem = simulate_ct(source, acquisition, MAPS[0], seed=0)
    image = problem.operator.pseudo_inverse(problem.measurement)
    assert evaluate("ct-dcpnpdp", image, problem.reference, MAPS[0])["psnr"] > 30


# -- a finer grid than that of the reconstruction ------------------------------------------------


def ellipses_hu(size, pixel_mm, sub=8):
    """A phantom in air, as HU on a grid."""
    mu = raster(head(50.0), (size, size), pixel_mm, sub)
    return torch.tensor(1000 * (mu / 1.0 - 1), dtype=torch.float32)[None, None]


@pytest.mark.parametrize("rays", ["parallel", "fan"])
def test_projections_from_a_finer_grid_are_nearer_to_the_analytic_ones(rays):
    """A coarse bin is the mean over its width; the exact value is that of 16 sub-rays."""
    geometry_of = CTAcquisition(views=15, geometry=rays)
    coarse = ellipses_hu(64, 2.0)
    geometry = ct_geometry(geometry_of, (64, 64), 2.0)
    exact = line_integrals(head(50.0), geometry.finer(16))
    exact = exact.reshape(15, geometry.detectors, 16).mean(-1) * MU_WATER_PER_MM
    errors = []
    for factor in (1, 2, 4):
        source = Slices(coarse, "CT", 2.0, fine=ellipses_hu(64 * factor, 2.0 / factor, 4))
        asked = CTAcquisition(views=15, geometry=rays, fine_grid=factor)
        problem = simulate_ct(source, asked, MAPS[1], seed=0)
        lengths = problem.operator.ray_lengths()
        y = physical_line_integrals(problem.measurement, lengths, MAPS[1])[0, 0].numpy()
        errors.append(np.linalg.norm(y - exact) / np.linalg.norm(exact))
        assert problem.provenance.get("fine_grid", 1) == factor
    assert errors[0] < 0.05  # the discretisation error of 2 mm pixels
    assert errors[1] < 0.6 * errors[0]
    assert errors[2] < 0.6 * errors[1]


def test_the_reference_of_a_finer_scan_is_the_mean_over_each_pixel():
    fine = ellipses_hu(64, 1.0)
    source = Slices(ellipses_hu(32, 2.0), "CT", 2.0, fine=fine)
    problem = simulate_ct(source, CTAcquisition(views=9, fine_grid=2), MAPS[1], seed=0)
    means = fine.view(1, 1, 32, 2, 32, 2).mean((3, 5))
    torch.testing.assert_close(problem.physical(problem.reference), means, rtol=0, atol=1e-3)
    assert problem.operator.image_shape == (1, 32, 32)


def test_without_a_finer_source_the_image_is_interpolated_with_its_own_means():
    image = 1000 * torch.rand(2, 1, 24, 24)
    fine, means = finer(Slices(image, "CT", 1.0, (0, 1)), 3)
    assert fine.shape == (2, 1, 72, 72)
    assert torch.equal(means, image)
    back = fine.view(2, 1, 24, 3, 24, 3).mean((3, 5))
    torch.testing.assert_close(back, image, rtol=1e-5, atol=1e-3)
    steps = (fine[..., 1:] - fine[..., :-1]).abs().mean()
    assert steps < 0.6 * (image[..., 1:] - image[..., :-1]).abs().mean()  # no blocks


def test_photon_noise_comes_after_the_finer_projection():
    source = Slices(ellipses_hu(32, 2.0), "CT", 2.0)
    clean, noisy = (
        simulate_ct(source, CTAcquisition(views=60, fine_grid=2, photons=n), MAPS[1], seed=0)
        for n in (None, 1e4)
    )
    difference = noisy.weights.sqrt() * (noisy.measurement - clean.measurement)
    assert float(difference.std()) == pytest.approx(float(noisy.noise_sigma), rel=0.05)
    assert clean.noise_origin == noisy.noise_origin == "simulated"


def smooth_object(size, fine):
    """A complex image without frequencies beyond the coarse grid's, on either grid."""
    places = ((torch.arange(size * fine) + 0.5) / fine - 0.5) / size
    y, x = torch.meshgrid(places, places, indexing="ij")
    wave = 0.5 * torch.exp(2j * torch.pi * (3 * x - 2 * y)) + torch.exp(2j * torch.pi * 5 * y)
    return torch.view_as_real(1 + wave).movedim(-1, 0)[None].float()


@pytest.mark.parametrize("size", [24, 25])
def test_the_k_space_of_a_band_limited_image_does_not_depend_on_the_grid(size):
    source = Slices(smooth_object(size, 1), "MR", 1.0, fine=smooth_object(size, 2))
    coarse, fine = (
        simulate(source, MRIAcquisition(acceleration=2, fine_grid=n), MAPS[0], seed=0)
        for n in (1, 2)
    )
    assert relative(fine.reference, coarse.reference) < 1e-4
    assert relative(fine.measurement, coarse.measurement) < 1e-4
    assert fine.provenance["fine_grid"] == 2


def test_coils_see_the_finer_object():
    """Sharp edges: a coil's k-space is not that of the coarse image times its map."""
    fine = torch.zeros(1, 2, 64, 64)
    fine[:, 0, 11:50, 15:42] = 1
    source = Slices(torch.nn.functional.avg_pool2d(fine, 2), "MR", 1.0, fine=fine)
    asked = MRIAcquisition(acceleration=1, coils=4, fine_grid=2)
    problem = simulate(source, asked, MAPS[0], seed=0)
    error = relative(problem.operator.forward(problem.reference), problem.measurement)
    assert 1e-5 < error < 0.02


def test_a_new_scan_of_the_demo_is_measured_on_a_finer_grid_and_an_old_one_is_not():
    assert demo_acquisition("demo:ct") == demo_acquisition("demo:ct:5") == {"fine_grid": 2}
    for other in ("demo:ct-volume", "demo:mri", "/data/demo.dcm"):
        assert demo_acquisition(other) == {}
    dataset = open_input("demo:ct")
    old = dataset.problem([0], {"views": 3}, MAPS[1], seed=0)
    assert torch.equal(old.measurement, old.operator.forward(old.reference))
    new = dataset.problem([0], {"views": 3, "fine_grid": 2}, MAPS[1], seed=0)
    assert 1e-4 < relative(new.operator.forward(new.reference), new.measurement) < 0.02


def test_a_shrunk_image_is_measured_on_the_grid_it_was_shrunk_from():
    dataset = open_input("demo:ct", InputOptions(size=64))
    source = dataset.load([0], 2)
    whole = torch.from_numpy(open_input("demo:ct").read(0))[None, None]
    torch.testing.assert_close(source.fine, torch.nn.functional.avg_pool2d(whole, 2))
    assert dataset.load([0], 3).fine is None
