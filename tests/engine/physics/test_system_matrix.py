"""The system matrix: weights, layout, transpose, and what happens when it would not fit."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from engine.physics import system_matrix
from engine.physics.geometry import CTGeometry
from engine.physics.system_matrix import build, check_budget, count_entries, estimate_bytes
from engine.spec.errors import RequestError


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_transpose_is_exact_and_both_are_sorted_int32(kind):
    matrix = build(CTGeometry.sparse_view(11, 360, size=(17, 24), kind=kind))
    difference = matrix.forward.scipy() - matrix.adjoint.scipy().T
    assert difference.nnz == 0
    for csr in (matrix.forward, matrix.adjoint):
        assert csr.crow.dtype == csr.col.dtype == np.int32
        assert csr.value.dtype == np.float32
        assert csr.scipy().has_canonical_format


def test_a_vertical_ray_sums_a_column_and_a_horizontal_one_a_row_in_mm():
    # At 0 degrees bin j of a detector as wide as the image is column j; at 90 it is row H-1-j.
    geometry = CTGeometry("parallel", (5, 5), 0.5, (0.0, math.pi / 2), 5, 0.5)
    image = np.random.default_rng(0).random((5, 5))
    sums = (build(geometry, np.float64).forward.scipy() @ image.ravel()).reshape(2, 5)
    np.testing.assert_allclose(sums[0], 0.5 * image.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(sums[1], 0.5 * image.sum(axis=1)[::-1], atol=1e-12)


def test_a_diagonal_ray_has_the_length_of_the_diagonal():
    geometry = CTGeometry("parallel", (8, 8), 2.0, (math.pi / 4,), 1, 1.0)
    total = build(geometry, np.float64).forward.value.sum()
    assert total == pytest.approx(16 * math.sqrt(2), rel=1e-12)


def test_a_single_pixel_lies_where_the_convention_says():
    # s = x cos t + y sin t with x to the right and y up, turning counter-clockwise
    size, row, column = 33, 4, 25
    geometry = CTGeometry.sparse_view(16, 360, size=size)
    image = np.zeros((size, size))
    image[row, column] = 1.0
    sinogram = (build(geometry).forward.scipy() @ image.ravel()).reshape(geometry.views, -1)
    centroid = (sinogram @ geometry.detector_mm()) / sinogram.sum(axis=1)
    t = np.array(geometry.angles_rad)
    expected = (column - 16) * np.cos(t) + (16 - row) * np.sin(t)
    # a pixel is met by two or three rays only, so its centroid is good to a quarter of a bin
    np.testing.assert_allclose(centroid, expected, atol=0.25)


def test_moving_the_rotation_centre_moves_the_image_the_other_way():
    still = CTGeometry.sparse_view(9, 360, size=21, detectors=40, pitch_mm=1.0)
    moved = CTGeometry.sparse_view(
        9, 360, size=21, detectors=40, pitch_mm=1.0, centre_offset_mm=(2.0, 3.0)
    )
    image = np.zeros((21, 21))
    image[8:12, 9:13] = np.random.default_rng(1).random((4, 4))
    shifted = np.roll(image, (3, -2), axis=(0, 1))  # 2 mm to the left, 3 mm down
    one = build(moved, np.float64).forward.scipy() @ image.ravel()
    two = build(still, np.float64).forward.scipy() @ shifted.ravel()
    np.testing.assert_allclose(one, two, atol=1e-10)


def test_shifting_the_detector_by_one_bin_shifts_the_sinogram_by_one_bin():
    still = CTGeometry.sparse_view(9, 360, size=21, kind="fan", detectors=60)
    moved = CTGeometry.sparse_view(
        9, 360, size=21, kind="fan", detectors=60, detector_offset_mm=still.pitch_mm
    )
    image = np.random.default_rng(1).random(21 * 21)
    one = (build(moved, np.float64).forward.scipy() @ image).reshape(9, 60)
    two = (build(still, np.float64).forward.scipy() @ image).reshape(9, 60)
    np.testing.assert_allclose(one[:, :-1], two[:, 1:], atol=1e-10)


def test_views_half_a_turn_apart_are_mirror_images():
    geometry = CTGeometry("parallel", (20, 26), 1.0, (0.7, 0.7 + math.pi), 35, 1.0)
    image = np.random.default_rng(2).random(20 * 26)
    one, two = (build(geometry, np.float64).forward.scipy() @ image).reshape(2, 35)
    np.testing.assert_allclose(one, two[::-1], atol=1e-10)


def test_rays_that_miss_the_image_are_empty():
    geometry = CTGeometry("parallel", (4, 4), 1.0, (0.3,), 5, 1.0, detector_offset_mm=1e9)
    assert build(geometry).forward.col.size == 0


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_a_clinical_matrix_takes_seconds_of_processor_time_at_most(kind):
    geometry = CTGeometry.sparse_view(90, 90, size=256, kind=kind)
    before = time.process_time()  # not the clock: other programs may be busy
    matrix = build(geometry)
    assert time.process_time() - before < 5.0
    assert matrix.forward.col.size > 10_000_000


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_the_memory_estimate_is_an_upper_bound_within_three_percent(kind):
    geometry = CTGeometry.sparse_view(31, 360, size=(128, 96), start_deg=0.5, kind=kind)
    matrix = build(geometry)
    entries = matrix.forward.col.size
    assert entries <= count_entries(geometry) <= 1.03 * entries
    assert matrix.nbytes <= estimate_bytes(geometry) <= 1.03 * matrix.nbytes


def test_a_matrix_beyond_the_budget_is_refused_before_it_is_built(monkeypatch):
    geometry = CTGeometry.sparse_view(90, size=128)
    monkeypatch.setattr(system_matrix, "_entries", None)  # building would fail
    with pytest.raises(RequestError, match="GB are allowed: use fewer views") as refusal:
        build(geometry, budget_bytes=20_000_000)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "change", [{"size": 60_000}, {"views": 1_000_000}, {"detectors": 1_000_000}]
)
def test_absurd_sizes_are_refused_at_once(change):
    geometry = CTGeometry.sparse_view(**({"views": 3, "size": 20_000, "detectors": 9000} | change))
    with pytest.raises(RequestError, match="use fewer views"):
        check_budget(geometry, np.float32)


def test_the_budget_is_half_the_available_memory_at_most(monkeypatch):
    geometry = CTGeometry.sparse_view(90, size=256)
    monkeypatch.setattr(system_matrix, "available_memory_bytes", lambda: 200_000_000)
    with pytest.raises(RequestError, match=r"0\.1 GB are allowed"):
        check_budget(geometry, np.float32)
