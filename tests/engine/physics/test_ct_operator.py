"""The CT operator: an exact adjoint, the right line integrals, any batch and precision."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from ct_ellipses import Ellipse, line_integrals, raster
from ct_geometries import GEOMETRIES

from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.physics.matrix_cache import MatrixCache
from engine.physics.system_matrix import check_budget
from engine.spec.errors import RequestError

CACHE = MatrixCache(None)


@pytest.fixture(autouse=True)
def one_thread():
    """Small images gain nothing from threads, and lose much on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def operator(geometry, dtype=torch.float32, **options):
    return CTOperator(geometry, dtype=dtype, cache=CACHE, **options)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_adjoint_is_the_exact_transpose(name, batch, dtype, bound):
    A = operator(GEOMETRIES[name], dtype)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(batch, *A.image_shape, dtype=dtype, generator=generator)
    y = torch.randn(batch, *A.measurement_shape, dtype=dtype, generator=generator)
    Ax, Aty = A.forward(x), A.adjoint(y)
    assert Ax.shape == y.shape
    assert Aty.shape == x.shape
    left = (Ax.double() * y.double()).sum((1, 2, 3))
    right = (x.double() * Aty.double()).sum((1, 2, 3))
    scale = Ax.double().flatten(1).norm(dim=1) * y.double().flatten(1).norm(dim=1)
    assert ((left - right).abs() / scale).max() <= bound


@pytest.mark.parametrize("kind", ["parallel", "fan"])
@pytest.mark.parametrize(
    "ellipse",
    [
        Ellipse(0.0, 0.0, 90.0, 90.0),
        Ellipse(-31.0, 44.0, 40.0, 40.0),
        Ellipse(25.0, -30.0, 70.0, 28.0, turn_rad=0.6),
    ],
)
def test_projections_of_discs_and_ellipses_are_the_analytic_ones(kind, ellipse):
    geometry = CTGeometry.sparse_view(24, 360, size=256, start_deg=2, kind=kind)
    check_against_analytic(geometry, ellipse)


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_analytic_projections_hold_with_offsets_and_other_units(kind):
    geometry = CTGeometry.sparse_view(
        24,
        360,
        size=(220, 256),
        pixel_mm=0.6,
        pitch_mm=0.9,
        kind=kind,
        detector_offset_mm=5.3,
        centre_offset_mm=(-7.1, 4.4),
    )
    check_against_analytic(geometry, Ellipse(12.0, -18.0, 45.0, 22.0, turn_rad=-0.8, value=0.02))


def check_against_analytic(geometry, ellipse):
    image = raster([ellipse], geometry.image_size, geometry.pixel_mm)
    x = torch.tensor(image, dtype=torch.float32)[None, None]
    sinogram = operator(geometry).forward(x)[0, 0].numpy()
    exact = line_integrals([ellipse], geometry)
    assert np.linalg.norm(sinogram - exact) <= 0.01 * np.linalg.norm(exact)
    # the integral over the detector is the mass, in every view (parallel) to 1 %
    if geometry.kind == "parallel":
        mass = math.pi * ellipse.a * ellipse.b * ellipse.value
        np.testing.assert_allclose(sinogram.sum(1) * geometry.pitch_mm, mass, rtol=0.01)


@pytest.mark.parametrize(("views", "span", "norm_squared"), [(20, 180, 4.95e3), (90, 90, 2.34e4)])
def test_norm_is_the_published_one(views, span, norm_squared):
    A = operator(CTGeometry.sparse_view(views, span, size=256))
    assert A.measurement_shape == (1, views, 363)
    assert A.norm() ** 2 == pytest.approx(norm_squared, rel=0.01)


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_a_batch_is_its_images_one_by_one(kind):
    A = operator(CTGeometry.sparse_view(12, size=32, kind=kind))
    x = torch.rand(5, *A.image_shape)
    y = A.forward(x)
    one_by_one = torch.cat([A.forward(image[None]) for image in x])
    torch.testing.assert_close(y, one_by_one, rtol=1e-5, atol=1e-4)
    back = torch.cat([A.adjoint(sinogram[None]) for sinogram in y])
    torch.testing.assert_close(A.adjoint(y), back, rtol=1e-5, atol=1e-2)


def test_non_contiguous_images_are_read_right():
    A = operator(CTGeometry.sparse_view(12, size=32))
    x = torch.rand(3, 1, 32, 64)[..., ::2].transpose(2, 3)
    torch.testing.assert_close(A.forward(x), A.forward(x.contiguous()))


def test_adjoint_images_are_contiguous():
    A = operator(CTGeometry.sparse_view(12, size=32))
    assert A.adjoint(A.forward(torch.rand(3, 1, 32, 32))).is_contiguous()


@pytest.mark.parametrize("batch", [1, 2])
def test_gradients_pass_through_forward_and_adjoint(batch):
    A = operator(CTGeometry.sparse_view(5, size=6), torch.float64)
    x = torch.rand(batch, *A.image_shape, dtype=torch.float64, requires_grad=True)
    y = torch.rand(batch, *A.measurement_shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(A.forward, x)
    assert torch.autograd.gradcheck(A.adjoint, y)


def test_single_and_double_precision_agree():
    geometry = CTGeometry.sparse_view(20, size=64)
    x = torch.rand(2, 1, 64, 64, dtype=torch.float64)
    single, double = operator(geometry).forward(x), operator(geometry, torch.float64).forward(x)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=1e-4)


def test_a_wrong_shape_is_named():
    A = operator(CTGeometry.sparse_view(12, size=32))
    with pytest.raises(RequestError, match=r"\(1, 1, 31, 32\)"):
        A.forward(torch.zeros(1, 1, 31, 32))
    with pytest.raises(RequestError, match="sinogram"):
        A.adjoint(torch.zeros(1, 1, 12, 12))
    with pytest.raises(RequestError, match="float16"):
        operator(A.geometry, torch.float16)


def test_describe_is_json_and_holds_the_whole_geometry():
    A = operator(CTGeometry.sparse_view(12, size=32, kind="fan"))
    said = json.loads(json.dumps(A.describe()))
    assert CTGeometry.from_dict(said["geometry"]) == A.geometry


def test_to_returns_the_operator_and_keeps_it_working():
    A = operator(CTGeometry.sparse_view(12, size=32))
    assert A.to("cpu") is A
    assert A.device == torch.device("cpu")
    assert A.forward(torch.ones(1, 1, 32, 32)).device == A.device


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_gives_the_same_numbers():
    geometry = CTGeometry.sparse_view(12, size=32)
    x = torch.rand(3, 1, 32, 32)
    expected = operator(geometry).forward(x)
    A = operator(geometry, device="cuda")
    torch.testing.assert_close(A.forward(x.cuda()).cpu(), expected, rtol=1e-5, atol=1e-4)
    assert A.pseudo_inverse(expected.cuda()).is_cuda


def test_building_warns_nobody(recwarn):
    CTOperator(CTGeometry.sparse_view(3, size=9), cache=MatrixCache(None))
    assert len(recwarn) == 0


# -- without a matrix ------------------------------------------------------------------------------


class NoMatrix(MatrixCache):
    """A cache that is never to be asked."""

    def __init__(self):
        super().__init__(None)

    def get(self, *_):
        raise AssertionError("a matrix was asked for")


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_once_gives_the_projections_of_the_matrix(name, dtype, bound):
    A = operator(GEOMETRIES[name], dtype)
    x = torch.randn(2, *A.image_shape, dtype=dtype, generator=torch.Generator().manual_seed(2))
    y = A.forward(x)
    once = A.forward_once(x)
    assert once.shape == y.shape
    assert (once - y).norm() <= bound * y.norm()


@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_closed_form_of_the_ray_lengths_is_the_projection_of_ones(name):
    A = operator(GEOMETRIES[name], torch.float64)
    ones = torch.ones(1, *A.image_shape, dtype=torch.float64)
    torch.testing.assert_close(A.ray_lengths(), A.forward(ones), rtol=1e-12, atol=1e-10)


def test_fbp_projections_once_and_ray_lengths_build_no_matrix():
    A = CTOperator(CTGeometry.sparse_view(12, size=32, kind="fan"), cache=NoMatrix())
    y = A.forward_once(torch.rand(1, 1, 32, 32))
    assert A.pseudo_inverse(y).shape == (1, 1, 32, 32)
    assert A.ray_lengths().shape == y.shape
    assert A.to("cpu").describe()["kind"] == "ct"
    with pytest.raises(AssertionError, match="a matrix"):
        A.forward(torch.rand(1, 1, 32, 32))


def test_fbp_works_where_a_matrix_would_be_refused(monkeypatch):
    """A hundred times less memory than the matrix is allowed."""
    monkeypatch.setattr("engine.physics.system_matrix.DEFAULT_BUDGET_BYTES", 10_000)
    geometry = CTGeometry.sparse_view(12, size=32)
    A = CTOperator(geometry, cache=MatrixCache(None))
    y = A.forward_once(torch.ones(1, 1, 32, 32))
    assert A.pseudo_inverse(y)[0, 0, 12:20, 12:20].mean() == pytest.approx(1.0, abs=0.1)
    with pytest.raises(Exception, match="system matrix"):
        check_budget(geometry, "float32")
    with pytest.raises(Exception, match="FBP needs none"):
        A.adjoint(y)
