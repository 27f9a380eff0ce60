"""Region statistics and line profiles are what numpy says of the same pixels."""

import numpy as np
import pytest

from engine.metrics.roi import line_profile, pixel_centres, region_mask, roi_statistics

IMAGE = np.random.default_rng(1).normal(40, 12, (30, 40)).astype(np.float32)
PIXEL = (0.5, 0.8)  # rows are nearer than columns


def test_a_rectangle_takes_the_pixels_whose_centres_lie_in_it():
    x, y = pixel_centres(IMAGE.shape, PIXEL)
    box = (x[5] - 0.1, y[3] - 0.1, x[9] + 0.1, y[20] + 0.1)
    inside = IMAGE[3:21, 5:10].astype(np.float64)
    found = roi_statistics(IMAGE, PIXEL, box)
    assert found.mean == pytest.approx(inside.mean(), rel=1e-12)
    assert found.sd == pytest.approx(inside.std(), rel=1e-12)
    assert (found.minimum, found.maximum) == (inside.min(), inside.max())
    assert found.pixels == 18 * 5
    assert found.area_mm2 == pytest.approx(18 * 5 * 0.5 * 0.8)


def test_an_ellipse_has_the_area_of_an_ellipse():
    fine = np.zeros((400, 400))
    found = roi_statistics(fine, (0.1, 0.1), (-10, -5, 10, 5), ellipse=True)
    assert found.area_mm2 == pytest.approx(np.pi * 10 * 5, rel=0.01)


def test_an_ellipse_follows_its_equation_on_oblong_pixels():
    mask = region_mask(IMAGE.shape, PIXEL, (-8, -3, 4, 5), ellipse=True)
    x, y = pixel_centres(IMAGE.shape, PIXEL)
    for row, column in np.ndindex(IMAGE.shape):
        inside = ((x[column] + 2) / 6) ** 2 + ((y[row] - 1) / 4) ** 2 <= 1
        assert mask[row, column] == inside


def test_numbers_that_are_none_are_left_out_and_counted():
    image = IMAGE.copy()
    image[10, 10:13] = np.nan
    found = roi_statistics(image, PIXEL, (-100, -100, 100, 100))
    assert found.not_finite == 3
    assert found.pixels == image.size - 3
    assert found.mean == pytest.approx(np.nanmean(image.astype(np.float64)))


@pytest.mark.parametrize("ellipse", [False, True])
@pytest.mark.parametrize("box", [(500, 500, 600, 600), (0.01, 0.01, 0.01, 0.01)])
def test_a_region_without_pixels_has_no_statistics(box, ellipse):
    assert roi_statistics(IMAGE, PIXEL, box, ellipse) is None


def test_a_profile_along_a_row_passes_through_its_pixels():
    x, y = pixel_centres(IMAGE.shape, PIXEL)
    profile = line_profile(IMAGE, PIXEL, (x[0], y[7]), (x[-1], y[7]), step_mm=0.8)
    np.testing.assert_allclose(profile.values, IMAGE[7], rtol=1e-6)
    np.testing.assert_allclose(profile.distance_mm, x - x[0])


def test_a_profile_of_a_ramp_is_a_ramp_in_mm_in_any_direction():
    x, y = pixel_centres(IMAGE.shape, PIXEL)
    ramp = 3 * x[None, :] - 2 * y[:, None]
    start, end = (-10.0, -5.0), (9.0, 6.0)
    profile = line_profile(ramp, PIXEL, start, end)
    length = np.hypot(19, 11)
    slope = (3 * 19 - 2 * 11) / length
    np.testing.assert_allclose(profile.values, -20 + slope * profile.distance_mm, atol=1e-9)
    assert profile.distance_mm[-1] == pytest.approx(length)
    assert np.diff(profile.distance_mm).max() <= min(PIXEL) / 2 + 1e-12


def test_a_profile_beyond_the_image_has_no_value_there():
    profile = line_profile(IMAGE, PIXEL, (-40, 0), (40, 0))
    outside = np.abs(profile.distance_mm - 40) > 16
    assert np.isnan(profile.values[outside]).all()
    assert np.isfinite(profile.values[~outside]).all()


def test_a_missing_pixel_does_not_spread_to_its_neighbours_centres():
    image = np.ones((5, 5))
    image[2, 2] = np.nan
    profile = line_profile(image, (1, 1), (-2, 0), (2, 0), step_mm=1)
    np.testing.assert_array_equal(np.isnan(profile.values), [0, 0, 1, 0, 0])
