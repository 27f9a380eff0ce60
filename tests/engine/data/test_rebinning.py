"""The rays of a bent detector, of a deflected source and of a cone, as rays of a flat fan."""

import math

import numpy as np
import pytest

from engine.data.sinogram.rebinning import (
    Detector,
    at_angles,
    at_bins,
    column_rays,
    flat_bins,
    rows_of_slice,
    sample_slice,
)

BENT = Detector(
    rows=6, columns=41, row_mm=2.0, column_mm=12.0, central_row=3.25, central_column=20.25,
    radius_mm=300.0, distance_mm=550.0,
)  # fmt: skip


def flat(detector):
    return Detector(**{**detector.__dict__, "flat": True})


def fan_line(rays, phi, column, radius=300.0, distance=550.0):
    """Source and direction of the fan ray that a column's ray is said to be."""
    angle, gamma = phi + rays.lag_rad[column], math.atan(rays.u_mm[column] / distance)
    source = radius * np.array([-math.sin(angle), math.cos(angle)])
    return source, np.array([math.sin(angle + gamma), -math.cos(angle + gamma)])


def test_a_bent_detector_has_equal_angles_and_a_flat_one_equal_distances():
    bent, even = column_rays(BENT), column_rays(flat(BENT))
    step = 12.0 / 550.0
    np.testing.assert_allclose(np.diff(np.arctan(bent.u_mm / 550.0)), step, rtol=1e-9)
    np.testing.assert_allclose(np.diff(even.u_mm), 12.0, rtol=1e-9)
    # the central ray lies a quarter of the way from column 20 to column 21, counted from 1
    assert np.arctan(bent.u_mm[19] / 550.0) == pytest.approx(-0.25 * step)
    assert even.u_mm[20] == pytest.approx(0.75 * 12.0)
    np.testing.assert_allclose(bent.length_mm, 550.0)
    np.testing.assert_allclose(even.length_mm, np.hypot(550.0, even.u_mm))


@pytest.mark.parametrize("detector", [BENT, flat(BENT)])
@pytest.mark.parametrize(("dphi", "drho"), [(0.0, 0.0), (0.01, 0.0), (-0.004, 6.0), (0.02, -9.0)])
def test_a_fan_ray_is_the_same_line_as_the_real_one(detector, dphi, drho):
    phi = 0.7
    rays = column_rays(detector, dphi, drho)
    rho = 300.0 + drho
    source = rho * np.array([-math.sin(phi + dphi), math.cos(phi + dphi)])
    focal = 300.0 * np.array([-math.sin(phi), math.cos(phi)])
    right = np.array([math.cos(phi), math.sin(phi)])
    for column in (0, 7, 20, 40):
        along = (column + 1 - 20.25) * 12.0
        if detector.flat:
            element = focal - 550.0 * focal / 300.0 + along * right
        else:
            bend = along / 550.0
            element = focal + 550.0 * (-focal / 300.0 * math.cos(bend) + right * math.sin(bend))
        start, way = fan_line(rays, phi, column)
        for point in (source, element):
            off = point - start
            assert abs(off[0] * way[1] - off[1] * way[0]) < 1e-9
        # and the stated point of it is the one nearest to the axis
        middle = source + rays.middle[column] * (element - source)
        assert abs(middle @ way) < 1e-9
        assert rays.length_mm[column] == pytest.approx(np.linalg.norm(element - source))


def test_an_undeflected_source_is_the_fans_source():
    np.testing.assert_allclose(column_rays(BENT).lag_rad, 0, atol=1e-12)
    # moved by an angle, it is another fan's source; the detector stays
    np.testing.assert_allclose(column_rays(BENT, 0.01).lag_rad, 0.01, atol=1e-12)


def test_bins_touch_the_bent_detector_in_the_middle_and_stay_on_it():
    fan = column_rays(BENT)
    u = flat_bins(BENT, [fan])
    np.testing.assert_allclose(np.diff(u), 12.0)
    assert fan.u_mm[0] <= u[0] < fan.u_mm[0] + 12.0
    assert fan.u_mm[-1] - 12.0 < u[-1] <= fan.u_mm[-1]
    nearest = u[np.abs(u).argmin()]
    assert nearest == pytest.approx(-0.25 * 12.0)
    np.testing.assert_allclose(flat_bins(flat(BENT), [column_rays(flat(BENT))]),
                               flat(BENT).positions_mm(), atol=1e-9)  # fmt: skip


def test_values_at_bins_are_those_of_a_smooth_function_of_the_ray():
    fan = column_rays(BENT)
    rays = at_bins(fan, flat_bins(BENT, [fan]))
    values = np.tile(np.arctan(fan.u_mm / 550.0), (6, 1))  # linear in the column
    rows = np.full(rays.u_mm.size, 2.25)  # the central row: no inclination
    got = sample_slice(values, 0, BENT, rays, rows, 0.0)
    np.testing.assert_allclose(got, np.arctan(rays.u_mm / 550.0), atol=2e-4)


def test_the_row_of_a_ray_crosses_the_slice_nearest_to_the_axis():
    """Row 1 is at the top; a deflected source tilts all rays."""
    rays = at_bins(column_rays(BENT), np.array([-100.0, 0.0, 150.0]))
    for height, dz in [(0.0, 0.0), (1.1, 0.0), (-0.7, 0.6), (0.4, -0.9)]:
        rows = rows_of_slice(BENT, rays, height, dz)
        hit = (3.25 - (rows + 1)) * 2.0  # height of that point of the detector
        np.testing.assert_allclose(dz + rays.middle * (hit - dz), height, atol=1e-9)
    top = rows_of_slice(BENT, rays, 2.0 * 300 / 550, 0.0)
    assert top[1] == pytest.approx(2.25 - 1.0, abs=1e-3)  # one row up, on the central ray
    assert (rows_of_slice(BENT, rays, 99.0, 0.0) == 0).all()
    assert (rows_of_slice(BENT, rays, -99.0, 0.0) == 5).all()


def test_an_inclined_ray_counts_as_long_as_it_is_in_the_slice():
    """Through an endless cylinder the integral grows with the ray's length."""
    rays = column_rays(BENT)
    heights = (3.25 - np.arange(1, 7)) * 2.0
    stretch = np.hypot(550.0, heights - 0.5) / 550.0  # source 0.5 above the focal centre
    values = np.outer(stretch, np.ones(41))
    for row in range(6):
        got = sample_slice(values, 0, BENT, rays, np.full(41, float(row)), 0.5)
        np.testing.assert_allclose(got, 1.0, rtol=1e-12)
    part = sample_slice(values[2:5], 2, BENT, rays, np.full(41, 3.0), 0.5)
    np.testing.assert_allclose(part, 1.0, rtol=1e-12)


def test_views_are_interpolated_at_the_angle_of_the_fans_source():
    rays = column_rays(BENT, 0.01, 5.0)
    measured = np.array([0.0, 0.02, 0.03, 0.06, 0.1])
    slope = np.linspace(-1, 2, 41)
    values = (measured[:, None] + rays.lag_rad) * slope  # linear in the true angle
    wanted = np.array([0.035, 0.05, 0.07])
    np.testing.assert_allclose(
        at_angles(wanted, measured, rays, values), wanted[:, None] * slope, atol=1e-12
    )
