"""Down-sampling: against Pillow's, exact adjoint, exact data step."""

import json

import numpy as np
import pytest
import torch
from helpers import dense_matrix, proximal_dense, relative
from PIL import Image

from engine.physics.blur import SuperResolution
from engine.spec.errors import RequestError


def noise(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("size", [(16, 24), (15, 17), (13, 16)])
@pytest.mark.parametrize("factor", [1, 2, 3, 4])
@pytest.mark.parametrize("boundary", ["circular", "zero"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_adjoint_is_the_exact_transpose(size, factor, boundary, dtype, tolerance):
    op = SuperResolution(factor, size, 2, boundary)
    x = noise(3, *op.image_shape, dtype=dtype)
    y = noise(3, *op.measurement_shape, dtype=dtype, seed=1)
    ax, aty = op.forward(x), op.adjoint(y)
    assert (ax.dtype, ax.shape, aty.shape) == (dtype, y.shape, x.shape)
    assert abs(float((ax * y).sum() - (x * aty).sum())) <= tolerance * float(ax.norm() * y.norm())


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_inside_it_is_pillows_bicubic_reduction(factor):
    side = 16 * factor
    x = noise(1, 1, side, side, dtype=torch.float32)
    small = Image.fromarray(x[0, 0].numpy()).resize((16, 16), Image.Resampling.BICUBIC)
    out = SuperResolution(factor, (side, side)).forward(x)[0, 0].numpy()
    np.testing.assert_allclose(out[3:-3, 3:-3], np.asarray(small)[3:-3, 3:-3], atol=1e-5)


def test_factor_one_changes_nothing():
    x = noise(2, 1, 9, 8)
    torch.testing.assert_close(SuperResolution(1, (9, 8)).forward(x), x)


@pytest.mark.parametrize(("size", "factor"), [((8, 12), 4), ((6, 8), 2), ((9, 6), 3)])
@pytest.mark.parametrize("rho", [1e-3, 0.7, torch.tensor([0.2, 3.0]).view(2, 1, 1, 1)])
def test_the_closed_form_is_the_dense_solve(size, factor, rho):
    op = SuperResolution(factor, size, 2)
    y, v = noise(2, *op.measurement_shape), noise(2, *op.image_shape, seed=1)
    assert relative(op.proximal(y, v, rho), proximal_dense(op, y, v, rho)) < 1e-10


def test_without_penalty_the_nearest_image_that_fits_is_taken():
    op = SuperResolution(4, (16, 12))
    v, y = noise(1, 1, 16, 12), noise(1, 1, 4, 3, seed=1)
    x = op.proximal(y, v, 0.0)
    torch.testing.assert_close(op.forward(x), y)
    a = dense_matrix(op)
    expected = v.flatten() + torch.linalg.pinv(a) @ (y.flatten() - a @ v.flatten())
    torch.testing.assert_close(x.flatten(), expected)


def test_where_there_is_no_closed_form_it_says_so():
    odd = SuperResolution(4, (15, 16))
    assert odd.proximal(noise(1, 1, 4, 4), noise(1, 1, 15, 16), 1.0) is None
    dark = SuperResolution(4, (16, 16), boundary="zero")
    assert dark.proximal(noise(1, 1, 4, 4), noise(1, 1, 16, 16), 1.0) is None


@pytest.mark.parametrize("size", [(16, 12), (15, 13)])
def test_the_norm_is_the_largest_singular_value(size):
    op = SuperResolution(4, size)
    expected = float(torch.linalg.matrix_norm(dense_matrix(op), 2))
    assert op.norm() == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("size", [(32, 32), (31, 30)])
def test_the_quick_image_explains_a_smooth_scene(size):
    rows = torch.linspace(0, 2 * np.pi, size[0] + 1, dtype=torch.float64)[:-1]
    columns = torch.linspace(0, 2 * np.pi, size[1] + 1, dtype=torch.float64)[:-1]
    x = (rows.sin()[:, None] + columns.cos())[None, None] - 0.5
    op = SuperResolution(4, size)
    quick = op.pseudo_inverse(op.forward(x))
    assert quick.shape == x.shape
    assert relative(quick, x) < (0.05 if size == (32, 32) else 0.3)


def test_it_describes_itself_and_refuses_nonsense():
    facts = json.loads(json.dumps(SuperResolution(4, (16, 16)).describe()))
    assert (facts["kind"], facts["factor"]) == ("super-resolution", 4)
    with pytest.raises(RequestError, match="cannot shrink 20 times"):
        SuperResolution(20, (16, 16))
