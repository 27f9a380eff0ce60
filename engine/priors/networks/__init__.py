"""Networks that estimate noise-free images, each built from plain keyword arguments.

An architecture is a name in ``ARCHITECTURES`` with a function that checks keyword arguments
from an untrusted file and one that builds the network from checked ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from engine.priors.networks import adm, compact, diffusers_unet, guided, song
from engine.spec.errors import RequestError


@dataclass(frozen=True)
class Architecture:
    """``check`` raises RequestError for arguments that ``build`` could not or should not take."""

    check: Callable[[dict[str, Any]], None]
    build: Callable[..., nn.Module]


ARCHITECTURES = {
    "compact-unet": Architecture(compact.check_kwargs, compact.CompactUNet),
    "song-unet": Architecture(song.check_kwargs, song.SongUNet),
    "adm-unet": Architecture(adm.check_kwargs, adm.DhariwalUNet),
    "guided-unet": Architecture(guided.check_kwargs, guided.GuidedUNet),
    "diffusers-unet": Architecture(diffusers_unet.check_kwargs, diffusers_unet.DiffusersUNet),
}


def build_network(name: str, kwargs: dict[str, Any]) -> nn.Module:
    """The network of that name; unknown names and absurd arguments are refused."""
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise RequestError(f"Network '{name}' is not known: expected one of {known}.")
    ARCHITECTURES[name].check(kwargs)
    return ARCHITECTURES[name].build(**kwargs)
