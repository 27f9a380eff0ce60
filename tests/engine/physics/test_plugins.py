"""Foreign projectors: found without importing, called with the right units and angles."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.files.record import RunRecord
from engine.physics import plugins
from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.physics.matrix_cache import MatrixCache
from engine.physics.matrix_free import MatrixFreeCTOperator
from engine.physics.plugins import available_backends, make_ct_operator
from engine.runs.prepare import recorded_job
from engine.spec.errors import RequestError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALSCOPE_CACHE", str(tmp_path))


class FakeRadon:
    """Records how it was made and what it was asked."""

    made: list[FakeRadon]

    def __init__(self, det_count, angles, **options):
        self.det_count, self.angles, self.options = det_count, angles, options
        self.volume = options["volume"]
        self.made.append(self)

    def forward(self, x):
        assert x.is_contiguous()
        assert x.dtype == torch.float32
        assert tuple(x.shape[-2:]) == self.volume.size
        return torch.ones(*x.shape[:-2], len(self.angles), self.det_count)

    def backward(self, sinogram):
        assert sinogram.is_contiguous()
        return torch.full((*sinogram.shape[:-2], *self.volume.size), 2.0)


class FakeVolume:
    def __init__(self, center=(0.0, 0.0), voxel_size=(1.0, 1.0)):
        self.center, self.voxel_size, self.size = center, voxel_size, None

    def set_size(self, height, width):
        self.size = (height, width)


@pytest.fixture
def torch_radon(monkeypatch):
    """A stand-in for torch-radon 3 on a machine that seems to have CUDA."""
    module = types.ModuleType("torch_radon")
    made: list[FakeRadon] = []
    module.ParallelBeam = type("ParallelBeam", (FakeRadon,), {"made": made})
    module.FanBeam = type("FanBeam", (FakeRadon,), {"made": made})
    module.Volume2D = FakeVolume
    module.made = made
    monkeypatch.setitem(sys.modules, "torch_radon", module)
    monkeypatch.setattr(plugins, "_installed", lambda package: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return module


def test_nothing_foreign_is_imported_by_default():
    code = (
        "import sys; import engine.physics.plugins as p; p.available_backends();"
        "assert 'astra' not in sys.modules and 'torch_radon' not in sys.modules"
    )
    root = Path(plugins.__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_every_back_end_says_whether_it_can_be_used(monkeypatch):
    monkeypatch.setattr(plugins, "_installed", lambda package: False)
    status = available_backends()
    assert list(status) == ["native", "matrix-free", "astra", "torch-radon"]
    assert status["native"].available
    assert not status["astra"].available
    assert "pip install" in status["astra"].detail
    assert "conda install" in status["torch-radon"].detail


def test_torch_radon_without_cuda_is_not_available(monkeypatch):
    monkeypatch.setattr(plugins, "_installed", lambda package: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "CUDA" in available_backends()["torch-radon"].detail


def test_native_is_the_default():
    assert isinstance(make_ct_operator(CTGeometry.sparse_view(3, size=8)), CTOperator)


def test_an_unknown_or_missing_back_end_is_refused(monkeypatch):
    geometry = CTGeometry.sparse_view(3, size=8)
    with pytest.raises(RequestError, match="Unknown CT back end 'tigre'"):
        make_ct_operator(geometry, "tigre")
    monkeypatch.setattr(plugins, "_installed", lambda package: False)
    with pytest.raises(RequestError, match="not installed"):
        make_ct_operator(geometry, "astra")


def test_torch_radon_parallel_gets_pixel_units_and_a_tensor_of_angles(torch_radon):
    # three views: a tuple of three numbers would be taken for (start, end, count)
    geometry = CTGeometry.sparse_view(
        3, size=(8, 10), pixel_mm=0.5, pitch_mm=0.75, centre_offset_mm=(1.0, 2.0)
    )
    A = make_ct_operator(geometry, "torch-radon", "cpu")
    (radon,) = torch_radon.made
    assert type(radon).__name__ == "ParallelBeam"
    assert radon.det_count == geometry.detectors
    assert isinstance(radon.angles, torch.Tensor)
    np.testing.assert_allclose(radon.angles, geometry.angles_rad, rtol=1e-6)
    assert radon.options["det_spacing"] == pytest.approx(1.5)
    # rotation centre at (1, 2) mm, y up: the image is at (-2, +4) pixels from it, y down
    assert radon.volume.center == pytest.approx((-2.0, 4.0))
    assert radon.volume.voxel_size == (1.0, 1.0)
    # pixel lengths in, millimetres out, for both directions
    assert A.adjoint(torch.zeros(2, *A.measurement_shape)).unique().tolist() == [1.0]
    assert A.forward(torch.zeros(2, *A.image_shape)).unique().tolist() == [0.5]


def test_torch_radon_fan_gets_distances_in_pixels(torch_radon):
    geometry = CTGeometry.sparse_view(
        5, 360, size=8, pixel_mm=0.5, kind="fan", source_origin_mm=20.0, source_detector_mm=50.0
    )
    make_ct_operator(geometry, "torch-radon", "cpu")
    (radon,) = torch_radon.made
    assert type(radon).__name__ == "FanBeam"
    assert radon.options["src_dist"] == pytest.approx(40.0)
    assert radon.options["det_dist"] == pytest.approx(60.0)
    assert radon.options["det_spacing"] == pytest.approx(2.5)


def test_torch_radon_refuses_what_it_cannot_do(torch_radon):
    shifted = CTGeometry.sparse_view(3, size=8, detector_offset_mm=0.5)
    with pytest.raises(RequestError, match="cannot shift the detector"):
        make_ct_operator(shifted, "torch-radon")
    with pytest.raises(RequestError, match="at most 4096 views"):
        make_ct_operator(CTGeometry.sparse_view(5000, size=8), "torch-radon")


def test_torch_radon_says_that_its_adjoint_is_approximate(torch_radon):
    A = make_ct_operator(CTGeometry.sparse_view(3, size=8), "torch-radon", "cpu")
    assert "approximate" in A.describe()["projector"]
    assert "approximate" in type(A).__doc__


def test_a_package_that_fails_to_load_is_reported_in_one_sentence(torch_radon, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_radon", None)  # what import sees as "cannot load"
    with pytest.raises(RequestError, match="cannot be loaded"):
        make_ct_operator(CTGeometry.sparse_view(3, size=8), "torch-radon")


def test_every_back_end_shares_our_fbp(torch_radon):
    geometry = CTGeometry.sparse_view(9, size=8)
    y = torch.rand(2, 1, geometry.views, geometry.detectors)
    native = CTOperator(geometry, cache=MatrixCache(None))
    other = make_ct_operator(geometry, "torch-radon", "cpu")
    torch.testing.assert_close(other.pseudo_inverse(y), native.pseudo_inverse(y))


def test_auto_stores_small_matrices_only():
    small, large = (CTGeometry.sparse_view(n, size=s) for n, s in ((3, 8), (721, 512)))
    assert type(make_ct_operator(small)) is CTOperator
    assert type(make_ct_operator(large)) is MatrixFreeCTOperator
    assert type(make_ct_operator(small, "matrix-free")) is MatrixFreeCTOperator


def test_a_record_keeps_the_projector_it_was_made_with():
    job = {"input": "demo:ct", "solver": "fbp"}
    for backend in ("native", "matrix-free"):
        record = RunRecord(job, operator={"kind": "ct", "backend": backend})
        assert recorded_job(record, "it").acquisition == {"backend": backend}
    asked = RunRecord(job | {"acquisition": {"backend": "astra"}}, operator={"backend": "astra"})
    assert recorded_job(asked, "it").acquisition == {"backend": "astra"}
    assert recorded_job(RunRecord(job), "it").acquisition == {}
