"""The arguments of a DDPM++ or ADM U-Net, read off the names and shapes of its weights.

Layers are named by the resolution they work at and attention layers by what they hold, so a
state dict alone says everything needed to build the network: a configuration is not required,
and a wrong one is found out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.priors.importing.stored import Weight
from engine.spec.errors import RequestError

PREFIX = "model."
LAYER = re.compile(r"(enc|dec)\.(\d{1,4})x(\d{1,4})_([a-z0-9_]{1,20})\.(.{1,60})", re.ASCII)


def is_edm_state(names: Mapping[str, Any]) -> bool:
    """Whether these are weights of one of the two networks, with or without their wrapper."""
    bare = {name.removeprefix(PREFIX) for name in names}
    return "map_layer0.weight" in bare and any(LAYER.fullmatch(name) for name in bare)


def deduce(weights: Mapping[str, Weight]) -> tuple[str, dict[str, Any]]:
    """Architecture and arguments for weights named ``model.*``."""
    bare = {name.removeprefix(PREFIX): weight for name, weight in weights.items()}
    layers: dict[tuple[str, int], dict[str, tuple[int, ...]]] = {}
    for name, weight in bare.items():
        found = LAYER.fullmatch(name)
        if found:
            side, height, width, layer, rest = found.groups()
            if height != width:
                raise RequestError(f"layer '{name}' is not square")
            layers.setdefault((side, int(height)), {})[f"{layer}.{rest}"] = weight.shape
    sizes = sorted((size for side, size in layers if side == "enc"), reverse=True)
    if not sizes or len(sizes) > 8:
        raise RequestError("its layers do not name the resolutions of a U-Net")
    top = layers["enc", sizes[0]]
    is_adm = "out_conv.weight" in bare
    embedding = _shape(bare, "map_layer0.weight", 2)
    width = _first(top, "conv.weight", 4)
    model_channels = embedding[1] if is_adm else width[0]
    if not model_channels:
        raise RequestError("its first layer has no channels")
    levels = [layers["enc", size] for size in sizes]
    mult = [_first(level, "block0.conv0.weight", 4)[0] // model_channels for level in levels]
    attention = {
        size for (side, size), level in layers.items() for name in level if _attends(side, name)
    }
    last = bare.get("out_conv.weight") or layers.get(("dec", sizes[0]), {}).get("aux_conv.weight")
    kwargs = {
        "img_resolution": sizes[0],
        "in_channels": width[1],
        "out_channels": (last.shape if isinstance(last, Weight) else last or (0,))[0],
        "label_dim": _inputs(bare, "map_label.weight"),
        "augment_dim": _inputs(bare, "map_augment.weight"),
        "model_channels": model_channels,
        "channel_mult": mult,
        "channel_mult_emb": embedding[0] // model_channels,
        "num_blocks": len({n for n in top if re.fullmatch(r"block\d+\.conv0\.weight", n)}),
        "attn_resolutions": sorted(attention, reverse=True),
    }
    if is_adm:
        return "adm-unet", kwargs
    return "song-unet", {**kwargs, **_song_only(bare, layers, sizes, model_channels)}


def _song_only(
    bare: Mapping[str, Weight],
    layers: Mapping[tuple[str, int], Mapping[str, tuple[int, ...]]],
    sizes: list[int],
    model_channels: int,
) -> dict[str, Any]:
    below = layers["enc", sizes[1]] if len(sizes) > 1 else {}
    residual, skip = ("aux_residual.weight" in below, "aux_skip.weight" in below)
    aux_up = any(name.startswith("aux_up.") for level in layers.values() for name in level)
    taps = below.get("down.conv0.resample_filter", (1, 1, 2, 2))[-1]
    return {
        "embedding_type": "fourier" if "map_noise.freqs" in bare else "positional",
        "channel_mult_noise": _shape(bare, "map_layer0.weight", 2)[1] // model_channels,
        "encoder_type": "residual" if residual else "skip" if skip else "standard",
        "decoder_type": "skip" if aux_up else "standard",
        "resample_filter": [1, 3, 3, 1] if taps == 4 else [1, 1],
    }


def _attends(side: str, name: str) -> bool:
    """in0 of the decoder attends in any case and says nothing about its resolution."""
    return name.endswith(".qkv.weight") and not (side == "dec" and name.startswith("in0."))


def _first(level: Mapping[str, tuple[int, ...]], name: str, dimensions: int) -> tuple[int, ...]:
    shape = level.get(name, ())
    if len(shape) != dimensions:
        raise RequestError(f"layer '{name}' is missing or has another shape than in a U-Net")
    return shape


def _shape(bare: Mapping[str, Weight], name: str, dimensions: int) -> tuple[int, ...]:
    return _first({name: bare[name].shape} if name in bare else {}, name, dimensions)


def _inputs(bare: Mapping[str, Weight], name: str) -> int:
    return _shape(bare, name, 2)[1] if name in bare else 0
