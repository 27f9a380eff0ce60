"""The header of a prior file: a denoiser of CT slices that nobody trained."""

from typing import Any

from engine.priors.safetensors_file import PriorHeader


def tiny_header(kwargs: dict[str, Any], **changes: Any) -> PriorHeader:
    """Of a compact U-Net with these arguments."""
    values = {
        "name": "tiny",
        "architecture": "compact-unet",
        "architecture_kwargs": kwargs,
        "preconditioning": "edm",
        "sigma_data": 0.5,
        "sigma_min": 0.01,
        "sigma_max": 10.0,
        "channels": 1,
        "intensity": {"kind": "hu", "scale": 1000.0, "offset": 0.0},
        "native_size": 32,
        "training_data": "none",
        "licence": "Apache-2.0",
        "source_sha256": "0" * 64,
        "description": "A test.",
    }
    return PriorHeader(**(values | changes))
