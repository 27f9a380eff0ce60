"""Writes folders as diffusers saves a pipeline around a UNet2DModel."""

from __future__ import annotations

import json

import torch
from safetensors.torch import save_file
from unet_reference import randomise

from engine.priors.networks import build_network, diffusers_unet

NETWORK = {
    "_class_name": "UNet2DModel",
    "_diffusers_version": "0.16.0",
    "_name_or_path": "somewhere/else",
    "act_fn": "silu",
    "add_attention": True,
    "attention_head_dim": None,
    "block_out_channels": [8, 16],
    "center_input_sample": False,
    "class_embed_type": None,
    "down_block_types": ["DownBlock2D", "AttnDownBlock2D"],
    "downsample_padding": 0,
    "flip_sin_to_cos": False,
    "freq_shift": 1,
    "in_channels": 1,
    "layers_per_block": 1,
    "mid_block_scale_factor": 1,
    "norm_eps": 1e-06,
    "norm_num_groups": 4,
    "num_class_embeds": None,
    "out_channels": 1,
    "resnet_time_scale_shift": "default",
    "sample_size": 8,
    "time_embedding_type": "positional",
    "up_block_types": ["AttnUpBlock2D", "UpBlock2D"],
}
SCHEDULER = {
    "_class_name": "DDPMScheduler",
    "_diffusers_version": "0.1.1",
    "beta_end": 0.02,
    "beta_schedule": "linear",
    "beta_start": 0.0001,
    "clip_sample": True,
    "num_train_timesteps": 1000,
    "trained_betas": None,
    "variance_type": "fixed_large",
}
EDM_SCHEDULER = {
    "_class_name": "EDMEulerScheduler",
    "prediction_type": "epsilon",
    "rho": 7.0,
    "sigma_data": 0.5,
    "sigma_max": 80.0,
    "sigma_min": 0.002,
}


def tiny_unet():
    kwargs = {
        **diffusers_unet.DEFAULTS,
        **{k: NETWORK[k] for k in ("in_channels", "out_channels", "block_out_channels")},
        **{k: NETWORK[k] for k in ("layers_per_block", "norm_eps", "norm_num_groups")},
        **{k: NETWORK[k] for k in ("freq_shift", "flip_sin_to_cos", "downsample_padding")},
        "img_resolution": 8,
        "down_attention": [False, True],
        "up_attention": [True, False],
        "attention_head_dim": 0,
    }
    return randomise(build_network("diffusers-unet", kwargs))


def old_names(state):
    """As files from before diffusers 0.14 call the attention's layers."""
    renamed = {}
    for name, value in state.items():
        if ".attentions." in name:
            for new, old in (("to_q", "query"), ("to_k", "key"), ("to_v", "value")):
                name = name.replace(f".{new}.", f".{old}.")
            name = name.replace(".to_out.0.", ".proj_attn.")
        renamed[name] = value
    return renamed


def write_pipeline(folder, state, network=None, scheduler=SCHEDULER, pickled=False, nested=True):
    """``network`` replaces settings of config.json; ``scheduler`` None leaves it out."""
    unet = folder / "unet" if nested else folder
    unet.mkdir(parents=True, exist_ok=True)
    (unet / "config.json").write_text(json.dumps({**NETWORK, **(network or {})}))
    if pickled:
        torch.save(state, unet / "diffusion_pytorch_model.bin")
    else:
        tensors = {name: value.contiguous() for name, value in state.items()}
        save_file(tensors, unet / "diffusion_pytorch_model.safetensors", {"format": "pt"})
    if scheduler is not None:
        (folder / "scheduler").mkdir(exist_ok=True)
        text = scheduler if isinstance(scheduler, str) else json.dumps(scheduler)
        (folder / "scheduler" / "scheduler_config.json").write_text(text)
    return folder
