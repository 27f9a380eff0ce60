"""How many slices to compute together.

On a processor a CT data step reads the system matrix once for all slices of a batch. Measured at
256 x 256, 20 views and one thread, four together take 0.7 of the time of four one by one; eight
gain nothing more, and the network gains nothing at all. Nothing is shared between MR slices.
On a graphics card as many as half of its free memory holds, measured on one slice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from engine.physics.peak_memory import PeakMemory
from engine.runs.prepare import Prepared, make_run
from engine.solvers.backward_memory import free_bytes

CT_TOGETHER = 4  # on a processor
SLAB, HALO = 8, 2  # slices kept and, on either side, thrown away, where neighbours are coupled
PROBE_STEPS = 2  # the first allocates what is kept, the second all that a step takes
MOST_TOGETHER = 256
SHARE = 0.5  # of the free memory
# Memory that a slice of a large batch takes on a processor, in images of its size: measured with
# the bundled priors it is somewhat less.
IMAGES_HELD = 100


def default_batch(first: Prepared, count: int, couples: bool) -> int:
    """For ``count`` slices like that of ``first``."""
    if first.problem.measurement.device.type == "cpu":
        together = CT_TOGETHER if first.problem.modality == "CT" else 1
        return min(SLAB if couples else together, count)
    return min(batch_of(probe_bytes(first), free_bytes(first.problem.measurement.device)), count)


def batch_of(slice_bytes: int, free: int) -> int:
    return max(1, min(MOST_TOGETHER, int(SHARE * free / max(1, slice_bytes))))


def probe_bytes(first: Prepared) -> int:
    """The peak that one slice adds on its device, by a run that is cut short."""
    device = first.problem.measurement.device
    run = make_run(first)
    with PeakMemory(device) as peak:
        for iteration in run:
            if iteration.k >= PROBE_STEPS:
                run.control.cancel()
    if peak.gb is None:  # nobody tells: as on a processor
        return held_bytes(first.problem.operator.image_shape)
    return max(1, int(peak.gb * 1e9))


def held_bytes(image_shape: Sequence[int]) -> int:
    return IMAGES_HELD * math.prod(image_shape) * torch.float32.itemsize


def fits(count: int, image_shape: Sequence[int], device: torch.device) -> bool:
    """Whether ``count`` slices can be expected to fit into memory all at once."""
    return count * held_bytes(image_shape) <= SHARE * free_bytes(device)
