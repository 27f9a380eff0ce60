"""The embedded demonstrations: ``demo:ct``, ``demo:mri``, ``demo:ct-volume``, ``demo:ct:SEED``."""

from __future__ import annotations

import hashlib

import numpy as np

from engine.data.dataset import ImageDataset, Placement
from engine.physics.phantoms import brain_mr, ct_phantom
from engine.physics.phantoms.stack import TorsoStack
from engine.spec.errors import RequestError

DEMO_SEED = 7
NAMES = ("ct", "mri", "ct-volume")


def open_demo(text: str) -> ImageDataset:
    _, name, *rest = text.split(":")
    seed_text = rest[0] if rest else str(DEMO_SEED)
    if name not in NAMES or len(rest) > 1 or not seed_text.isdecimal():
        raise RequestError(f"'{text}' is not a demo: use demo:ct, demo:mri or demo:ct-volume.")
    if name == "ct-volume":
        return _stack(int(seed_text))
    make = ct_phantom if name == "ct" else brain_mr
    phantom = make(seed=int(seed_text), size=256)
    dataset = ImageDataset(
        modality="CT" if name == "ct" else "MR",
        description=phantom.description,
        count=1,
        image_size=(256, 256),
        pixel_mm=(phantom.pixel_mm, phantom.pixel_mm),
        read=lambda number: phantom.image,
        read_fine=lambda number, factor: make(seed=int(seed_text), size=256 * factor).image,
        _sha256=_sha256(phantom.image),
    )
    dataset.add_fact("pixel", f"{phantom.pixel_mm:g} mm", "the phantom")
    return dataset


def _stack(seed: int) -> ImageDataset:
    stack = TorsoStack(seed)
    pixel = stack.base.pixel_mm
    corner = (pixel - pixel * stack.size) / 2
    dataset = ImageDataset(
        modality="CT",
        description=f"Synthetic CT volume of the abdomen, {stack.count} slices, seed {seed}",
        count=stack.count,
        image_size=(stack.size, stack.size),
        pixel_mm=(pixel, pixel),
        read=stack.image,
        placements=tuple(
            Placement(
                (corner, corner, number * stack.spacing_mm),
                (1.0, 0.0, 0.0),
                (0.0, 1.0, 0.0),
                (pixel, pixel),
                stack.spacing_mm,
            )
            for number in range(stack.count)
        ),
        # the last slice tells all that the seed has chosen: the body, its bending and the balls
        _sha256=_sha256(stack.image(stack.count - 1)),
    )
    dataset.add_fact("pixel", f"{pixel:g} mm", "the phantom")
    dataset.add_fact("slices", f"{stack.count}, {stack.spacing_mm:g} mm apart", "the phantom")
    return dataset


def _sha256(image: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(image).tobytes()).hexdigest()
