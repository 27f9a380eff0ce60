"""Folders of a diffusers ``UNet2DModel``, alone or inside of a pipeline, read without diffusers.

Only files of fixed names are opened, all of them inside of the folder: ``config.json``,
``diffusion_pytorch_model.safetensors`` (or ``.bin``) and ``scheduler_config.json``. A name in a
configuration is compared with a list and never looked up, imported or opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.priors.discrete_schedule import linear_schedule, sigmas
from engine.priors.importing.checkpoint import Checkpoint, check_size, read_json
from engine.priors.importing.stored import Weight, read_safetensors
from engine.priors.importing.torch_zip import read_torch_zip
from engine.priors.networks import diffusers_unet
from engine.spec.errors import RequestError

WEIGHTS = "diffusion_pytorch_model.safetensors"
PICKLED_WEIGHTS = "diffusion_pytorch_model.bin"
BLOCKS = {"DownBlock2D": False, "AttnDownBlock2D": True, "UpBlock2D": False, "AttnUpBlock2D": True}
# what our network does; another value would need another network
FIXED: dict[str, tuple[Any, ...]] = {
    "center_input_sample": (False,),
    "time_embedding_type": ("positional",),
    "mid_block_type": ("UNetMidBlock2D",),
    "mid_block_scale_factor": (1,),
    "downsample_type": ("conv",),
    "upsample_type": ("conv",),
    "act_fn": ("silu", "swish"),
    "resnet_time_scale_shift": ("default",),
    "class_embed_type": (None,),
    "num_class_embeds": (None,),
    "attn_norm_num_groups": (None,),
    "attention_legacy_order": (False,),
}
SAME_NAME = (
    *("freq_shift", "flip_sin_to_cos", "block_out_channels", "layers_per_block"),
    *("downsample_padding", "norm_num_groups", "norm_eps"),
)
TRANSLATED = {
    *("sample_size", "in_channels", "out_channels", "down_block_types", "up_block_types"),
    *("attention_head_dim", "add_attention"),
}
IGNORED = {"_class_name", "_diffusers_version", "_name_or_path", "dropout", "num_train_timesteps"}
# older versions of diffusers called the attention's layers so
RENAMED = {".query.": ".to_q.", ".key.": ".to_k.", ".value.": ".to_v.", ".proj_attn.": ".to_out.0."}
DISCRETE = (
    *("DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler"),
    *("DPMSolverMultistepScheduler", "HeunDiscreteScheduler", "LMSDiscreteScheduler"),
)
CONTINUOUS = ("EDMEulerScheduler", "EDMDPMSolverMultistepScheduler")
SCHEDULES = {"linear": "linear", "scaled_linear": "scaled-linear", "squaredcos_cap_v2": "cosine"}
PREDICTIONS = {"epsilon": "epsilon", "v_prediction": "v", "sample": "sample"}


def read_diffusers_folder(folder: Path, config: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint in a folder; ``config`` may hold the scheduler's settings ('scheduler')."""
    if set(config) - {"scheduler"}:
        raise RequestError("of a configuration it takes the 'scheduler' only")
    unet = folder / "unet" if (folder / "unet").is_dir() else folder
    settings = read_json(_inside(folder, unet / "config.json"))
    kwargs = _network(settings)
    scheduler = config.get("scheduler")
    if scheduler is None:
        places = (folder / "scheduler" / "scheduler_config.json", folder / "scheduler_config.json")
        found = [place for place in places if place.exists()]
        if not found:
            raise RequestError(
                "it has no scheduler/scheduler_config.json to say how the network was trained; "
                'add one, or ⟦config⟧ with a JSON file {"scheduler": {...}}'
            )
        scheduler = read_json(_inside(folder, found[0]))
    if not isinstance(scheduler, dict):
        raise RequestError("its scheduler's settings are not names and values")
    source = unet / WEIGHTS
    if source.exists():
        check_size(_inside(folder, source))
        weights = read_safetensors(source)
    elif (unet / PICKLED_WEIGHTS).exists():
        source = _inside(folder, unet / PICKLED_WEIGHTS)
        check_size(source)
        weights = dict[str, Weight](read_torch_zip(source)[1])
    else:
        raise RequestError(f"there is no {WEIGHTS} in it (weights in several files are not read)")
    return Checkpoint(
        source=source,
        format="diffusers UNet2DModel",
        architecture="diffusers-unet",
        architecture_kwargs=kwargs,
        weights={f"model.{_renamed(name)}": weight for name, weight in weights.items()},
        native_size=kwargs["img_resolution"],
        channels=kwargs["in_channels"],
        facts={"Network": repr(settings), "Scheduler": repr(scheduler)},
        **_preconditioning(scheduler),
    )


def _inside(folder: Path, path: Path) -> Path:
    """The file, if it is one and lies in the folder after all links are followed."""
    if not path.is_file():
        raise RequestError(f"there is no {path.name} in it")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise RequestError(
            f"its {path.name} is a link to a place outside of the folder; copy the folder with "
            "its links followed (cp -rL)"
        )
    return path


def _network(settings: Mapping[str, Any]) -> dict[str, Any]:
    if settings.get("_class_name") != "UNet2DModel":
        name = str(settings.get("_class_name"))[:60]
        raise RequestError(f"its network is a {name}, not a UNet2DModel")
    unknown = sorted(set(settings) - {*FIXED, *SAME_NAME, *TRANSLATED, *IGNORED})
    if unknown:
        raise RequestError(f"its config.json has '{unknown[0][:60]}', which is not known")
    for name, values in FIXED.items():
        if settings.get(name, values[0]) not in values:
            value = str(settings[name])[:60]
            raise RequestError(f"its config.json asks for {name} = {value}, which is not supported")
    size, head = settings.get("sample_size"), settings.get("attention_head_dim", 8)
    if isinstance(size, list) and len(size) == 2 and size[0] == size[1]:
        size = size[0]
    if size is None:
        raise RequestError("its config.json lacks 'sample_size', the size it was trained at")
    defaults = diffusers_unet.DEFAULTS
    kwargs = {
        **{name: settings.get(name, defaults[name]) for name in SAME_NAME},
        "img_resolution": size,
        "in_channels": settings.get("in_channels", 3),
        "out_channels": settings.get("out_channels", 3),
        "down_attention": _attention(settings, "down_block_types", "Down"),
        "up_attention": _attention(settings, "up_block_types", "Up"),
        "mid_attention": settings.get("add_attention", True),
        "attention_head_dim": 0 if head is None else head,
    }
    diffusers_unet.check_kwargs(kwargs)
    return kwargs


def _attention(settings: Mapping[str, Any], name: str, direction: str) -> list[bool]:
    types = settings.get(name)
    if not isinstance(types, list) or not all(isinstance(kind, str) for kind in types):
        raise RequestError(f"its config.json lacks '{name}'")
    for kind in types:
        if kind not in BLOCKS or direction not in kind:
            raise RequestError(f"its config.json asks for a {kind[:60]}, which is not supported")
    return [BLOCKS[kind] for kind in types]


def _preconditioning(scheduler: Mapping[str, Any]) -> dict[str, Any]:
    """How the network's answer becomes a denoised image, from the scheduler's settings."""
    name, kind = scheduler.get("_class_name"), scheduler.get("prediction_type", "epsilon")
    if not isinstance(kind, str) or kind not in PREDICTIONS:
        raise RequestError(f"its scheduler's prediction_type {str(kind)[:60]} is not known")
    if name in CONTINUOUS:
        if kind == "sample":
            raise RequestError("its scheduler predicts samples, which EDM does not")
        numbers = {"sigma_data": 0.5, "sigma_min": 0.002, "sigma_max": 80.0}
        levels = {key: scheduler.get(key, value) for key, value in numbers.items()}
        if not all(type(v) in (int, float) and 0 < v < 1e5 for v in levels.values()):
            raise RequestError("its scheduler's noise levels are not positive numbers")
        levels = {key: float(value) for key, value in levels.items()}
        return {"preconditioning": "edm" if kind == "epsilon" else "edm-v", **levels}
    if name not in DISCRETE:
        raise RequestError(f"its scheduler {str(name)[:60]} is not known")
    if scheduler.get("rescale_betas_zero_snr"):
        raise RequestError("its scheduler reaches an infinite noise level (zero terminal SNR)")
    given = scheduler.get("trained_betas")
    schedule = scheduler.get("beta_schedule", "linear")
    if given is not None and not isinstance(given, list):
        raise RequestError("its scheduler's trained_betas are not a list")
    if given is None and (not isinstance(schedule, str) or schedule not in SCHEDULES):
        raise RequestError(f"its scheduler's beta_schedule {str(schedule)[:60]} is not known")
    noise = {
        **linear_schedule(),
        "schedule": SCHEDULES[schedule] if given is None else "given",
        "steps": scheduler.get("num_train_timesteps", 1000) if given is None else len(given),
        "beta_start": scheduler.get("beta_start", 1e-4),
        "beta_end": scheduler.get("beta_end", 0.02),
        "betas": given or [],
    }
    table = sigmas(noise)
    return {
        "preconditioning": "discrete",
        "preconditioning_kwargs": {
            "prediction": PREDICTIONS[kind],
            "time": "interpolated",
            "noise": noise,
        },
        "sigma_min": float(table[0]),
        "sigma_max": float(table[-1]),
    }


def _renamed(name: str) -> str:
    for old, new in RENAMED.items():
        if ".attentions." in name:
            name = name.replace(old, new)
    return name
