"""Priors by name, by file, and for the right kind of image."""

import pytest
import torch
from supervised_files import write_network

from engine.cli import main
from engine.physics.phantoms import ct_phantom
from engine.priors import catalogue
from engine.priors.catalogue import SUPERVISED, bundled, find_prior, list_priors, load_prior
from engine.spec.errors import RequestError

LARGEST_BYTES = 24_000_000


@pytest.mark.parametrize("modality", ["CT", "MR"])
def test_auto_takes_the_first_of_the_list(modality):
    assert load_prior("auto", modality).info.name == list_priors(modality)[0]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(RequestError, match="gaussian"):
        load_prior("nothing", "CT")


def test_a_file_that_is_no_prior_is_named(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"not one")
    with pytest.raises(RequestError, match=r"x\.safetensors"):
        load_prior(str(path), "CT")


@pytest.mark.parametrize("name", bundled())
def test_a_bundled_prior_is_complete_and_small(name):
    assert bundled()[name].stat().st_size < LARGEST_BYTES
    info = find_prior(name, "CT").info
    assert info.name == name
    assert info.training_data
    assert info.licence
    assert len(info.sha256) == 64
    assert "PSNR" in info.details["model_card"]
    assert (
        info.details["model_card"].strip() == bundled()[name].with_suffix(".md").read_text().strip()
    )


@pytest.mark.parametrize("name", sorted(set(bundled()) - set(SUPERVISED.values())))
def test_a_bundled_prior_serves_its_own_modality_only(name):
    own, other = ("CT", "MR") if name.startswith("ct-") else ("MR", "CT")
    assert name in list_priors(own)
    assert load_prior(name, own).info.channels == (1 if own == "CT" else 2)
    with pytest.raises(RequestError, match=other):
        load_prior(name, other)


def test_a_network_for_one_scan_is_never_taken_for_a_denoiser(tmp_path, monkeypatch, capsys):
    path = write_network(tmp_path / "svct20-unet.safetensors")
    monkeypatch.setattr(catalogue, "bundled", lambda: {"svct20-unet": path})
    assert load_prior("auto", "CT").info.name == "tv"
    assert "svct20-unet" not in list_priors("CT")
    assert load_prior("auto", "CT", supervised=True).info.name == "svct20-unet"
    assert load_prior("svct20-unet", "CT", supervised=None).info.name == "svct20-unet"
    with pytest.raises(RequestError, match=r"not to denoise: use it with --solver supervised\.$"):
        load_prior("svct20-unet", "CT")
    with pytest.raises(RequestError, match="tv was trained to denoise, not to correct FBP"):
        load_prior("tv", "CT", supervised=True)
    assert main(["prior", "list"]) == 0
    assert "CT  svct20-unet  Not a denoiser" in capsys.readouterr().out
    monkeypatch.setattr(catalogue, "bundled", dict)
    with pytest.raises(RequestError, match="prior train --supervised"):
        load_prior("auto", "CT", supervised=True)


def test_the_ct_prior_denoises_better_than_total_variation():
    clean = torch.from_numpy(ct_phantom(seed=123, size=256).image)[None, None] / 1000
    for sigma in (0.05, 0.2, 1.0):
        noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
        noisy = clean + sigma * noise
        error = {
            name: float((load_prior(name, "CT")(noisy, sigma) - clean).square().mean())
            for name in ("ct-small", "tv")
        }
        assert error["ct-small"] < error["tv"]
