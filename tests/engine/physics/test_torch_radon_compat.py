"""The look-alike of torch-radon: its conventions, its scaling, and our adapter on top of it."""

from __future__ import annotations

import inspect
import math
import sys

import numpy as np
import pytest
import torch

from engine.physics import plugins
from engine.physics import torch_radon_compat as torch_radon
from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.physics.plugins import make_ct_operator
from engine.spec.errors import RequestError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALSCOPE_CACHE", str(tmp_path))


def _disc(size: int, radius: float) -> torch.Tensor:
    """Grey at the edge by area, from 8 x 8 points in each pixel."""
    at = (np.arange(8 * size) + 0.5) / 8 - size / 2
    inside = (at[:, None] ** 2 + at[None] ** 2 <= radius**2).astype(np.float32)
    return torch.from_numpy(inside.reshape(size, 8, size, 8).mean((1, 3)))


def _blocks(image: np.ndarray) -> np.ndarray:
    """Means of 8 x 8 pixels: single ones depend on how a ray's width is taken."""
    rows, columns = image.shape
    return image.reshape(rows // 8, 8, columns // 8, 8).mean((1, 3))


def test_the_signatures_are_those_of_the_packages():
    def names(kind: type) -> list[str]:
        return list(inspect.signature(kind).parameters)

    assert names(torch_radon.Radon) == [
        "resolution", "angles", "det_count", "det_spacing", "clip_to_circle",
    ]  # fmt: skip
    assert names(torch_radon.RadonFanbeam) == [
        "resolution", "angles", "source_distance", "det_distance", "det_count", "det_spacing",
        "clip_to_circle",
    ]  # fmt: skip
    assert names(torch_radon.ParallelBeam) == ["det_count", "angles", "det_spacing", "volume"]
    assert names(torch_radon.FanBeam) == [
        "det_count", "angles", "src_dist", "det_dist", "det_spacing", "volume",
    ]  # fmt: skip


def test_a_point_lies_where_the_packages_see_it():
    """Their kernels turn a ray so that s = x cos t - (row - centre) sin t."""
    x = torch.zeros(33, 33)
    x[6, 25] = 1  # 10 up, 9 to the right
    for t in (0.0, 0.4, math.pi / 2, 2.0):
        seen = 9 * math.cos(t) + 10 * math.sin(t)
        for radon in (
            torch_radon.ParallelBeam(49, [t]),
            torch_radon.Radon(33, np.array([t]), det_count=49),
        ):
            view = radon.forward(x)[0]
            s = torch.arange(49.0) - 24
            assert float((view * s).sum() / view.sum()) == pytest.approx(seen, abs=0.15)


def test_a_disc_has_its_chords_and_comes_back_by_filtered_back_projection():
    x = _disc(64, 20)[None, None].repeat(2, 1, 1, 1)
    for spacing in (1.0, 0.8):
        radon = torch_radon.ParallelBeam(128, (0, math.pi, 90), spacing)
        sinogram = radon.forward(x)
        assert sinogram.shape == (2, 1, 90, 128)
        s = (torch.arange(128.0) - 63.5) * spacing
        chords = 2 * (400 - s**2).clamp_min(0).sqrt()
        assert (sinogram[0, 0, 0] - chords).abs().max() < 1.6
        back = radon.backward(radon.filter_sinogram(sinogram))
        # the filter takes bins of width 1, the back-projection divides by the true width
        assert float(back[0, 0, 24:40, 24:40].mean()) == pytest.approx(1, rel=0.01)


def test_back_projection_is_scaled_as_theirs():
    """They read each view where a pixel's centre falls, and divide by the bin's width."""
    angles, spacing = np.linspace(0, math.pi, 24, endpoint=False), 1.25
    s = (np.arange(80) - 39.5) * spacing
    view = np.exp(-((s / 12) ** 2))
    at = np.arange(48) - 23.5
    x, y = at[None, :], -at[:, None]
    theirs = sum(np.interp(x * np.cos(t) + y * np.sin(t), s, view) for t in angles) / spacing
    radon = torch_radon.Radon(48, angles, 80, spacing)
    ours = radon.backprojection(torch.from_numpy(np.tile(view, (24, 1))))
    np.testing.assert_allclose(_blocks(ours.numpy()), _blocks(theirs), rtol=0.01)


def test_a_fan_is_scaled_as_theirs():
    """As above with the magnification of each pixel, once for the place and once for the weight."""
    angles, source, detector = np.linspace(0, 2 * math.pi, 30, endpoint=False), 90.0, 60.0
    s = (np.arange(120) - 59.5) * 1.5
    view = np.exp(-((s / 20) ** 2))
    at = np.arange(32) - 15.5
    x, y = at[None, :], -at[:, None]
    theirs = np.zeros((32, 32))
    for t in angles:
        along = source - (x * np.sin(t) - y * np.cos(t))
        more = (source + detector) / along
        theirs += np.interp((x * np.cos(t) + y * np.sin(t)) * more, s, view) * more / 1.5
    radon = torch_radon.RadonFanbeam(32, angles, source, detector, 120, 1.5)
    ours = radon.backward(torch.from_numpy(np.tile(view, (30, 1))))
    np.testing.assert_allclose(_blocks(ours.numpy()), _blocks(theirs), rtol=0.01)


def test_backward_is_the_transpose_and_both_can_be_differentiated():
    radon = torch_radon.FanBeam(40, (0, 2 * math.pi, 12), 60.0)
    x, y = torch.rand(3, 24, 20, requires_grad=True), torch.rand(3, 12, 40)
    product = (radon.forward(x) * y).sum()
    product.backward()
    torch.testing.assert_close(x.grad, radon.backward(y))


def test_pixels_of_another_size_and_place():
    x = _disc(40, 12)
    volume = torch_radon.Volume2D(center=(3.0, -2.0), voxel_size=(0.5, 0.5))
    radon = torch_radon.ParallelBeam(64, [0.0, math.pi / 2], 0.5, volume)
    sinogram = radon.forward(x)
    s = (torch.arange(64.0) - 31.5) * 0.5
    assert float(sinogram.max()) == pytest.approx(12, rel=0.02)  # a diameter of 24 pixels
    means = (sinogram * s).sum(-1) / sinogram.sum(-1)
    torch.testing.assert_close(means, torch.tensor([3.0, 2.0]), atol=0.02, rtol=0)  # y is down
    with pytest.raises(RequestError, match="square"):
        torch_radon.Volume2D(voxel_size=(1.0, 2.0))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_our_adapter_on_the_look_alike_is_our_own_operator(monkeypatch, version, kind):
    module = torch_radon
    if version == 1:
        module = type("torch_radon", (), {name: getattr(torch_radon, name) for name in (
            "Radon", "RadonFanbeam")})  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch_radon", module)
    monkeypatch.setattr(plugins, "_installed", lambda package: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    fan = {"source_origin_mm": 30.0, "source_detector_mm": 55.0} if kind == "fan" else {}
    centre = {} if version == 1 else {"centre_offset_mm": (0.7, -1.1)}
    geometry = CTGeometry.sparse_view(
        7, 180, size=16, pixel_mm=0.6, pitch_mm=0.7, kind=kind, **fan, **centre
    )
    foreign, own = make_ct_operator(geometry, "torch-radon", "cpu"), CTOperator(geometry)
    x, y = torch.rand(2, *own.image_shape), torch.rand(2, *own.measurement_shape)
    torch.testing.assert_close(foreign.forward(x), own.forward(x))
    torch.testing.assert_close(foreign.adjoint(y), own.adjoint(y))


def test_version_1_refuses_what_it_cannot_do(monkeypatch):
    module = type("torch_radon", (), {"Radon": torch_radon.Radon})
    monkeypatch.setitem(sys.modules, "torch_radon", module)
    monkeypatch.setattr(plugins, "_installed", lambda package: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for geometry in (
        CTGeometry.sparse_view(3, size=20),
        CTGeometry.sparse_view(3, size=(16, 32)),
        CTGeometry.sparse_view(3, size=16, centre_offset_mm=(1.0, 0.0)),
    ):
        with pytest.raises(RequestError, match="square images"):
            make_ct_operator(geometry, "torch-radon", "cpu")


def test_what_is_missing_is_said():
    with pytest.raises(RequestError, match="no cone beam"):
        torch_radon.ConeBeam(8, [0.0])
    with pytest.raises(RequestError, match="clipped"):
        torch_radon.Radon(16, [0.0], clip_to_circle=True)
    with pytest.raises(RequestError, match="call forward"):
        torch_radon.ParallelBeam(8, [0.0]).backward(torch.zeros(1, 8))
    with pytest.raises(RequestError, match="Unknown filter"):
        torch_radon.ParallelBeam(8, [0.0]).filter_sinogram(torch.zeros(1, 8), "butter")
