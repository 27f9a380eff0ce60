"""Smaller images by averaging whole pixels, as if the scanner had had larger ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.data.dataset import ImageDataset, Placement, Vector
from engine.spec.errors import RequestError


def shrunk(dataset: ImageDataset, size: int) -> ImageDataset:
    """``dataset`` with its longer side ``size`` pixels; only whole factors are possible."""
    rows, columns = dataset.image_size
    factor = max(rows, columns) // size
    if factor * size != max(rows, columns) or rows % max(factor, 1) or columns % max(factor, 1):
        raise RequestError(
            f"{dataset.description}: {rows} x {columns} pixels cannot be shrunk to {size}: "
            "give a size that divides them."
        )
    if factor == 1:
        return dataset
    read, pixel, placements = dataset.read, dataset.pixel_mm, dataset.placements

    def averaged(number: int, by: int = factor) -> np.ndarray:
        blocks = read(number).reshape(rows // by, by, columns // by, by)
        return blocks.mean(axis=(1, 3), dtype=blocks.dtype)

    def finer(number: int, times: int) -> np.ndarray | None:
        return None if factor % times else averaged(number, factor // times)

    smaller = replace(
        dataset,
        image_size=(rows // factor, columns // factor),
        pixel_mm=pixel and (pixel[0] * factor, pixel[1] * factor),
        placements=placements and tuple(_coarser(p, factor) for p in placements),
        read=averaged,
        read_fine=finer,
        facts=list(dataset.facts),
        warnings=list(dataset.warnings),
    )
    smaller.add_fact("shrunk", f"{factor} x {factor} pixels averaged", "option")
    return smaller


def _coarser(placement: Placement, factor: int) -> Placement:
    """The first large pixel's centre is that of its block."""
    down, right = placement.spacing_mm
    shift = (factor - 1) / 2
    position = (
        np.array(placement.position)
        + shift * right * np.array(placement.along_row)
        + shift * down * np.array(placement.along_column)
    )
    moved: Vector = (float(position[0]), float(position[1]), float(position[2]))
    return replace(placement, position=moved, spacing_mm=(down * factor, right * factor))
