"""LPIPS, when the optional `lpips` package is installed.

The package is looked for at run time and never required. Its network expects values in
[-1, 1].
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

log = logging.getLogger(__name__)

NETWORK = "squeeze"  # the published CT evaluation's choice
_AT_ONCE = 8  # images through the network together, to bound the memory


def available() -> bool:
    """Whether the package and its backbone are on this machine.

    The package fetches a missing backbone from the network by itself, which nobody asked for
    here: the user's own first use of lpips does that.
    """
    if importlib.util.find_spec("lpips") is None:
        return False
    return any(Path(torch.hub.get_dir(), "checkpoints").glob("squeezenet1_1*"))


@lru_cache(maxsize=1)
def _network() -> Any | None:
    try:
        return importlib.import_module("lpips").LPIPS(net=NETWORK, verbose=False).eval()
    except Exception as error:
        # Without it the other metrics still count.
        log.warning("LPIPS is left out: its network cannot be loaded (%s).", error)
        return None


@torch.no_grad()
def lpips(prediction: Tensor, reference: Tensor) -> float | None:
    """Mean LPIPS of single-channel images ``[B, 1, H, W]`` in [-1, 1], or None without it."""
    network = _network() if available() else None
    if network is None:
        return None
    scores = [
        network(_colour(p), _colour(r)).flatten()
        for p, r in zip(prediction.split(_AT_ONCE), reference.split(_AT_ONCE), strict=True)
    ]
    return float(torch.cat(scores).mean())


def _colour(image: Tensor) -> Tensor:
    return image.to("cpu", torch.float32).expand(-1, 3, -1, -1)
