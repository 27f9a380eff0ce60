"""State dicts of guided-diffusion and its descendants (DPS, DDS, ...), with their settings.

The weights do not tell how many heads the attention has, so the settings are needed: the flags
of the program that trained the network, as a JSON file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.priors.discrete_schedule import linear_schedule, sigmas
from engine.priors.importing.checkpoint import Checkpoint
from engine.priors.importing.stored import Weight
from engine.priors.networks import guided
from engine.spec.errors import RequestError

# widths by image size where the settings leave them out, as the original program has it
WIDTHS: dict[int, list[float]] = {
    512: [0.5, 1, 1, 2, 2, 4, 4],
    256: [1, 1, 2, 2, 4, 4],
    128: [1, 1, 2, 3, 4],
    64: [1, 2, 3, 4],
}
SAME_NAME = (
    *("num_res_blocks", "num_heads", "num_heads_upsample", "num_head_channels"),
    *("use_scale_shift_norm", "resblock_updown", "use_new_attention_order", "conv_resample"),
)
TRANSLATED = {
    *("image_size", "num_channels", "channel_mult", "attention_resolutions", "in_channels"),
    *("learn_sigma", "noise_schedule", "diffusion_steps", "predict_xstart", "class_cond"),
    *("rescale_timesteps", "steps"),
}
# settings of training and sampling, which do not change what the network computes
IGNORED = {
    *("dropout", "use_fp16", "use_checkpoint", "model_path", "timestep_respacing", "use_kl"),
    *("sigma_small", "rescale_learned_sigmas", "out_channels", "num_classes", "use_ddim"),
}


def is_guided_state(weights: Mapping[str, Any]) -> bool:
    return "time_embed.0.weight" in weights and "input_blocks.0.0.weight" in weights


def read_guided(
    weights: Mapping[str, Weight], config: Mapping[str, Any], source: Path
) -> Checkpoint:
    """The checkpoint that a state dict and the flags of its training program are."""
    if "image_size" not in config:
        raise RequestError(
            "it is a guided-diffusion network: add ⟦config⟧ with a JSON file of its training "
            "flags (image_size, num_channels, attention_resolutions, num_heads, ...)"
        )
    unknown = sorted(set(config) - {*SAME_NAME, *TRANSLATED, *IGNORED})
    if unknown:
        raise RequestError(f"the configuration's '{unknown[0][:60]}' is not known")
    if config.get("class_cond") or "label_emb.weight" in weights:
        raise RequestError("it is class-conditional, so it is no denoiser for images of no class")
    shapes = {
        n: weights[n].shape
        for n in ("input_blocks.0.0.weight", "out.2.weight")
        if n in weights and len(weights[n].shape) == 4
    }
    if len(shapes) != 2:
        raise RequestError("its first or last layer is missing or no convolution")
    size = config["image_size"]
    kwargs = {
        **guided.DEFAULTS,
        **{name: config[name] for name in SAME_NAME if name in config},
        "img_resolution": size,
        "in_channels": shapes["input_blocks.0.0.weight"][1],
        "out_channels": shapes["out.2.weight"][0],
        "model_channels": config.get("num_channels", guided.DEFAULTS["model_channels"]),
        "channel_mult": _widths(config, size),
    }
    given = _numbers(config, "attention_resolutions", int)
    kwargs["attention_resolutions"] = _map_sizes(size, given, len(kwargs["channel_mult"]))
    guided.check_kwargs(kwargs)
    noise = _schedule(config)
    table = sigmas(noise)
    return Checkpoint(
        source=source,
        format="guided-diffusion state dict",
        architecture="guided-unet",
        architecture_kwargs=kwargs,
        preconditioning="discrete",
        preconditioning_kwargs={
            "prediction": "sample" if config.get("predict_xstart") else "epsilon",
            "time": "interpolated",
            "noise": noise,
        },
        weights={f"model.{name}": weight for name, weight in weights.items()},
        native_size=size,
        channels=kwargs["in_channels"],
        sigma_min=float(table[0]),
        sigma_max=float(table[-1]),
        facts={"Settings": repr(dict(config))},
    )


def _widths(config: Mapping[str, Any], size: Any) -> list[float]:
    widths = _numbers(config, "channel_mult", float)
    if not widths and type(size) is int:
        widths = list(WIDTHS.get(size, []))
    if not isinstance(widths, list):
        raise RequestError("the configuration's 'channel_mult' must be a list of numbers")
    return widths


def _map_sizes(size: Any, given: Any, levels: int) -> list[int]:
    """The sizes of the maps that attend.

    The original program divides the image size by each number given, drops the remainder and
    compares with 1, 2, 4, ...: a number that is no map's size may still mean one.
    """
    whole = isinstance(given, list) and all(type(n) is int and n > 0 for n in given)
    if not whole or type(size) is not int:
        raise RequestError("the configuration's sizes must be whole numbers")
    return [size >> level for level in range(levels) if 1 << level in [size // n for n in given]]


def _schedule(config: Mapping[str, Any]) -> dict[str, Any]:
    steps, kind = config.get("diffusion_steps", config.get("steps", 1000)), "linear"
    if type(steps) is not int or not 20 < steps <= 10_000:
        raise RequestError("the configuration's 'diffusion_steps' must be 21 to 10000")
    if config.get("rescale_timesteps") and steps != 1000:
        raise RequestError("the configuration's 'rescale_timesteps' is supported for 1000 steps")
    kind = config.get("noise_schedule", kind)
    if kind not in ("linear", "cosine"):
        raise RequestError("the configuration's 'noise_schedule' must be linear or cosine")
    # for few steps the betas of the linear schedule, scaled up, would pass 1
    return {**linear_schedule(steps), "schedule": kind}


def _numbers(config: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    """A list, or the program's own way to write one: '16,8'."""
    value = config.get(name, guided.DEFAULTS[name] if kind is int else "")
    if not isinstance(value, str):
        return value
    try:
        return [kind(part) for part in value.split(",") if part.strip()]
    except ValueError:
        raise RequestError(f"the configuration's '{name}' is not a list of numbers") from None
