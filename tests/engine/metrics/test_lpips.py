"""LPIPS is optional, and its network is given the range it expects."""

from __future__ import annotations

import sys

import pytest
import torch

from engine import metrics
from engine.metrics import profile as lpips_module
from engine.physics.units import IntensityMap

HU = IntensityMap("hu", 800.0, 0.0)

FAKE = """
seen = []

class LPIPS:
    def __init__(self, net, verbose):
        assert net == "squeeze"
        {failure}

    def eval(self):
        return self

    def __call__(self, a, b):
        assert a.shape[1] == b.shape[1] == 3
        assert (a[:, 0] == a[:, 2]).all()
        seen.append((float(a.min()), float(a.max()), float(b.min()), float(b.max())))
        return (a - b).abs().mean(dim=(1, 2, 3), keepdim=True)
"""


@pytest.fixture
def fresh(monkeypatch):
    """No cached network, and no module left behind."""
    lpips_module._network.cache_clear()
    monkeypatch.delitem(sys.modules, "lpips", raising=False)
    yield monkeypatch
    lpips_module._network.cache_clear()
    sys.modules.pop("lpips", None)


@pytest.fixture
def install(fresh, tmp_path):
    def put(failure="pass", backbone=True):
        (tmp_path / "lpips.py").write_text(FAKE.format(failure=failure))
        fresh.syspath_prepend(tmp_path)
        fresh.setenv("TORCH_HOME", str(tmp_path))
        if backbone:
            folder = tmp_path / "hub" / "checkpoints"
            folder.mkdir(parents=True)
            (folder / "squeezenet1_1-0.pth").touch()

    return put


def ct_pair(batch=1):
    reference = torch.linspace(-1.5, 1.5, 40 * 40).reshape(1, 1, 40, 40).repeat(batch, 1, 1, 1)
    return reference.flip(-1) * 1.2, reference


def test_without_the_package_there_is_no_lpips(fresh):
    fresh.setattr(lpips_module, "lpips_available", lambda: False)
    result = metrics.evaluate("ct-dcpnpdp", *ct_pair(), intensity=HU)
    assert not any(name.startswith("lpips") for name in result)


def test_a_backbone_that_is_not_here_is_not_fetched(install):
    install(backbone=False)
    result = metrics.evaluate("ct-dcpnpdp", *ct_pair(), intensity=HU)
    assert "lpips" not in result
    assert "lpips" not in sys.modules


def test_ct_images_reach_the_network_in_minus_one_to_one(install):
    install()
    result = metrics.evaluate("ct-dcpnpdp", *ct_pair(batch=10), intensity=HU)
    seen = sys.modules["lpips"].seen
    # Ten slices go through in two pieces, first correctly scaled, then in the published way.
    assert seen[:2] == [(-1, 1, -1, 1)] * 2
    assert seen[2:] == [(-2, 0, -2, 0)] * 2
    assert result["lpips"] == pytest.approx(result["lpips_dcpnpdp"], rel=1e-5)


@pytest.mark.parametrize("name", ["mri-inversebench", "fastmri"])
def test_magnitudes_reach_the_network_in_minus_one_to_one(install, name):
    install()
    reference = torch.zeros(1, 2, 32, 32)
    reference[0, 0, 3, 3] = 7.0
    result = metrics.evaluate(name, 2 * reference, reference)
    assert sys.modules["lpips"].seen == [(-1, 1, -1, 1)]
    assert result["lpips"] == 0
    assert "lpips_dcpnpdp" not in result


def test_a_network_that_cannot_be_loaded_leaves_the_other_metrics(install, caplog):
    install(failure="raise OSError('no weights')")
    result = metrics.evaluate("ct-dcpnpdp", *ct_pair(), intensity=HU)
    assert "lpips" not in result
    assert "psnr" in result
    assert "no weights" in caplog.text


def test_the_quick_form_never_loads_it(install):
    install()
    metrics.quick("ct-dcpnpdp", *ct_pair(), intensity=HU)
    assert "lpips" not in sys.modules
