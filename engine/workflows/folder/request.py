"""What is asked of a folder: the same job for every input, and where the results go."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.files.path_safety import DEVICE, reading
from engine.files.presets import BUILT_IN, Preset, PresetStore, read_preset
from engine.files.record import plain
from engine.spec.acquisition import acquisition_for
from engine.spec.errors import RequestError, marked
from engine.spec.job import Job

if TYPE_CHECKING:
    from engine.data.dataset import Dataset

MODALITIES = {"CT": "CT", "MR": "MRI"}
DEFAULT_SOLVER = "dc-pnpdp"
SETTLE_SECONDS, LONGEST_SETTLE = 5.0, 3600.0


@dataclass(frozen=True)
class FolderRequest:
    """``job`` lacks its input; ``presets`` are one of a name, or one for each modality.

    What the job says counts more than a preset; without a solver it takes the preset's. A file
    is taken when it has not changed for ``settle_seconds``.
    """

    folder: Path
    results: Path
    job: Job
    presets: tuple[Preset, ...] = ()
    formats: tuple[str, ...] = ("dcm", "png")
    window: tuple[float, float] | None = None
    watch: bool = False
    settle_seconds: float = SETTLE_SECONDS
    retry_failed: bool = False

    def check(self) -> None:
        """Refuse what could only fail for every input; one sentence."""
        formats = known_formats()
        folder, results = self.folder.resolve(), self.results.resolve()
        if not folder.is_dir():
            raise RequestError(f"{self.folder} is not a folder.")
        with reading(self.folder):
            os.listdir(folder)
        if folder.is_relative_to(results):
            raise RequestError(
                f"The results cannot go to {self.results}, which holds the inputs: name another "
                "folder, such as one inside of it."
            )
        if not self.formats:
            raise RequestError("Nothing to write: name at least one of ⟦formats⟧.")
        for name in self.formats:
            if name not in formats:
                known = ", ".join(formats)
                raise RequestError(f"⟦formats⟧ '{name}' is not known: choose of {known}.")
        if not 0 < self.settle_seconds <= LONGEST_SETTLE or math.isnan(self.settle_seconds):
            raise RequestError(f"⟦settle⟧ must be above 0 and at most {LONGEST_SETTLE:g} seconds.")
        for preset in self.presets:
            _check_preset(preset)

    def job_for(self, path: Path, options: dict[str, Any], dataset: Dataset) -> Job:
        """The job of one input; a preset's scan is for images, whose scan is simulated."""
        from engine.solvers.catalogue import find_solver

        job = dataclasses.replace(
            self.job, input=str(path.absolute()), options={**self.job.options, **options}
        )
        if not self.presets:
            return job
        preset = next((one for one in self.presets if one.modality == dataset.modality), None)
        if preset is None:
            known, found = self.presets[0], MODALITIES[dataset.modality]
            raise RequestError(
                f"“{known.name}” is for {MODALITIES[known.modality]}, and this is {found}."
            )
        scan = preset.acquisition if dataset.kind == "image" else {}
        solver = job.solver or preset.solver or DEFAULT_SOLVER
        fields = {one.name for one in dataclasses.fields(find_solver(solver).settings_class)}
        values = {name: value for name, value in preset.settings.items() if name in fields}
        return dataclasses.replace(
            job,
            solver=solver,
            acquisition={**scan, **job.acquisition},
            settings={**values, **job.settings},
            preset=preset.engine_preset or job.preset,
        )

    def settings_sha256(self) -> str:
        """Of all that a result depends on but its input; a prior's file counts by content."""
        from engine.data.dataset import sha256_of

        prior = Path(self.job.prior)
        body = {
            "job": {**self.job.to_dict(), "input": ""},
            "presets": [dataclasses.asdict(one) | {"path": None} for one in self.presets],
            "formats": sorted(self.formats),
            "window": self.window,
            "prior": sha256_of(prior) if prior.is_file() else "",
        }
        return hashlib.sha256(json.dumps(plain(body), sort_keys=True).encode()).hexdigest()


def known_formats() -> list[str]:
    """What can be written of each input; torch comes along."""
    from engine.export import OUTPUT_SUFFIXES

    return [suffix.removeprefix(".") for suffix in OUTPUT_SUFFIXES]


def find_presets(text: str) -> tuple[Preset, ...]:
    """A preset's file, or those of a name: the program's own and the saved ones."""
    if text.lower().endswith(".json"):
        return (read_preset(Path(text)),)
    store = PresetStore()
    named = [one for kind in MODALITIES for one in store.presets(kind) if one.name == text]
    if not named:
        known = ", ".join(f"'{one}'" for one in dict.fromkeys(p.name for p in BUILT_IN))
        raise RequestError(
            f"⟦preset⟧ '{text[:80]}' is not known: give one of the paper's or a budget by name "
            f"(see 'dualscope batch --help'), {known}, one that you have saved, or its .json file."
        )
    return tuple(named)


def solver_of(presets: Sequence[Preset]) -> str | None:
    """The method that presets name, if they do."""
    return next((one.solver for one in presets if one.solver is not None), None)


def _check_preset(preset: Preset) -> None:
    from engine.solvers.catalogue import find_solver

    try:
        if preset.solver is not None:
            find_solver(preset.solver).settings_class.from_dict(preset.settings)
        acquisition_for(preset.modality, preset.acquisition)
    except (RequestError, OverflowError, TypeError) as error:
        raise RequestError(f"The preset “{preset.name}” cannot be used: {marked(error)}") from None


LONGEST = 60
SAFE = re.compile(r"\w[\w-]{0,79}")


def safe_name(text: str) -> str:
    """A name as a folder's: letters, digits, '-' and '_', on every system.

    Without dots there is neither a way up nor a name that another file of ours could have.
    """
    words = (
        re.sub(r"[^\w-]+|--+", "-", unicodedata.normalize("NFC", text))
        .strip("-_")[:LONGEST]
        .rstrip("-_")
    )
    if not words or not SAFE.fullmatch(words):
        return "input"
    return f"{words}-input" if DEVICE.fullmatch(words) else words


def free_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, with a number when another one has it; many systems take 'A' and 'a' for one."""
    used = {name.casefold() for name in taken}
    number, name = 1, wanted
    while name.casefold() in used:
        number += 1
        name = f"{wanted}-{number}"
    return name


def shown_name(name: str) -> str:
    """A name that may hold line breaks or bytes of no alphabet, as one line; no two are alike."""
    return "".join(
        sign
        if sign.isprintable() and sign != "\\"
        else sign.encode("unicode_escape", "surrogatepass").decode("ascii")
        for sign in name
    )
