"""Bare state dicts: which network they belong to, and what is missing to use them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.priors.importing.checkpoint import Checkpoint
from engine.priors.importing.guided import is_guided_state, read_guided
from engine.priors.importing.stored import Weight
from engine.priors.networks import ARCHITECTURES
from engine.spec.errors import RequestError

LEVELS = {"sigma_data": (1e-3, 1e3), "sigma_min": (1e-5, 1.0), "sigma_max": (1.0, 1e5)}
PRECONDITIONINGS = ("edm", "vp", "ve")
# usual names of the settings in training programs that say nothing about the network's shape
IGNORED = {"dropout", "label_dropout", "use_fp16", "preconditioning", *LEVELS}


def recognise(
    weights: Mapping[str, Weight], config: Mapping[str, Any], source: Path, origin: str
) -> Checkpoint:
    """The checkpoint that a state dict is.

    Parameters
    ----------
    config
        Of networks that can be read off their own weights (DDPM++ and ADM), only what differs
        from EDM preconditioning: 'preconditioning', 'sigma_data', 'sigma_min', 'sigma_max'.
        Arguments of the network may be given too and are compared. Of guided-diffusion, the
        flags of its training program.
    """
    if is_edm_state(weights):
        return _edm(weights, config, source, origin)
    if is_guided_state(weights):
        return read_guided(weights, config, source)
    raise RequestError(
        "its weights belong to no network that Dualscope knows (DDPM++, ADM, guided-diffusion)"
    )


def _edm(
    weights: Mapping[str, Weight], config: Mapping[str, Any], source: Path, origin: str
) -> Checkpoint:
    named = {
        name if name.startswith(PREFIX) else PREFIX + name: weight
        for name, weight in weights.items()
    }
    architecture, kwargs = deduce(named)
    ARCHITECTURES[architecture].check(kwargs)
    for name, value in config.items():
        # 16 as attention resolution in a network that has no maps of 16 is common and harmless
        known = name in kwargs and name != "attn_resolutions"
        if known and list_of(value) != list_of(kwargs[name]):
            raise RequestError(
                f"the configuration says {name} = {str(value)[:60]}, its weights {kwargs[name]}"
            )
        if name not in kwargs and name not in IGNORED:
            raise RequestError(f"the configuration's '{name[:60]}' is not known")
    preconditioning = config.get("preconditioning", "edm")
    if preconditioning not in PRECONDITIONINGS:
        raise RequestError(f"the preconditioning must be one of {', '.join(PRECONDITIONINGS)}")
    return Checkpoint(
        source=source,
        format=origin,
        architecture=architecture,
        architecture_kwargs=kwargs,
        preconditioning=preconditioning,
        weights=named,
        native_size=kwargs["img_resolution"],
        channels=kwargs["in_channels"],
        **levels(config),
    )


def levels(config: Mapping[str, Any]) -> dict[str, Any]:
    """The noise levels that a configuration gives."""
    found = {name: config[name] for name in LEVELS if name in config}
    for name, value in found.items():
        low, high = LEVELS[name]
        if type(value) not in (int, float) or not low <= value <= high:
            raise RequestError(f"the configuration's '{name}' must be {low:g} to {high:g}")
    return {name: float(value) for name, value in found.items()}


def list_of(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# The arguments of a DDPM++ or ADM U-Net, read off the names and shapes of its weights.
#
# Layers are named by the resolution they work at and attention layers by what they hold, so a
# state dict alone says everything needed to build the network: a configuration is not required,
# and a wrong one is found out.

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
