"""Projectors without a matrix: the matrix's sums, an exact adjoint, the FBP of torch."""

from __future__ import annotations

import math
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
from engine.physics.ray_symmetry import Symmetry

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


@pytest.mark.parametrize(
    ("geometry", "positions"),
    [
        (CTGeometry.sparse_view(20, 180, size=33), 8),
        (CTGeometry.sparse_view(16, 180, size=32, detectors=15), 4),
        (CTGeometry.sparse_view(90, 90, size=32), 4),
        (CTGeometry.sparse_view(24, 360, size=(32, 25)), 4),
        (CTGeometry.sparse_view(17, 170, size=32, start_deg=3), 2),
        (CTGeometry("parallel", (16, 16), 1.0, (0.1, 2.0, -5.0), 24, 1.0), 2),
        (CTGeometry("parallel", (16, 16), 1.0, (0.1, 2.0, 0.1, 0.1 + math.pi), 24, 1.0), 2),
    ],
)
def test_rays_that_mirror_each_other_share_their_weights(geometry, positions):
    free, stored = MatrixFreeCTOperator(geometry), CTOperator(geometry, cache=CACHE)
    assert len(free.symmetry.positions) == positions
    for batch in (1, 2, 4, 5):
        x, y = random(batch, *free.image_shape), random(batch, *free.measurement_shape)
        assert relative(free.forward(x), stored.forward(x)) < 1e-6
        assert relative(free.adjoint(y), stored.adjoint(y)) < 1e-6


def test_few_rays_stand_for_all():
    found = Symmetry.of(CTGeometry.sparse_view(90, 90, size=256))
    assert found.seen.numel() < 1.05 * found.rays  # nothing is done twice, but for view 0
    named = found.seen[found.seen < found.rays]
    assert torch.equal(named.sort().values, torch.arange(found.rays))


@pytest.mark.parametrize(
    "geometry",
    [
        CTGeometry.sparse_view(20, 180, size=32, detector_offset_mm=0.25),
        CTGeometry.sparse_view(20, 180, size=32, centre_offset_mm=(0.0, 1.0)),
        CTGeometry.sparse_view(20, 360, size=32, kind="fan"),
    ],
)
def test_a_scan_off_centre_or_from_a_point_has_no_symmetry_to_use(geometry):
    assert Symmetry.of(geometry) is None


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


def test_a_matrix_is_stored_where_it_is_small_and_no_views_mirror_each_other(monkeypatch):
    small = CTGeometry.sparse_view(90, 89, size=256)
    assert suits_matrix(small)
    assert suits_matrix(CTGeometry.sparse_view(20, 180, size=256))
    assert not suits_matrix(CTGeometry.sparse_view(90, 90, size=256))
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
