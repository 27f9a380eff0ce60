"""A stored volume for the screen: opened, filled and cut in a task's thread.

The engine, and torch with it, is imported when first needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from app.runs.stack import scratch_array
from app.tools.volume.space import ONE, Cut, Thick, Voxel, cuts_of
from engine.spec.errors import DualscopeError, RequestError

if TYPE_CHECKING:
    from engine.data.dataset import Placement
    from engine.spec.job import Job
    from engine.workflows.volume.folder import VolumeFolder
    from engine.workflows.volume.plan import VolumePlan

RESULT, REFERENCE, DIFFERENCE = "result", "reference", "difference"
AXES: Final = ("axial", "coronal", "sagittal")  # as the engine calls them
NO_PLACE: Final = "How far apart the slices are is not known: voxels are drawn as cubes."
NOT_MEASURED: Final = (
    "The figures along the axes come at the end of its run; if that was cut short, start it again."
)


@dataclass(frozen=True)
class Known:
    """Where the open data's slices lie, and which data these are."""

    sha256: str
    placements: tuple[Placement, ...] | None
    pixel_mm: tuple[float, float] | None
    slice_mm: float | None = None


@dataclass(frozen=True)
class Figures:
    """PSNR and SSIM across each of the three axes, where there are any; and the flicker."""

    profile: str = ""
    axes: tuple[tuple[float, float] | None, ...] = (None, None, None)
    flicker: float | None = None


@dataclass(frozen=True)
class Facts:
    """What the screen needs to know of a volume; new when more slices are stored."""

    folder: Path
    words: str  # method and scan
    modality: str
    shape: tuple[int, int, int]
    numbers: tuple[int, ...]  # of the slices in the input
    stored: frozenset[int]  # positions of those that are there
    has_reference: bool
    cuts: tuple[Cut, Cut, Cut]
    figures: Figures | None = None
    notes: tuple[str, ...] = ()
    title: str = ""
    names: tuple[str, str] = ("Result", "Reference")  # what the two are called
    exportable: bool = True
    reading_step: int = 1  # from a slice to the next InstanceNumber


@dataclass(eq=False)
class VolumeSource:
    """One folder of slices. Not for the GUI thread: reading takes as long as the disk takes."""

    folder: VolumeFolder
    plan: VolumePlan
    cuts: tuple[Cut, Cut, Cut]
    notes: tuple[str, ...]
    values: np.ndarray  # [N, H, W] in HU or the MR scale
    references: np.ndarray
    stored: set[int] = field(default_factory=set)  # positions
    referenced: set[int] = field(default_factory=set)

    @classmethod
    def open(cls, path: Path, known: Sequence[Known] = ()) -> VolumeSource:
        """``known`` are open data that may be those the volume was made from."""
        from engine.workflows.volume.folder import VolumeFolder

        folder = VolumeFolder.open(path)
        plan = folder.plan
        cuts, notes = _geometry(plan, known)
        shape = (len(plan.numbers), *plan.image_shape[1:])
        mapped = _assembled(folder) if folder.complete else None
        if mapped is not None:
            values, references = mapped
            everything = set(range(shape[0]))
            some = everything if references is not None else set()
            truths = values if references is None else references  # of no use without ``some``
            return cls(folder, plan, cuts, notes, values, truths, everything, some)
        source = cls(folder, plan, cuts, notes, scratch_array(shape), scratch_array(shape))
        source.refresh()
        return source

    def refresh(self) -> Facts:
        """Read the slices that are new since the last time."""
        from engine.workflows.volume.assemble import physical_slice

        self.folder.refresh()
        for at, number in enumerate(self.plan.numbers):
            if at in self.stored or number not in self.folder.stored:
                continue
            result = self.folder.read(number)
            self.values[at] = physical_slice(result, result.image)
            self.stored.add(at)
            if result.reference is not None:
                self.references[at] = physical_slice(result, result.reference)
                self.referenced.add(at)
        return self.facts()

    def facts(self) -> Facts:
        plan, done = self.plan, len(self.stored)
        notes = list(self.notes)
        if done < len(plan.numbers):
            notes.insert(0, f"{done} of {len(plan.numbers)} slices are stored.")
        figures = figures_of(self.folder.path) if self.folder.complete else None
        if self.folder.complete and figures is None:
            notes.append(NOT_MEASURED)
        return Facts(
            self.folder.path,
            _words(plan, simulated=bool(self.referenced)),
            plan.modality,
            (len(plan.numbers), plan.image_shape[1], plan.image_shape[2]),
            plan.numbers,
            frozenset(self.stored),
            bool(self.referenced),
            self.cuts,
            figures,
            tuple(notes),
            title=self.place.name,
        )

    @property
    def place(self) -> Path:
        return self.folder.path

    def cut(self, what: str, axis: int, voxel: Voxel, slab: Thick = ONE) -> np.ndarray:
        """A picture; what is not stored yet is not a number in it."""
        cut = self.cuts[axis]
        if what == RESULT:
            return seen(cut, self.values, self.stored, voxel, slab)
        truth = seen(cut, self.references, self.referenced, voxel, slab)
        if what == REFERENCE:
            return truth
        return seen(cut, self.values, self.stored, voxel, slab) - truth


def seen(
    cut: Cut, volume: np.ndarray, known: set[int], voxel: Voxel, slab: Thick = ONE
) -> np.ndarray:
    """The cut as far as its slices are ``known``."""
    if len(known) == len(volume):
        return cut.picture(volume, voxel, slab)
    if cut.axis == 0:
        span = [number for number in cut.span(voxel, volume.shape, slab) if number in known]
        if not span:
            return np.full(volume.shape[1:], np.nan, np.float32)
        return cut.project(volume, span, slab.how if len(span) > 1 else None)
    picture = cut.picture(volume, voxel, slab)
    there = np.zeros(volume.shape[0], bool)
    there[list(known)] = True
    flipped = cut.flip_down if cut.down == 0 else cut.flip_right
    there = there[::-1] if flipped else there
    return np.where(there[:, None] if cut.down == 0 else there[None, :], picture, np.nan)


def _assembled(folder: VolumeFolder) -> tuple[np.ndarray, np.ndarray | None] | None:
    """The engine's own maps; None where the folder cannot be written to."""
    from engine.workflows.volume.assemble import Volume

    try:
        volume = Volume(folder)
        return volume.values, volume.reference
    except DualscopeError:
        return None


def _geometry(
    plan: VolumePlan, known: Sequence[Known]
) -> tuple[tuple[Cut, Cut, Cut], tuple[str, ...]]:
    found = next((one for one in known if one.sha256 == plan.input_sha256), None)
    if found is None:
        found = _of_input(plan)
    placements = found.placements if found is not None else None
    pixel_mm = found.pixel_mm if found is not None else None
    if placements is not None and max(plan.numbers) < len(placements):
        return cuts_of([placements[number] for number in plan.numbers], pixel_mm), ()
    slice_mm = found.slice_mm if found is not None else None
    return cuts_of(None, pixel_mm, slice_mm), () if slice_mm else (NO_PLACE,)


def _of_input(plan: VolumePlan) -> Known | None:
    """From the data themselves, if they are still there and still the same."""
    from engine.runs.prepare import open_dataset

    with suppress(DualscopeError):
        dataset = open_dataset(own_job(plan))
        if dataset.sha256() == plan.input_sha256:
            return Known(plan.input_sha256, dataset.placements, dataset.pixel_mm, dataset.slice_mm)
    return None


def own_job(plan: VolumePlan) -> Job:
    """The plan's job, which may be anybody's: it reaches for no other computer and no device."""
    from engine.files.path_safety import fault_of_place
    from engine.spec.input_options import PATH_OPTIONS

    job = plan.job
    for text in (job.input, job.prior, *(job.options.get(name) for name in PATH_OPTIONS)):
        if isinstance(text, str) and (fault := fault_of_place(text)):
            raise RequestError(f"The volume names {fault}: open its data first.")
    return job


def _words(plan: VolumePlan, simulated: bool) -> str:
    from app.session.jobs import job_lines
    from engine.solvers.catalogue import find_solver

    job = plan.job.to_dict()
    with suppress(DualscopeError):
        label = find_solver(plan.job.solver).label
        weight = plan.job.settings.get("couple_z")
        coupled = (f"coupled {weight:g}",) if weight else ("each slice on its own",)
        return ", ".join((*job_lines(job, label, plan.modality, simulated), *coupled))
    return plan.job.solver


def figures_of(path: Path) -> Figures | None:
    """From the summary that a finished run writes; anything odd in it is as none."""
    from engine.files.record import MAX_RECORD_BYTES
    from engine.workflows.volume.assemble import FACTS

    with suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        if (path / FACTS).stat().st_size > MAX_RECORD_BYTES:
            return None
        axes = json.loads((path / FACTS).read_bytes())["axes"]
        return Figures(
            str(axes.get("profile", ""))[:60],
            tuple(_pair(axes.get(name)) for name in AXES),
            None if axes.get("flicker") is None else float(axes["flicker"]),
        )
    return None


def _pair(one: Any) -> tuple[float, float] | None:
    return (float(one["psnr"]), float(one["ssim"])) if isinstance(one, dict) else None
