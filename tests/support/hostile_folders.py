"""Hostile diffusers folders."""

from __future__ import annotations

import os

import torch
from diffusers_writer import SCHEDULER, write_pipeline

HOSTILE_NETWORKS = {
    "class-os-system": {"_class_name": "os.system"},
    "class-path": {"_class_name": "../../evil.UNet2DModel"},
    "class-other": {"_class_name": "UNet2DConditionModel"},
    "class-list": {"_class_name": ["UNet2DModel"]},
    "auto-map": {"auto_map": {"AutoModel": "evil.Model"}},
    "custom-code": {"custom_pipeline": "evil"},
    "block-code": {"down_block_types": ["evil.Block", "DownBlock2D"]},
    "block-direction": {"down_block_types": ["UpBlock2D", "DownBlock2D"]},
    "block-number": {"down_block_types": [1, 2]},
    "block-text": {"up_block_types": "UpBlock2D"},
    "block-count": {"down_block_types": ["DownBlock2D"] * 500},
    "middle-code": {"mid_block_type": "evil.Mid"},
    "activation-code": {"act_fn": "__import__('os').system('x')"},
    "size-missing": {"sample_size": None},
    "size-huge": {"sample_size": 10**12},
    "size-negative": {"sample_size": -8},
    "size-text": {"sample_size": "8"},
    "widths-huge": {"block_out_channels": [10**9, 10**9]},
    "widths-empty": {"block_out_channels": []},
    "layers-huge": {"layers_per_block": 10**9},
    "groups-zero": {"norm_num_groups": 0},
    "eps-nan": {"norm_eps": float("nan")},
    "classes": {"num_class_embeds": 10},
    "scale-shift": {"resnet_time_scale_shift": "scale_shift"},
    "resnet-sampling": {"downsample_type": "resnet"},
    "fourier": {"time_embedding_type": "fourier"},
}
HOSTILE_SCHEDULERS = {
    "scheduler-code": {"_class_name": "evil.Scheduler"},
    "scheduler-missing-class": {"_class_name": None},
    "scheduler-prediction": {"prediction_type": "magic"},
    "scheduler-schedule": {"beta_schedule": "exec"},
    "scheduler-steps": {"num_train_timesteps": 10**12},
    "scheduler-betas": {"trained_betas": [2.0]},
    "scheduler-betas-text": {"trained_betas": "0.1"},
    "scheduler-betas-number": {"trained_betas": 5},
    "scheduler-zero-snr": {"rescale_betas_zero_snr": True},
    "scheduler-infinite": {"beta_start": 0.9, "beta_end": 0.99},
    "scheduler-lists": {"beta_schedule": ["linear"]},
    "scheduler-prediction-list": {"prediction_type": ["epsilon"]},
    "scheduler-betas-none": {"trained_betas": []},
    "scheduler-edm-nan": {"_class_name": "EDMEulerScheduler", "sigma_max": float("inf")},
    "scheduler-edm-sample": {"_class_name": "EDMEulerScheduler", "prediction_type": "sample"},
}
HOSTILE_JSON = {
    "json-deep": "[" * 200_000,
    "json-broken": "{",
    "json-list": "[]",
    "json-large": " " * 2_000_000,
    "json-number": "1" * 100_000,
    "json-bytes": "\ud7ff\x00",
}


def hostile_folders(tmp_path, state):
    """Writes them one by one and yields (name, folder)."""
    for name, changes in HOSTILE_NETWORKS.items():
        yield name, write_pipeline(tmp_path / name, state, network=changes)
    for name, changes in HOSTILE_SCHEDULERS.items():
        yield name, write_pipeline(tmp_path / name, state, scheduler={**SCHEDULER, **changes})
    for name, text in HOSTILE_JSON.items():
        yield name, write_pipeline(tmp_path / name, state, scheduler=text)
        folder = write_pipeline(tmp_path / f"config-{name}", state)
        (folder / "unet" / "config.json").write_text(text)
        yield f"config-{name}", folder
    weights = "unet/diffusion_pytorch_model.safetensors"
    for name, content in {
        "weights-empty": b"",
        "weights-short": b"\x01",
        "weights-header-huge": (1 << 60).to_bytes(8, "little") + b"{}",
        "weights-header-11-mb": (11 << 20).to_bytes(8, "little") + b"{}",
        "weights-not-json": (4).to_bytes(8, "little") + b"{{{{",
        "weights-deep": (100_000).to_bytes(8, "little") + b"[" * 100_000,
        "weights-pickle": b"\x80\x04cos\nsystem\n.",
    }.items():
        folder = write_pipeline(tmp_path / name, state)
        (folder / weights).write_bytes(content)
        yield name, folder
    for name, change in {
        "weights-nan": lambda v: torch.full_like(v, float("nan")),
        "weights-integers": lambda v: v.to(torch.int64),
        "weights-other-shape": lambda v: v[..., :1],
    }.items():
        changed = {key: change(value) for key, value in state.items()}
        yield name, write_pipeline(tmp_path / name, changed)
    yield "weights-extra", write_pipeline(tmp_path / "extra", {**state, "x": torch.zeros(1)})
    folder = write_pipeline(tmp_path / "none", state)
    (folder / weights).unlink()
    yield "weights-none", folder
    for name in (weights, "unet/config.json", "scheduler/scheduler_config.json"):
        folder = write_pipeline(tmp_path / f"link-{name.replace('/', '-')}", state)
        outside = tmp_path / f"outside-{os.path.basename(name)}"
        (folder / name).rename(outside)
        (folder / name).symlink_to(outside)
        yield f"link-{name}", folder
    yield "empty", tmp_path / "empty"
