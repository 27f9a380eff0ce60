"""``dualscope bench training``: how much faster a training step is than of plain operations."""

from __future__ import annotations

from typing import Any

import torch

from engine.cli.bench import interleaved_medians
from engine.priors.network_prior import bf16_is_supported
from engine.priors.networks import build_network
from engine.priors.precondition import Preconditioned, precondition
from engine.priors.training.objective import edm_loss

SIZE, BATCH = 256, 4
NETWORKS: dict[str, dict[str, Any]] = {
    "ct-small": {"channels": 1, "widths": [48, 96, 144, 192, 256], "blocks": [1, 2, 1, 1, 1]},
    "mr-small": {"channels": 2, "widths": [48, 96, 160, 224], "blocks": [1, 1, 1, 1]},
}


def measure(rounds: int, size: int = SIZE) -> list[dict[str, Any]]:
    """Images per hour with bfloat16 where this processor has it, both ways measured in turn.

    In evaluation mode a network is made of plain operations, in training mode of fused ones.
    """
    bf16 = bf16_is_supported()
    rows = []
    for name, kwargs in NETWORKS.items():
        denoiser = _denoiser(kwargs)
        seconds = interleaved_medians(
            {
                "plain": lambda d=denoiser: _step(d, False, bf16, size),  # type: ignore[misc]
                "fused": lambda d=denoiser: _step(d, True, bf16, size),  # type: ignore[misc]
            },
            rounds,
        )
        for way, value in seconds.items():
            rows.append(
                {
                    "case": f"{name}, {'bf16' if bf16 else 'fp32'}, {way}",
                    "ms per image": 1e3 * value / BATCH,
                    "images per hour": round(3600 * BATCH / value),
                    "times plain": seconds["plain"] / value,
                }
            )
    return rows


def _denoiser(kwargs: dict[str, Any]) -> Preconditioned:
    levels = len(kwargs["widths"])
    more: dict[str, Any] = {"attention": list(range(3, levels)), "unshuffle": 2, "embedding": 128}
    if kwargs["channels"] == 2:
        more["align_phase"] = True
    network = build_network("compact-unet", {**kwargs, **more})
    for parameter in network.parameters():
        if not parameter.any():  # gradients stop at the zeros that a new network starts with
            torch.nn.init.normal_(parameter, std=0.01)
    denoiser = precondition("edm", network, 0.5, {})
    return denoiser.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _step(denoiser: Preconditioned, fused: bool, bf16: bool, size: int) -> None:
    """Forward and backward; the optimiser and the averaging are the same either way, and small."""
    denoiser.train(fused).zero_grad()
    channels = denoiser.model.channels
    clean = torch.ones(BATCH, int(channels), size, size)  # type: ignore[arg-type]
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        loss = edm_loss(denoiser, clean, torch.full((BATCH,), 0.3), torch.randn_like(clean))
    loss.backward()
