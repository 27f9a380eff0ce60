"""Pixels that are squares and bins that have a width."""

import pytest
import torch

from engine.physics.aperture import ApertureCT
from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.physics.simulate import fine_line_integrals
from engine.physics.units import hu_to_mu

SCANS = {
    "parallel": {"views": 40, "size": 96, "pixel_mm": 3.0},
    "wide bins": {"views": 40, "size": 96, "pixel_mm": 3.0, "detectors": 44, "pitch_mm": 7.0},
    "fan": {
        **{"views": 40, "angular_range_deg": 360, "size": 96, "pixel_mm": 3.0, "kind": "fan"},
        **{"source_origin_mm": 595.0, "source_detector_mm": 1086.5},
    },
}


@pytest.fixture(scope="module")
def blobs():
    """Gaussian blobs of SD 1.5 pixels, on pixels a quarter as large and as means over pixels."""
    at = (torch.arange(4 * 96) + 0.5) / 4
    centres = torch.rand(30, 2, generator=torch.Generator().manual_seed(0)) * 60 + 18
    parts = [
        torch.exp(-((at[:, None] - row) ** 2 + (at - column) ** 2) / (2 * 1.5**2))
        for row, column in centres
    ]
    fine = torch.stack(parts).sum(0)[None, None] * 1000 - 1000
    return fine, torch.nn.functional.avg_pool2d(fine, 4)


@pytest.mark.parametrize("scan", SCANS)
def test_the_adjoint_is_the_transpose(scan):
    A = ApertureCT(CTOperator(CTGeometry.sparse_view(**SCANS[scan]), dtype=torch.float64))
    x = torch.randn(2, *A.image_shape, dtype=torch.float64)
    y = torch.randn(2, *A.measurement_shape, dtype=torch.float64)
    there, back = (A.forward(x) * y).sum(), (x * A.adjoint(y)).sum()
    assert float(there) == pytest.approx(float(back), rel=1e-12)
    weights = torch.rand_like(y)
    assert torch.allclose(A.normal(x, weights), A.adjoint(weights * A.forward(x)))
    assert torch.allclose(A.ray_lengths(), A.forward(torch.ones_like(x[:1])), rtol=1e-6, atol=1e-6)
    assert torch.allclose(A.forward_once(x), A.forward(x))


@pytest.mark.parametrize("scan", SCANS)
def test_it_is_nearer_to_what_a_finer_grid_measures_than_lines_are(blobs, scan):
    fine, image = blobs
    geometry = CTGeometry.sparse_view(**SCANS[scan])
    lines = CTOperator(geometry)
    truth, x = fine_line_integrals(fine, geometry, 4), hu_to_mu(image)
    of_lines = (lines.forward(x) - truth).norm()
    of_squares = (ApertureCT(lines).forward(x) - truth).norm()
    assert of_squares < 0.5 * of_lines


def test_what_does_not_change_along_the_detector_stays():
    A = ApertureCT(CTOperator(CTGeometry.sparse_view(**SCANS["parallel"])))
    flat = torch.full((1, *A.measurement_shape), 3.0)
    assert torch.equal(A._sharpen(flat), flat)


def test_a_bin_as_fine_as_the_image_sharpens_no_more_than_twofold():
    made = CTGeometry.sparse_view(views=3, size=16, pixel_mm=8.0, detectors=100, pitch_mm=1.0)
    A = ApertureCT(CTOperator(made))
    finest = torch.ones(1, *A.measurement_shape)
    finest[..., ::2] = -1
    assert float(A._sharpen(finest)[..., 1:-1].abs().max()) == pytest.approx(2.0)
