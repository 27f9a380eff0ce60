"""Stored slices as one volume: in memory maps for the viewer, in files for everybody else."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from engine.export.outputs import Result, suffix_of, write_outputs
from engine.files.atomic import write_atomic, write_bytes_atomic
from engine.files.record import RunRecord, plain
from engine.physics.fourier import to_complex
from engine.physics.units import IntensityMap
from engine.runs.prepare import new_record
from engine.spec.errors import RequestError
from engine.workflows.volume.axes import axis_facts
from engine.workflows.volume.batches import SliceContext
from engine.workflows.volume.compute import SliceResult
from engine.workflows.volume.folder import VolumeFolder

FACTS = "summary.json"
WHOLE = (".h5",)  # holds measurement and complex images: made from the whole problem at once


def physical_slice(result: SliceResult, image: Tensor) -> np.ndarray:
    """``[H, W]`` in HU, or the magnitude in the input's MR scale."""
    values = result.intensity.to_physical(image)
    if result.intensity.kind == "mr":
        values = to_complex(values[None]).abs()[0]
    return values[0].float().numpy()


class Volume:
    """A complete folder as ``[N, H, W]`` arrays, each written once and then mapped."""

    def __init__(self, folder: VolumeFolder) -> None:
        folder.refresh()
        if not folder.complete:
            missing = len(folder.plan.numbers) - len(folder.stored)
            raise RequestError(f"{folder.path} is not complete: {missing} slices are missing.")
        self.folder, self.plan = folder, folder.plan

    @cached_property
    def slices(self) -> list[SliceResult]:
        """What is known of every slice, without its images."""
        empty = torch.empty(0)
        return [
            dataclasses.replace(
                self.folder.read(number),
                image=empty,
                reference=None,
            )
            for number in self.plan.numbers
        ]

    @cached_property
    def values(self) -> np.ndarray:
        mapped = self._mapped("volume")
        assert mapped is not None
        return mapped

    @cached_property
    def reference(self) -> np.ndarray | None:
        """None unless every slice has one."""
        return self._mapped("reference")

    def _mapped(self, name: str) -> np.ndarray | None:
        first = self.folder.read(self.plan.numbers[0])
        if name == "reference" and first.reference is None:
            return None
        digest = hashlib.sha256("".join(one.sha256 for one in self.slices).encode()).hexdigest()
        path = self.folder.path / f"{name}-{digest[:16]}.npy"  # other slices, another file
        if not path.exists():
            self._write(path, name == "reference")
            for old in self.folder.path.glob(f"{name}-*.npy"):
                if old != path:
                    with contextlib.suppress(OSError):  # somebody looks at it still
                        old.unlink()
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise RequestError(f"{path} cannot be used: remove it.") from error
        if mapped.shape != self._shape or mapped.dtype != np.float32:
            raise RequestError(f"{path} is not this volume: remove it.")
        return mapped

    @property
    def _shape(self) -> tuple[int, int, int]:
        return (len(self.plan.numbers), *self.plan.image_shape[1:])

    def _write(self, path: Path, references: bool) -> None:
        header = {"descr": "<f4", "fortran_order": False, "shape": self._shape}

        def write(stream: BinaryIO) -> None:
            npy.write_array_header_1_0(stream, header)
            for number in self.plan.numbers:
                result = self.folder.read(number)
                image = result.reference if references else result.image
                if image is None:
                    raise RequestError(f"Slice {number} of {self.folder.path} has no reference.")
                stream.write(physical_slice(result, image).astype("<f4").tobytes())

        write_atomic(path, write)

    def facts(self, before_plane: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """The record of the volume: plan, totals, every slice, and metrics by axis.

        Measuring a large volume takes minutes; ``before_plane`` may raise to end it.
        """
        numbers = self.plan.numbers
        neighbours = numbers == tuple(range(numbers[0], numbers[-1] + 1))
        return {
            "plan": self.plan.shareable().to_dict(),
            "division": [list(batch.kept) for batch in self.folder.division],
            "seconds": sum(one.seconds for one in self.slices),
            "nfe": sum(one.nfe for one in self.slices),
            "axes": axis_facts(
                self.plan.modality, self.values, self.reference, neighbours, before_plane
            ),
            "slices": [
                {
                    "number": one.number,
                    "sha256": one.sha256,
                    "seconds": one.seconds,
                    "residual": one.residual,
                    **one.metrics,
                }
                for one in self.slices
            ],
        }

    def write_facts(self, before_plane: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """The facts, kept with the slices, too."""
        facts = plain(self.facts(before_plane))
        content = json.dumps(facts, indent=1, allow_nan=False).encode()
        write_bytes_atomic(self.folder.path / FACTS, content)
        return facts


@dataclass(frozen=True)
class VolumeResult(Result):
    """A result whose values are mapped, not held in memory."""

    mapped: np.ndarray | None = None

    def values(self) -> np.ndarray:
        return super().values() if self.mapped is None else self.mapped


def export(
    volume: Volume,
    bench: SliceContext,
    outputs: Sequence[Path],
    facts: dict[str, Any],
    window: tuple[float, float] | None = None,
    overwrite: bool = False,
    output_unit: str = "hu",
) -> list[str]:
    """Write the volume by suffix; returns notes of what a format could not keep."""
    record = run_record(volume, bench, facts)
    record.outputs = [str(path) for path in outputs]
    whole = [path for path in outputs if suffix_of(path, WHOLE)]
    others = [path for path in outputs if path not in whole]
    mapped = dataclasses.replace(
        mapped_result(volume, bench, record, window), output_unit=output_unit
    )
    notes = write_outputs(others, mapped, overwrite)
    if whole:
        notes += write_outputs(whole, _whole_result(volume, bench, record, window), overwrite)
    return notes


def run_record(volume: Volume, bench: SliceContext, facts: dict[str, Any]) -> RunRecord:
    """How the volume was made, as a run's record says it."""
    plan = volume.plan
    record = new_record(bench.prepared(plan.numbers[:1]))
    record.input["slices"] = list(plan.numbers)
    record.status, record.threads = "done", plan.threads
    record.timings = {"total": facts["seconds"]}
    axial = facts["axes"].get("axial")
    if axial:
        record.metrics[facts["axes"]["profile"]] = {n: axial[n] for n in ("psnr", "ssim")}
    return record


def mapped_result(
    volume: Volume, bench: SliceContext, record: RunRecord, window: tuple[float, float] | None
) -> VolumeResult:
    """For the writers, whose values are those of the map."""
    plan = volume.plan
    problem = bench.prepared(plan.numbers[:1]).problem
    problem.slices = plan.numbers
    problem.intensity = IntensityMap(problem.intensity.kind)  # the values are physical already
    return VolumeResult(
        problem,
        torch.empty(len(plan.numbers), *plan.image_shape, device="meta"),  # only its shape is asked
        record,
        bench.dataset,
        window,
        deidentify=plan.job.deidentify,
        mapped=volume.values,
    )


def _whole_result(
    volume: Volume, bench: SliceContext, record: RunRecord, window: tuple[float, float] | None
) -> Result:
    plan = volume.plan
    problem = bench.prepared(plan.numbers).problem
    images = []
    for number in plan.numbers:  # an MR slice has a scale of its own: bring all to one
        result = volume.folder.read(number)
        physical = result.intensity.to_physical(result.image)
        images.append(problem.intensity.to_normalised(physical))
    image = torch.stack(images)
    return Result(
        problem.to("cpu"), image, record, bench.dataset, window, deidentify=plan.job.deidentify
    )
