"""Blur: against scipy's convolution, exact adjoint, exact data step."""

import json
import math

import numpy as np
import pytest
import torch
from helpers import dense_matrix, proximal_dense, relative
from scipy import ndimage

from engine.physics.blur import Blur, gaussian_kernel, motion_kernel
from engine.spec.errors import RequestError

SIZES = [(16, 16), (15, 17), (12, 9), (1, 8)]
BOUNDARIES = {"circular": "wrap", "zero": "constant"}


def noise(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def lopsided_kernel():
    """No symmetry at all, so that a flipped or shifted kernel cannot pass."""
    return noise(5, 3, seed=9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_adjoint_is_the_exact_transpose(size, boundary, channels, dtype, tolerance):
    op = Blur(lopsided_kernel(), size, channels, boundary)
    x = noise(3, *op.image_shape, dtype=dtype)
    y = noise(3, *op.measurement_shape, dtype=dtype, seed=1)
    ax, aty = op.forward(x), op.adjoint(y)
    assert ax.dtype == aty.dtype == dtype
    assert ax.shape == y.shape == aty.shape
    assert abs(float((ax * y).sum() - (x * aty).sum())) <= tolerance * float(ax.norm() * y.norm())


@pytest.mark.parametrize("size", [(16, 16), (15, 17), (12, 9)])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_it_is_the_convolution_of_scipy(size, boundary):
    kernel, x = lopsided_kernel(), noise(2, 2, *size)
    out = Blur(kernel, size, 2, boundary).forward(x)
    for image, blurred in zip(x.reshape(-1, *size), out.reshape(-1, *size), strict=True):
        expected = ndimage.convolve(
            image.numpy(), kernel.numpy(), mode=BOUNDARIES[boundary], cval=0.0
        )
        np.testing.assert_allclose(blurred.numpy(), expected, atol=1e-12)


def test_a_kernel_larger_than_the_image_wraps_around():
    x, op = noise(1, 1, 6, 5), Blur(gaussian_kernel(3.0), (6, 5))
    expected = ndimage.gaussian_filter(x[0, 0].numpy(), 3.0, mode="wrap")
    np.testing.assert_allclose(op.forward(x)[0, 0].numpy(), expected, atol=1e-12)


def test_the_gaussian_kernel_is_scipys():
    x = noise(1, 1, 40, 33)
    out = Blur(gaussian_kernel(1.7), (40, 33), boundary="zero").forward(x)[0, 0].numpy()
    expected = ndimage.gaussian_filter(x[0, 0].numpy(), 1.7, mode="constant")
    np.testing.assert_allclose(out, expected, atol=1e-12)


@pytest.mark.parametrize(("length", "angle"), [(1.0, 0), (9.0, 0), (15.0, 45), (7.5, 110)])
def test_motion_spreads_a_point_along_its_direction(length, angle):
    kernel = motion_kernel(length, angle)
    assert float(kernel.sum()) == pytest.approx(1)
    assert float(kernel.min()) >= 0
    torch.testing.assert_close(kernel, kernel.flip((0, 1)))
    # Second moments: length^2 / 12 along the motion, plus at most 1/4 for pixels of a width.
    offset = torch.arange(len(kernel), dtype=torch.float64) - len(kernel) // 2
    t = math.radians(angle)
    along = offset[None, :] * math.cos(t) - offset[:, None] * math.sin(t)
    across = offset[None, :] * math.sin(t) + offset[:, None] * math.cos(t)
    assert float((kernel * along**2).sum()) == pytest.approx(length**2 / 12, abs=0.26)
    assert float((kernel * across**2).sum()) < 0.26


def test_horizontal_motion_is_a_box():
    """9 pixels of light, the two at the ends shared with their neighbours."""
    kernel = motion_kernel(9.0, 0)
    row = kernel[6]
    assert float(kernel.sum()) == pytest.approx(float(row.sum())), "nothing beside the row"
    np.testing.assert_allclose(row[3:10].numpy(), 1 / 9, atol=1e-12)


@pytest.mark.parametrize("size", [(8, 6), (7, 5)])
@pytest.mark.parametrize("rho", [1e-3, 0.7, torch.tensor([0.2, 3.0]).view(2, 1, 1, 1)])
def test_the_closed_form_is_the_dense_solve(size, rho):
    op = Blur(lopsided_kernel(), size, 2)
    y, v = noise(2, *op.measurement_shape), noise(2, *op.image_shape, seed=1)
    assert relative(op.proximal(y, v, rho), proximal_dense(op, y, v, rho)) < 1e-10


def test_without_penalty_what_the_blur_erased_stays_as_it_was():
    box = Blur(torch.full((1, 4), 0.25, dtype=torch.float64), (6, 8))  # erases some frequencies
    v, y = noise(1, 1, 6, 8), box.forward(noise(1, 1, 6, 8, seed=1))
    x = box.proximal(y, v, 0.0)
    torch.testing.assert_close(box.forward(x), y)
    a = dense_matrix(box)
    erased = torch.eye(48, dtype=torch.float64) - torch.linalg.pinv(a, rtol=1e-10) @ a
    assert float(erased.square().sum()) > 1, "there is something to keep"
    torch.testing.assert_close(erased @ x.flatten(), erased @ v.flatten())


def test_where_there_is_no_closed_form_it_says_so():
    y = noise(1, 1, 8, 8)
    assert Blur(lopsided_kernel(), (8, 8), boundary="zero").proximal(y, y, 1.0) is None
    assert Blur(lopsided_kernel(), (8, 8)).proximal(y, y, 1.0, torch.ones_like(y)) is None


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_the_norm_is_the_largest_singular_value(boundary):
    op = Blur(gaussian_kernel(1.0), (9, 8), boundary=boundary)
    expected = float(torch.linalg.matrix_norm(dense_matrix(op), 2))
    assert op.norm() == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_the_quick_image_is_sharper_than_the_measurement(boundary):
    x = torch.zeros(1, 1, 48, 48, dtype=torch.float64)
    x[..., 16:32, 14:30] = 1
    op = Blur(gaussian_kernel(2.0), (48, 48), boundary=boundary, wiener=1e-3)
    y = op.forward(x)
    assert float((op.pseudo_inverse(y) - x).norm()) < 0.7 * float((y - x).norm())
    flat = torch.full_like(y, -0.8)
    torch.testing.assert_close(
        op.pseudo_inverse(op.forward(flat))[..., 20:28, 20:28],
        flat[..., 20:28, 20:28],
        atol=0.02,
        rtol=0,
    )


def test_gradients_pass_through():
    op, x = Blur(lopsided_kernel(), (9, 8), boundary="zero"), noise(1, 1, 9, 8).requires_grad_()
    y = noise(1, 1, 9, 8, seed=1)
    (back,) = torch.autograd.grad(op.forward(x), x, y)
    torch.testing.assert_close(back, op.adjoint(y))


def test_it_describes_itself_and_refuses_nonsense():
    text = json.dumps(Blur(gaussian_kernel(2.0), (8, 8), about={"sd": 2.0}).describe())
    assert json.loads(text)["kernel_shape"] == [17, 17]
    with pytest.raises(RequestError, match="circular or zero"):
        Blur(gaussian_kernel(1.0), (8, 8), boundary="mirror")
    with pytest.raises(RequestError, match="finite"):
        Blur(torch.full((3, 3), float("nan")), (8, 8))
