"""The embedded demonstrations: ``demo:ct``, ``demo:mri``, ``demo:ct:SEED``."""

from __future__ import annotations

import hashlib

import numpy as np

from engine.data.dataset import ImageDataset
from engine.data.phantoms import brain_mr, ct_phantom
from engine.errors import RequestError

DEMO_SEED = 7


def open_demo(text: str) -> ImageDataset:
    _, name, *rest = text.split(":")
    seed_text = rest[0] if rest else str(DEMO_SEED)
    if name not in ("ct", "mri") or len(rest) > 1 or not seed_text.isdecimal():
        raise RequestError(f"'{text}' is not a demo: use demo:ct or demo:mri.")
    make = ct_phantom if name == "ct" else brain_mr
    phantom = make(seed=int(seed_text), size=256)
    dataset = ImageDataset(
        modality="CT" if name == "ct" else "MR",
        description=phantom.description,
        count=1,
        image_size=(256, 256),
        pixel_mm=(phantom.pixel_mm, phantom.pixel_mm),
        read=lambda number: phantom.image,
        _sha256=hashlib.sha256(np.ascontiguousarray(phantom.image).tobytes()).hexdigest(),
    )
    dataset.add_fact("pixel", f"{phantom.pixel_mm:g} mm", "the phantom")
    return dataset
