"""Choosing where to compute."""

from __future__ import annotations

import torch

from engine.spec.errors import RequestError

DEVICES = ("auto", "cpu", "cuda", "mps")


def available_devices() -> list[str]:
    found = ["cpu"]
    if torch.cuda.is_available():
        found.insert(0, "cuda")
    if torch.backends.mps.is_available():
        found.insert(0, "mps")
    return found


def choose_device(name: str) -> torch.device:
    """'auto' takes the fastest there is; a device that is absent is refused."""
    found = available_devices()
    if name == "auto":
        # Apple's GPU has no sparse matrices in torch, which CT needs.
        return torch.device("cuda" if "cuda" in found else "cpu")
    if name not in found:
        raise RequestError(f"⟦device⟧ {name} is not available here: use {' or '.join(found)}.")
    return torch.device(name)
