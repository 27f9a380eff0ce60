"""What a volume's reconstruction is, settled and stored before anything is computed.

A slice's noise is its own, but rounding depends on how many slices are computed together and on
the number of threads. The plan fixes both, so whoever follows it gets the same bits: the process
that goes on after a power cut, and the worker on another machine.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch

from engine.data.source import parse_slices
from engine.files.record import REMOVED
from engine.physics.device import choose_device
from engine.physics.units import IntensityMap
from engine.runs.prepare import open_dataset, versions
from engine.solvers.coupling import check_neighbours
from engine.spec.errors import RequestError
from engine.spec.input_options import PATH_OPTIONS
from engine.spec.job import Job
from engine.workflows.volume.batches import HALO, Batch, SliceContext, default_batch, divide

MOST_THREADS = 1024
MOST_SLICES = 1_000_000


@dataclass(frozen=True)
class VolumePlan:
    """All that the bits of a volume depend on.

    ``job`` has its preset resolved into settings and its device chosen. ``intensity`` is the
    prior's; an MR image's own scale is stored with each slice.
    """

    job: Job
    numbers: tuple[int, ...]  # of the slices, in the order of the result
    batches: tuple[Batch, ...]
    threads: int
    device: str  # 'cpu', 'cuda' or 'mps'
    input_sha256: str
    prior_sha256: str | None
    versions: dict[str, str]
    image_shape: tuple[int, int, int]
    intensity: IntensityMap
    modality: str

    @property
    def batch(self) -> int:
        """Slices kept per batch."""
        return max(len(batch.kept) for batch in self.batches)

    @property
    def couples(self) -> bool:
        return bool(self.job.settings.get("couple_z"))

    @property
    def halo(self) -> int:
        return HALO if self.couples else 0

    def to_dict(self) -> dict[str, Any]:
        return {
            **{f.name: getattr(self, f.name) for f in dataclasses.fields(self)},
            "job": self.job.to_dict(),
            "numbers": list(self.numbers),
            "batches": [batch.to_dict() for batch in self.batches],
            "image_shape": list(self.image_shape),
            "intensity": self.intensity.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Any) -> VolumePlan:
        """From a file, which may be anybody's; what cannot be used is a RequestError."""
        names = {f.name for f in dataclasses.fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            raise RequestError("The volume's plan cannot be used: entries are missing or unknown.")
        try:
            plan = cls(
                **{
                    **values,
                    "job": Job.from_dict(values["job"]),
                    "numbers": tuple(values["numbers"]),
                    "batches": tuple(Batch.from_dict(batch) for batch in values["batches"]),
                    "image_shape": tuple(values["image_shape"]),
                    "intensity": IntensityMap(**values["intensity"]),
                }
            )
            fault = _fault(plan)
        except (TypeError, ValueError) as error:
            raise RequestError(
                "The volume's plan cannot be used: a value is of a wrong kind."
            ) from error
        if fault:
            raise RequestError(f"The volume's plan cannot be used: {fault}.")
        return plan

    def shareable(self) -> VolumePlan:
        """For files: a de-identified job does not name its input, whose hash is there."""
        if not self.job.deidentify:
            return self
        options = {k: v for k, v in self.job.options.items() if k not in PATH_OPTIONS}
        job = dataclasses.replace(self.job, input=REMOVED, options=options)
        return dataclasses.replace(self, job=job)

    def difference(self, other: VolumePlan) -> str:
        """What ``other`` asks for otherwise, such as 'seed 1 instead of 0'; '' if nothing.

        The same data may have moved: the input is known by its content, not by its name.
        """
        ours, theirs = _facts(self), _facts(other)
        for name in ours | theirs:
            if ours.get(name) != theirs.get(name):
                said = (_short(facts.get(name)) for facts in (theirs, ours))
                return "{} {} instead of {}".format(name.replace("_", " "), *said)
        return ""


def make_plan(
    job: Job,
    batch: int | None = None,
    threads: int | None = None,
    stored: VolumePlan | None = None,
    bench: SliceContext | None = None,
) -> VolumePlan:
    """Check the job on its first slice and fix how it is to be computed.

    What is not asked for is as in the ``stored`` plan, if there is one, and sized to memory
    otherwise.
    """
    for name, value, most in (
        ("batch", batch, MOST_SLICES),
        ("threads", threads, MOST_THREADS),
    ):
        if value is not None and not 1 <= value <= most:
            raise RequestError(f"⟦{name}⟧ must be from 1 to {most}, not {value}.")
    bench = bench or SliceContext(job, open_dataset(job))
    numbers = parse_slices(job.slices, len(bench.dataset))
    first = bench.prepared(numbers[:1])
    device = choose_device(job.device)
    settled = dataclasses.replace(
        job, settings=first.settings.to_dict(), preset=None, device=device.type
    )
    couples = bool(settled.settings.get("couple_z"))
    if couples:
        check_neighbours(numbers)
    size = batch or (stored.batch if stored else default_batch(first, len(numbers), couples))
    return VolumePlan(
        job=settled,
        numbers=numbers,
        batches=divide(numbers, size, HALO if couples else 0),
        threads=threads or (stored.threads if stored else torch.get_num_threads()),
        device=device.type,
        input_sha256=bench.dataset.sha256(),
        prior_sha256=first.prior.info.sha256 if first.prior else None,
        versions=versions(),
        image_shape=first.problem.operator.image_shape,
        intensity=bench.prior.info.intensity,
        modality=first.problem.modality,
    )


def _facts(plan: VolumePlan) -> dict[str, Any]:
    """A plan as named facts on one level, the most telling first."""
    body = plan.to_dict()
    job = body.pop("job")
    settings, acquisition, options = (job.pop(k) for k in ("settings", "acquisition", "options"))
    for name in ("input", "prior", "slices"):  # known by content, and by the slices' numbers
        job.pop(name)
    for name in PATH_OPTIONS:
        options.pop(name, None)
    return {**job, **settings, **acquisition, **options, **body.pop("versions"), **body}


def _fault(plan: VolumePlan) -> str:
    """What is wrong with the values of a plan, in words."""
    if (
        not plan.numbers
        or len(plan.numbers) > MOST_SLICES
        or len(set(plan.numbers)) < len(plan.numbers)
    ):
        return "it names no slices, or some twice"
    if not all(_is_count(number) for number in plan.numbers):
        return "a slice has no number"
    if tuple(n for batch in plan.batches for n in batch.kept) != plan.numbers:
        return "its batches are not its slices"
    if not {n for batch in plan.batches for n in batch.computed} <= set(plan.numbers):
        return "its batches are not its slices"
    shape = plan.image_shape
    if len(shape) != 3 or not all(_is_count(side) and 0 < side <= 1 << 16 for side in shape):
        return "its images have no size"
    if not _is_count(plan.threads) or not 1 <= plan.threads <= MOST_THREADS:
        return f"it asks for {_short(plan.threads)} threads"
    if plan.modality not in ("CT", "MR") or not isinstance(plan.device, str):
        return "its modality or device is unknown"
    hashes = isinstance(plan.input_sha256, str) and isinstance(plan.prior_sha256, str | None)
    if not hashes or not isinstance(plan.versions, dict):
        return "its input, prior or versions are not named"
    return ""


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
