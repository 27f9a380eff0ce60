"""Bare state dicts: which network they belong to, and what is missing to use them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.priors.importing.checkpoint import Checkpoint
from engine.priors.importing.edm_names import PREFIX, deduce, is_edm_state
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
