"""Good workspaces, records, presets and checkpoints, as small as can be, for damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from edm_writer import edm_snapshot, write_edm_pickle
from import_cases import tiny_network
from recorded_runs import record_run
from tiny_prior import tiny_header

from engine.priors.networks import build_network
from engine.priors.precondition import precondition
from engine.priors.safetensors_file import save_prior

RUN = "20250101-120000-abcdef"
SIDE = 16
SMALLEST = {"channel_mult": [1], "model_channels": 4, "attn_resolutions": []}


def save_image(folder: Path) -> Path:
    path = folder / "disc.npy"
    rows, columns = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    np.save(path, np.where(rows**2 + columns**2 < 0.6, 40.0, -1000.0))
    return path


def record(folder: Path) -> dict[str, Any]:
    """A finished run of few steps in ``folder``; what its record says."""
    path = folder / f"{RUN}.json"
    image = save_image(folder)
    record_run(
        path,
        "dc-pnpdp",
        {"nfe": 2, "cg_iterations": 2},
        input=str(image),
        options={"unit": "hu", "pixel_mm": 1.0},
        acquisition={"views": 6},
    )
    return json.loads(path.read_bytes())


def workspace() -> dict[str, Any]:
    options = {"unit": "hu", "pixel_mm": 1.0}
    places = {"input": "./disc.npy", "options": options, "prior": "tv"}
    run = {"name": RUN, "number": 1, "label": "DC-PnPDP", "note": "so", "visible": True}
    return {
        "format": "dualscope-workspace",
        "format_version": 1,
        "data": {"text": "./disc.npy", "options": options, "sha256": "0" * 64, "slice": 0},
        "acquisition": {"views": 6, "angular_range": 180.0},
        "solver": {"solver": "dc-pnpdp", "settings": {"nfe": 2}, "prior": "tv", "seed": 0},
        "view": {"window": [40.0, 400.0, False]},
        "runs": [{**run, "places": places}],
    }


def preset() -> dict[str, Any]:
    return {
        "format": "dualscope-preset-1",
        "name": "Mine",
        "modality": "CT",
        "solver": "dc-pnpdp",
        "settings": {"nfe": 20, "cg_iterations": 5, "rho": 0.5, "dual": True, "init": "zeros"},
        "acquisition": {"views": 30, "angular_range": 180.0, "photons": 1e5},
        "words": "",
    }


def snapshot(folder: Path) -> bytes:
    """An EDM pickle."""
    network, kwargs = tiny_network(**SMALLEST)
    path = folder / "seed.pkl"
    return write_edm_pickle(path, edm_snapshot(network, "SongUNet", kwargs)).read_bytes()


def torch_archive(folder: Path) -> bytes:
    denoiser = precondition("edm", tiny_network(**SMALLEST)[0], 0.5)
    torch.save({"ema": denoiser.state_dict()}, folder / "seed.pt")
    return (folder / "seed.pt").read_bytes()


def prior(folder: Path) -> bytes:
    """A file of our own format."""
    kwargs = {"channels": 1, "widths": [32], "blocks": [1], "attention": [], "unshuffle": 2}
    header = tiny_header({**kwargs, "embedding": 16}, native_size=16)
    network = build_network(header.architecture, header.architecture_kwargs)
    save_prior(folder / "seed.safetensors", header, precondition("edm", network, 0.5).state_dict())
    return (folder / "seed.safetensors").read_bytes()
