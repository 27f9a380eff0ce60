"""Filtered back-projection gives back the values that were projected."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from ct_ellipses import Ellipse, head, line_integrals, raster
from ct_geometries import SCANS, N

from engine.physics.ct import CTOperator
from engine.physics.fbp import FILTERS, fbp
from engine.physics.geometry import CTGeometry
from engine.physics.matrix_cache import MatrixCache
from engine.physics.view_weights import arc, view_weights
from engine.spec.errors import RequestError


@pytest.fixture(autouse=True)
def one_thread():
    """Small images gain nothing from threads, and lose much on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def disc_means(geometry, filter_name="ramp", weighting="mean"):
    """Mean FBP value inside and outside an off-centre disc of value 1, from exact integrals."""
    width = min(geometry.image_size) * geometry.pixel_mm
    disc = Ellipse(0.12 * width, -0.08 * width, 0.3 * width, 0.3 * width)
    sinogram = torch.tensor(line_integrals([disc], geometry), dtype=torch.float32)[None, None]
    image = fbp(sinogram, geometry, filter_name, weighting)[0, 0].numpy()
    inner = Ellipse(disc.x, disc.y, 0.85 * disc.a, 0.85 * disc.b)
    outer = Ellipse(disc.x, disc.y, 1.15 * disc.a, 1.15 * disc.b)
    inside = raster([inner], geometry.image_size, geometry.pixel_mm, sub=2) == 1
    outside = raster([outer], geometry.image_size, geometry.pixel_mm, sub=2) == 0
    return image[inside].mean(), image[outside].mean()


@pytest.mark.parametrize("filter_name", FILTERS)
@pytest.mark.parametrize("name", SCANS)
def test_the_value_of_a_disc_is_kept(name, filter_name):
    inside, outside = disc_means(SCANS[name], filter_name)
    assert inside == pytest.approx(1.0, abs=0.01)
    assert outside == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("name", SCANS)
def test_both_weightings_agree_for_a_complete_scan(name):
    assert disc_means(SCANS[name], weighting="angle")[0] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_limited_angle_keeps_the_mean_or_the_angle(kind):
    geometry = CTGeometry.sparse_view(90, 90, size=N, kind=kind)
    assert disc_means(geometry)[0] == pytest.approx(1.0, abs=0.06)
    mean = view_weights(geometry, "mean")
    angle = view_weights(geometry, "angle")
    np.testing.assert_allclose(mean, math.pi / 90)
    np.testing.assert_allclose(angle, math.pi / 180, rtol=1e-6)


@pytest.mark.parametrize("kind", ["parallel", "fan"])
@pytest.mark.parametrize("sampled", ["analytic", "matrix"])
def test_a_full_scan_exceeds_30_db(kind, sampled):
    geometry = CTGeometry.sparse_view(300, 360 if kind == "fan" else 180, size=128, kind=kind)
    phantom = head(60.0)
    truth = raster(phantom, geometry.image_size, geometry.pixel_mm)
    A = CTOperator(geometry, cache=MatrixCache(None))
    if sampled == "matrix":
        y = A.forward(torch.tensor(truth, dtype=torch.float32)[None, None])
    else:
        y = torch.tensor(line_integrals(phantom, geometry), dtype=torch.float32)[None, None]
    image = A.pseudo_inverse(y)[0, 0].numpy()
    mse = np.mean((image - truth) ** 2)
    assert 10 * np.log10((truth.max() - truth.min()) ** 2 / mse) > 30


@pytest.mark.parametrize("span", [220, 300])
def test_a_short_scan_is_as_good_as_a_full_one(span):
    # a wrong sign in the redundancy weights keeps the mean of a disc and costs 15 dB here
    geometry = CTGeometry.sparse_view(300, span, start_deg=70, size=128, kind="fan")
    phantom = head(58.0)
    truth = raster(phantom, geometry.image_size, geometry.pixel_mm)
    y = torch.tensor(line_integrals(phantom, geometry), dtype=torch.float32)[None, None]
    image = fbp(y, geometry)[0, 0].numpy()
    mse = np.mean((image - truth) ** 2)
    assert 10 * np.log10((truth.max() - truth.min()) ** 2 / mse) > 34


def test_unequal_angles_are_weighted_by_the_angle_they_stand_for():
    rng = np.random.default_rng(3)
    angles = np.sort((np.arange(400) + rng.uniform(-0.45, 0.45, 400)) * math.pi / 400)
    angles = rng.permutation(angles + math.pi * rng.integers(0, 2, 400))
    geometry = CTGeometry("parallel", (N, N), 1.0, tuple(angles), 137, 1.0)
    assert view_weights(geometry, "angle").sum() == pytest.approx(math.pi)
    inside, outside = disc_means(geometry, weighting="angle")
    assert inside == pytest.approx(1.0, abs=0.01)
    assert outside == pytest.approx(0.0, abs=0.01)


def test_a_densely_scanned_sector_does_not_count_more():
    # 0..90 degrees in steps of 0.5, the rest in steps of 1
    degrees = np.concatenate([np.arange(0, 90, 0.5), np.arange(90, 180, 1.0)])
    steps, _, span = arc(np.radians(degrees), math.pi)
    assert span == math.pi
    assert steps[:180].sum() == pytest.approx(math.pi / 2, rel=0.01)


def test_repeated_views_share_their_weight():
    angles = np.radians(np.concatenate([np.arange(0, 180, 2.0), np.arange(0, 180, 2.0) + 180]))
    steps, _, _ = arc(angles, math.pi)
    np.testing.assert_allclose(steps, math.radians(1.0), rtol=1e-9)


def test_one_view_and_two_views_have_finite_weights():
    for angles in [(0.3,), (0.0, 1.0), (0.0, 0.01), (0.2, 0.2)]:
        for kind in ("parallel", "fan"):
            base = CTGeometry.sparse_view(1, size=8, kind=kind).to_dict()
            geometry = CTGeometry.from_dict(base | {"angles_rad": angles})
            for weighting in ("mean", "angle"):
                weights = view_weights(geometry, weighting)
                assert np.isfinite(weights).all()
                assert (weights > 0).all()


def test_parker_weights_count_every_line_once():
    geometry = SCANS["fan, short scan"]
    weights = view_weights(geometry, "mean")
    # every line through the rotation centre is met within the arc, once or twice
    centre = geometry.detectors // 2
    assert weights[:, centre].sum() == pytest.approx(math.pi, rel=1e-3)
    assert (weights >= 0).all()


def test_below_a_short_scan_the_image_is_plainly_scaled():
    geometry = CTGeometry.sparse_view(150, 150, size=N, kind="fan")
    assert view_weights(geometry, "mean").shape == (150, 1)
    assert disc_means(geometry)[0] == pytest.approx(1.0, abs=0.1)


def test_a_batch_is_its_images_one_by_one():
    geometry = CTGeometry.sparse_view(40, size=32, kind="fan")
    y = torch.rand(3, 1, geometry.views, geometry.detectors)
    one_by_one = torch.cat([fbp(sinogram[None], geometry) for sinogram in y])
    torch.testing.assert_close(fbp(y, geometry), one_by_one)


def test_double_precision_stays_double():
    geometry = CTGeometry.sparse_view(40, size=32)
    y = torch.rand(1, 1, geometry.views, geometry.detectors, dtype=torch.float64)
    image = fbp(y, geometry)
    assert image.dtype == torch.float64
    torch.testing.assert_close(image.float(), fbp(y.float(), geometry), rtol=1e-4, atol=1e-4)


def test_outside_the_field_of_view_nothing_explodes():
    # a detector of half the image width, and one that misses the image altogether
    geometry = CTGeometry.sparse_view(90, 180, size=64, detectors=33)
    disc = Ellipse(0.0, 0.0, 10.0, 10.0)
    y = torch.tensor(line_integrals([disc], geometry), dtype=torch.float32)[None, None]
    image = fbp(y, geometry)[0, 0].numpy()
    assert image[28:36, 28:36].mean() == pytest.approx(1.0, abs=0.01)
    assert np.abs(image).max() < 1.5
    assert np.abs(image[:8, :8]).max() < 0.5
    away = CTGeometry.sparse_view(9, size=16, detectors=20, detector_offset_mm=1e6)
    assert fbp(torch.ones(1, 1, 9, 20), away).abs().max() == 0


def test_unknown_names_are_refused():
    geometry = CTGeometry.sparse_view(4, size=8)
    y = torch.zeros(1, 1, geometry.views, geometry.detectors)
    with pytest.raises(RequestError, match="'box'"):
        fbp(y, geometry, "box")
    with pytest.raises(RequestError, match="'mean' or 'angle'"):
        fbp(y, geometry, "ramp", "median")
