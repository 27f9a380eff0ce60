"""Small results for the writers' tests: asymmetric images, placed obliquely or not at all."""

from __future__ import annotations

import numpy as np
import torch
from helpers import DenseOperator
from volume_files import oblique

from engine.data.dataset import ImageDataset
from engine.data.images.orientation import Screen
from engine.export import Result
from engine.files.record import RunRecord
from engine.physics.masks import build_mask
from engine.physics.mri import SingleCoilMRI
from engine.physics.problem import Problem
from engine.physics.units import IntensityMap

ROWS, COLUMNS = 12, 14


def make_problem(modality: str, slices: int, numbers: tuple[int, ...] = ()) -> Problem:
    generator = torch.Generator().manual_seed(0)
    count = len(numbers) or slices
    channels = 1 if modality == "CT" else 2
    image = torch.rand(count, channels, ROWS, COLUMNS, generator=generator) - 0.4
    if modality == "CT":
        matrix = torch.rand(30, ROWS * COLUMNS, generator=generator)
        operator = DenseOperator(matrix, (1, ROWS, COLUMNS))
        intensity = IntensityMap("hu", 1000.0)
    else:
        operator = SingleCoilMRI(build_mask("inversebench", COLUMNS, 2, seed=0), (ROWS, COLUMNS))
        intensity = IntensityMap("mr", 37.0)
    return Problem(
        operator,
        operator.forward(image),
        intensity,
        modality,
        reference=image,
        pixel_mm=(0.7, 0.9),
        slices=numbers,
    )


def make_result(modality, slices=1, placed=False, numbers=(), record=None, **more) -> Result:
    problem = make_problem(modality, slices, numbers)
    affine = oblique(spacing=(0.9, 0.7, 2.5))
    placements = Screen().placements(affine, (COLUMNS, ROWS, slices)) if placed else None
    dataset = ImageDataset(
        modality=modality,
        description="a test",
        count=slices,
        image_size=(ROWS, COLUMNS),
        pixel_mm=(0.7, 0.9),
        placements=placements,
        read=lambda number: np.zeros((ROWS, COLUMNS)),
    )
    image = problem.reference + 0.01
    return Result(problem, image, record or RunRecord(job={}), dataset, **more)
