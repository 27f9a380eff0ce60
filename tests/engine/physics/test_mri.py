"""The MRI operators: exact adjoints, exact proximal steps, honest descriptions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from engine.physics.fourier import fft2c, ifft2c, to_channels, to_complex
from engine.physics.masks import build_mask, given
from engine.physics.mri import MultiCoilMRI, SingleCoilMRI
from engine.physics.sensitivity import birdcage_maps
from engine.spec.errors import RequestError

SIZES = [(32, 32), (31, 33), (16, 27), (1, 8)]


def noise(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def operators(size, batch=1):
    mask = build_mask("fastmri", size[1], 3)
    plane = given(np.random.default_rng(1).random(size) < 0.5)
    maps = birdcage_maps(4, *size, dtype=torch.complex128)
    own = torch.stack([maps * (1 + b) for b in range(batch)])
    return {
        "single": SingleCoilMRI(mask, size),
        "single, plane mask": SingleCoilMRI(plane, size),
        "multi": MultiCoilMRI(mask, maps),
        "multi, maps per slice": MultiCoilMRI(mask, own),
    }


KINDS = list(operators((8, 8)))


def in_dtype(op, dtype):
    if dtype == torch.float32 and isinstance(op, MultiCoilMRI):
        op.maps = op.maps.to(torch.complex64)
    return op


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_adjoint_is_the_exact_transpose(kind, size, dtype, tolerance):
    op = in_dtype(operators(size, batch=3)[kind], dtype)
    x = noise(3, *op.image_shape, dtype=dtype)
    y = noise(3, *op.measurement_shape, dtype=dtype, seed=1)
    ax, aty = op.forward(x), op.adjoint(y)
    assert ax.dtype == aty.dtype == dtype
    assert ax.shape == y.shape
    assert aty.shape == x.shape
    gap = ((ax * y).sum() - (x * aty).sum()).abs()
    assert gap <= tolerance * ax.norm() * y.norm()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_adjoint_is_the_conjugate_transpose_over_the_complex_numbers(kind, size, dtype, tolerance):
    op = in_dtype(operators(size, batch=2)[kind], dtype)
    x = noise(2, *op.image_shape, dtype=dtype)
    y = noise(2, *op.measurement_shape, dtype=dtype, seed=1)
    left = torch.vdot(to_complex(y).flatten(), to_complex(op.forward(x)).flatten())
    right = torch.vdot(to_complex(op.adjoint(y)).flatten(), to_complex(x).flatten())
    assert (left - right).abs() <= tolerance * op.forward(x).norm() * y.norm()


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_processed_slice_by_slice(kind):
    op = operators((12, 14), batch=2)[kind]
    x = noise(2, *op.image_shape)
    whole = op.forward(x)
    if kind == "multi, maps per slice":
        alone = [MultiCoilMRI(op.mask, op.maps[b]).forward(x[b : b + 1]) for b in range(2)]
    else:
        alone = [op.forward(x[b : b + 1]) for b in range(2)]
    torch.testing.assert_close(whole, torch.cat(alone))


@pytest.mark.parametrize("size", SIZES)
def test_the_fourier_pair_is_unitary_and_centred(size):
    x = noise(2, 2, *size)
    torch.testing.assert_close(ifft2c(fft2c(x)), x)
    assert fft2c(x).norm() == pytest.approx(float(x.norm()))
    # A constant image has all its energy at the centre of k-space, at N // 2.
    k = fft2c(torch.ones(1, 2, *size, dtype=torch.float64))
    centre = (size[0] // 2, size[1] // 2)
    assert k[0, 0][centre] == pytest.approx(math.sqrt(size[0] * size[1]))
    assert k.norm() == pytest.approx(float(k[0, :, centre[0], centre[1]].norm()))


def test_channels_pair_real_and_imaginary_parts_coil_by_coil():
    z = torch.complex(noise(2, 3, 4, 5), noise(2, 3, 4, 5, seed=1))
    x = to_channels(z)
    torch.testing.assert_close(x[:, 4], z[:, 2].real)
    torch.testing.assert_close(x[:, 5], z[:, 2].imag)
    torch.testing.assert_close(to_complex(x), z)
    with pytest.raises(RequestError, match="even number"):
        to_complex(x[:, :3])


@pytest.mark.parametrize("kind", KINDS)
def test_backpropagation_through_the_operator_is_its_adjoint(kind):
    op = operators((12, 9), batch=2)[kind]
    x = noise(2, *op.image_shape).requires_grad_()
    y = noise(2, *op.measurement_shape, seed=1).requires_grad_()
    (back,) = torch.autograd.grad(op.forward(x), x, y.detach())
    torch.testing.assert_close(back, op.adjoint(y.detach()))
    (forth,) = torch.autograd.grad(op.adjoint(y), y, x.detach())
    torch.testing.assert_close(forth, op.forward(x.detach()))


def test_the_proximal_step_is_differentiable_even_without_penalty():
    op = SingleCoilMRI(build_mask("equispaced", 6, 2), (3, 6))
    y, v = noise(1, 2, 3, 6), noise(1, 2, 3, 6, seed=1).requires_grad_()
    op.proximal(y, v, 0.0, torch.zeros_like(y)).sum().backward()
    assert torch.isfinite(v.grad).all()


def test_unsampled_lines_are_neither_made_nor_read():
    op = SingleCoilMRI(build_mask("equispaced", 16, 4), (8, 16))
    y = noise(1, 2, 8, 16)
    dirty = torch.where(op.mask.to_tensor(), y, torch.full_like(y, 7.0))
    torch.testing.assert_close(op.adjoint(dirty), op.adjoint(y))
    assert op.forward(noise(1, 2, 8, 16))[..., 1::4].abs().max() == 0


def dense(op):
    """A as a matrix, one column per unit image."""
    n = math.prod(op.image_shape)
    return op.forward(torch.eye(n, dtype=torch.float64).reshape(n, *op.image_shape)).flatten(1).T


@pytest.mark.parametrize("size", [(6, 8), (5, 7)])
@pytest.mark.parametrize("rho", [1e-3, 0.7, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form_proximal_solves_the_normal_equations(size, rho, weighted):
    op = SingleCoilMRI(build_mask("fastmri", size[1], 3), size)
    y = op.forward(noise(2, *op.image_shape)) + 0.1 * noise(2, *op.measurement_shape, seed=5)
    v = noise(2, *op.image_shape, seed=2)
    w = noise(2, *op.measurement_shape, seed=3).exp() if weighted else None
    x = op.proximal(y, v, rho, w)
    a = dense(op)
    for b in range(2):
        wb = torch.ones(a.shape[0], dtype=torch.float64) if w is None else w[b].flatten()
        system = a.T @ (wb[:, None] * a) + rho * torch.eye(a.shape[1], dtype=torch.float64)
        expected = torch.linalg.solve(system, a.T @ (wb * y[b].flatten()) + rho * v[b].flatten())
        torch.testing.assert_close(x[b].flatten(), expected, rtol=1e-8, atol=1e-8)
    low = op.proximal(y.float(), v.float(), rho, None if w is None else w.float())
    torch.testing.assert_close(low.double(), x, rtol=1e-5, atol=1e-5)


def test_without_penalty_the_proximal_step_is_the_projection_onto_the_data():
    op = SingleCoilMRI(build_mask("inversebench", 9, 3), (6, 9))
    y = op.forward(noise(1, *op.image_shape))
    v = noise(1, *op.image_shape, seed=2)
    x = op.proximal(y, v, 0.0)
    torch.testing.assert_close(op.forward(x), y)
    a = dense(op)
    expected = v.flatten() + torch.linalg.pinv(a) @ (y.flatten() - a @ v.flatten())
    torch.testing.assert_close(x.flatten(), expected)
    # Positive weights do not move the point that fits the data exactly.
    torch.testing.assert_close(op.proximal(y, v, 0.0, noise(1, *y.shape[1:]).exp()), x)


def test_a_sample_without_weight_or_penalty_keeps_the_prior_value():
    op = SingleCoilMRI(build_mask("equispaced", 8, 2), (4, 8))
    y, v = noise(1, 2, 4, 8), noise(1, 2, 4, 8, seed=1)
    torch.testing.assert_close(op.proximal(y, v, 0.0, torch.zeros_like(y)), v)


@pytest.mark.parametrize("shape", [(3,), (3, 1, 1, 1)])
def test_rho_may_differ_between_samples(shape):
    op = SingleCoilMRI(build_mask("fastmri", 12, 3), (10, 12))
    y, v = noise(3, *op.measurement_shape), noise(3, *op.image_shape, seed=1)
    rhos = [0.0, 0.5, 4.0]
    together = op.proximal(y, v, torch.tensor(rhos).reshape(shape))
    for b, rho in enumerate(rhos):
        alone = op.proximal(y[b : b + 1], v[b : b + 1], rho)
        torch.testing.assert_close(together[b : b + 1], alone)


def test_single_coil_norm_is_one():
    op = SingleCoilMRI(build_mask("random", 24, 4), (20, 24))
    assert op.norm() == 1.0
    assert torch.linalg.svdvals(dense(SingleCoilMRI(build_mask("random", 8, 4), (6, 8))))[
        0
    ] == pytest.approx(1.0)


def test_single_coil_zero_filled_image_is_the_moore_penrose_inverse():
    op = SingleCoilMRI(build_mask("fastmri", 8, 3), (5, 8))
    y = noise(1, *op.measurement_shape)
    expected = torch.linalg.pinv(dense(op)) @ y.flatten()
    torch.testing.assert_close(op.pseudo_inverse(y).flatten(), expected)


def test_multi_coil_norm_matches_the_largest_singular_value():
    op = MultiCoilMRI(build_mask("fastmri", 8, 3), 2 * birdcage_maps(3, 6, 8))
    assert op.norm(100) == pytest.approx(float(torch.linalg.svdvals(dense(op))[0]), rel=1e-3)


def test_fully_sampled_coils_return_the_image_whatever_the_scale_of_the_maps():
    maps = 3 * birdcage_maps(5, 20, 21, dtype=torch.complex128)
    op = MultiCoilMRI(build_mask("equispaced", 21, 1), maps)
    x = noise(2, 2, 20, 21)
    torch.testing.assert_close(op.pseudo_inverse(op.forward(x)), x)


def test_pixels_no_coil_sees_stay_finite_and_empty():
    maps = birdcage_maps(3, 12, 12, dtype=torch.complex128)
    maps[:, :4] = 0
    op = MultiCoilMRI(build_mask("fastmri", 12, 2), maps)
    image = op.pseudo_inverse(noise(1, *op.measurement_shape))
    assert torch.isfinite(image).all()
    assert image[:, :, :4].abs().max() == 0


def test_birdcage_maps_are_smooth_normalised_and_different():
    maps = birdcage_maps(8, 65, 48)
    torch.testing.assert_close(maps.abs().square().sum(0), torch.ones(65, 48))
    assert torch.diff(maps, dim=-1).abs().max() < 0.1
    assert torch.diff(maps, dim=-2).abs().max() < 0.1
    assert torch.linalg.matrix_rank(maps.flatten(1)) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_description_is_json_and_names_the_mask_and_true_acceleration(kind):
    op = operators((16, 27))[kind]
    record = json.loads(json.dumps(op.describe()))
    assert record["mask"] == op.mask.to_dict()
    assert record["true_acceleration"] == op.mask.true_acceleration
    if isinstance(op, MultiCoilMRI):
        assert record["coils"] == 4
        assert len(record["maps_sha256"]) == 64


@pytest.mark.parametrize("kind", KINDS)
def test_moving_returns_the_operator_itself(kind):
    op = operators((8, 8))[kind]
    assert op.to("cpu") is op
    assert op.device == torch.device("cpu")
    assert op.to("meta").device.type == "meta"


def test_mismatched_requests_are_refused():
    mask = build_mask("fastmri", 32, 4)
    with pytest.raises(RequestError, match="does not fit"):
        SingleCoilMRI(mask, (32, 31))
    with pytest.raises(RequestError, match="does not fit"):
        SingleCoilMRI(given(np.ones((16, 32))), (32, 32))
    with pytest.raises(RequestError, match="must be complex"):
        MultiCoilMRI(mask, torch.ones(4, 32, 32))
    with pytest.raises(RequestError, match="NaN"):
        MultiCoilMRI(mask, torch.full((4, 32, 32), float("nan"), dtype=torch.complex64))
    with pytest.raises(RequestError, match="zero everywhere"):
        MultiCoilMRI(mask, torch.zeros((4, 32, 32), dtype=torch.complex64))
    with pytest.raises(RequestError, match="at least one coil"):
        birdcage_maps(0, 32, 32)
