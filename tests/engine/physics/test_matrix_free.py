"""Projectors without a matrix: the matrix's sums, an exact adjoint, the FBP of torch."""

from __future__ import annotations

import pickle

import pytest
import torch
from ct_geometries import GEOMETRIES, SCANS

from engine.physics import matrix_free, ray_kernels
from engine.physics.ct import CTOperator
from engine.physics.fbp import fbp
from engine.physics.geometry import CTGeometry
from engine.physics.matrix_cache import MatrixCache
from engine.physics.matrix_free import MatrixFreeCTOperator, suits_matrix
from engine.physics.memory import PeakMemory

CACHE = MatrixCache(None)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["compiled", "torch"])
def way(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(ray_kernels, "available", lambda: False)
        monkeypatch.setattr(matrix_free, "PLACES_AT_ONCE", 999)  # several pieces
    return request.param


def random(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def relative(a, b):
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize("batch", [1, 3, 9])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_products_are_those_of_the_matrix(name, batch, way):
    geometry = GEOMETRIES[name]
    free, stored = MatrixFreeCTOperator(geometry), CTOperator(geometry, cache=CACHE)
    assert free.compiled == (way == "compiled")
    x, y = random(batch, *free.image_shape), random(batch, *free.measurement_shape)
    assert relative(free.forward(x), stored.forward(x)) < 1e-6
    assert relative(free.adjoint(y), stored.adjoint(y)) < 1e-6
    assert free.forward(x).shape == stored.forward(x).shape


@pytest.mark.parametrize("name", GEOMETRIES)
def test_dot_product(name, way):
    free = MatrixFreeCTOperator(GEOMETRIES[name])
    x, y = random(2, *free.image_shape), random(2, *free.measurement_shape, seed=1)
    there, back = (free.forward(x) * y).sum(), (x * free.adjoint(y)).sum()
    assert abs(there - back) < 1e-5 * abs(there)


@pytest.mark.parametrize("size", [63, 64, 65, 130])
def test_no_line_is_lost_where_blocks_of_lines_meet(size):
    geometry = CTGeometry.sparse_view(7, 180, size=size)
    free, stored = MatrixFreeCTOperator(geometry), CTOperator(geometry, cache=CACHE)
    for batch in (1, 2):
        x, y = random(batch, *free.image_shape), random(batch, *free.measurement_shape)
        assert relative(free.forward(x), stored.forward(x)) < 1e-6
        assert relative(free.adjoint(y), stored.adjoint(y)) < 1e-6


def test_double_precision_agrees_to_double_rounding():
    geometry = GEOMETRIES["fan, wide, offsets"]
    free = MatrixFreeCTOperator(geometry, dtype=torch.float64)
    stored = CTOperator(geometry, dtype=torch.float64, cache=CACHE)
    x, y = random(2, *free.image_shape).double(), random(2, *free.measurement_shape).double()
    # the stored lengths have single precision
    assert relative(free.forward(x), stored.forward(x)) < 1e-7
    assert relative(free.adjoint(y), stored.adjoint(y)) < 1e-7


def test_the_number_of_threads_changes_no_bit():
    free = MatrixFreeCTOperator(CTGeometry.sparse_view(30, 180, size=150))
    x, y = random(3, *free.image_shape), random(3, *free.measurement_shape)

    def all_of_it():
        torch.set_num_threads(threads)
        return free.forward(x), free.adjoint(y), free.forward(x[:1]), free.pseudo_inverse(y)

    threads = 1
    alone = all_of_it()
    threads = 3
    assert all(torch.equal(a, b) for a, b in zip(alone, all_of_it(), strict=True))


def test_it_can_be_differentiated():
    free = MatrixFreeCTOperator(GEOMETRIES["fan, even"])
    x = random(2, *free.image_shape).requires_grad_()
    y = random(2, *free.measurement_shape)
    (free.forward(x) * y).sum().backward()
    assert torch.equal(x.grad, free.adjoint(y))


def test_it_is_sent_elsewhere_as_its_recipe():
    free = MatrixFreeCTOperator(GEOMETRIES["parallel, even"], filter_name="hann")
    free.forward(random(1, *free.image_shape))
    again = pickle.loads(pickle.dumps(free))
    assert type(again) is MatrixFreeCTOperator
    assert again.describe() == free.describe()


@pytest.mark.parametrize("name", [*SCANS, "truncated"])
def test_its_fbp_is_that_of_torch(name):
    geometry = GEOMETRIES["truncated"] if name == "truncated" else SCANS[name]
    free = MatrixFreeCTOperator(geometry)
    y = random(2, *free.measurement_shape)
    assert relative(free.pseudo_inverse(y), fbp(y.double(), geometry)) < 1e-6


def test_small_matrices_are_stored_and_large_ones_are_not(monkeypatch):
    small = CTGeometry.sparse_view(90, 90, size=256)
    assert suits_matrix(small)
    assert not suits_matrix(CTGeometry.sparse_view(721, 180, size=512))
    assert not suits_matrix(CTGeometry.sparse_view(10_000, 180, size=4096))
    monkeypatch.setattr(matrix_free, "available_memory_bytes", lambda: 2**28)
    assert not suits_matrix(small)


def test_fbp_of_many_views_needs_the_memory_of_a_few_images():
    geometry = CTGeometry.sparse_view(721, 180, size=512)
    free = MatrixFreeCTOperator(geometry)
    y = random(1, *free.measurement_shape)
    free.pseudo_inverse(y)
    with PeakMemory(torch.device("cpu")) as peak:
        free.pseudo_inverse(y)
    if peak.gb is not None:
        assert peak.gb < 0.1
