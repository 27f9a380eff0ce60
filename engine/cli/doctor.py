"""``dualscope doctor``: what is here, what is missing and how to get it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from typing import Any

import torch

from engine.metrics.profile import lpips_available
from engine.physics.device import available_devices, choose_device
from engine.physics.matrix_cache import default_cache
from engine.physics.plugins import available_backends
from engine.priors.catalogue import list_priors
from engine.runs.prepare import versions


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="Machine-readable.")


def run(options: argparse.Namespace) -> int:
    found = examine()
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    for section, values in found.items():
        print(section)
        for name, value in values.items():
            print(f"  {name:14s} {value}")
    return 0


def examine() -> dict[str, dict[str, Any]]:
    folder = default_cache().folder
    has_lpips = importlib.util.find_spec("lpips") is not None
    return {
        "versions": versions(),
        "compute": {
            "devices": ", ".join(available_devices()),
            "chosen": str(choose_device("auto")),
            "threads": torch.get_num_threads(),
            "cores": os.cpu_count(),
        },
        "CT back ends": {
            name: status.detail if status.available else f"absent: {status.detail}"
            for name, status in available_backends().items()
        },
        "priors": {modality: ", ".join(list_priors(modality)) for modality in ("CT", "MR")},
        "optional": {
            "lpips": "ready"
            if lpips_available()
            else (
                "its backbone is not downloaded: use it once by itself"
                if has_lpips
                else "not installed: pip install lpips adds the LPIPS metric"
            ),
        },
        "storage": {
            "matrix cache": str(folder or "off"),
        },
    }
