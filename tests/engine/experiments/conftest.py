"""Two tiny inputs and a folder of their own for every experiment."""

from pathlib import Path

import numpy as np
import pytest
from supervised_files import write_network

from engine.cli import main
from engine.physics.phantoms import brain_mr, ct_phantom

INPUTS = ["ct.npy", "mr.npy", "--unit", "hu", "--pixel-mm", "12"]
SMALL = ["--prior", "tv", "--quick", "--quiet", "--cg-iterations", "3"]


@pytest.fixture(scope="session")
def phantoms():
    """Two slices of 32 x 32 pixels of either modality."""
    ct, mr = (
        np.stack([make(seed=seed, size=64).image[::2, ::2] for seed in (1, 2)])
        for make in (ct_phantom, brain_mr)
    )
    return ct, mr


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, phantoms):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUALSCOPE_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("DUALSCOPE_STATE", str(tmp_path / "state"))
    np.save("ct.npy", phantoms[0])
    np.save("mr.npy", phantoms[1])
    write_network(Path("net.safetensors"))


@pytest.fixture
def experiment():
    """Run one on the tiny inputs; its exit code."""

    def run(name, *more):
        return main(["experiment", name, *INPUTS, *SMALL, "-o", "out", *more])

    return run
