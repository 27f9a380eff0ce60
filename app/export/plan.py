"""From what is on the screen and what was ticked to the files that would be written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.export.exporting import RunExport, Window, report_fault
from app.export.formats import BY_KEY, FORMATS, REPORT, files_of, name_fault, output_of
from app.export.staging import foreign, occupied
from app.runs.store import RunEntry, differing
from engine.spec.errors import RequestError
from engine.spec.marks import CORNERS

CURRENT, VISIBLE, REPORT_OF_VISIBLE = "current", "visible", "report"
WHAT: Final = (CURRENT, VISIBLE, REPORT_OF_VISIBLE)


@dataclass(frozen=True)
class Shown:
    """What the window shows at the moment.

    ``slice`` is the number of the shown slice in the input; ``patient`` says whether the data
    name somebody.
    """

    current: RunEntry | None = None
    visible: tuple[RunEntry, ...] = ()
    slice: int | None = None
    window: Window | None = None
    patient: bool = True
    corner: str = CORNERS[0]  # for the marks of pictures


@dataclass(frozen=True)
class Choices:
    """What the person asks for."""

    what: str = CURRENT
    all_slices: bool = True
    formats: tuple[str, ...] = ("dicom",)
    folder: str = ""
    base: str = ""
    deidentify: bool = True
    replace: bool = False


@dataclass(frozen=True)
class Plan:
    """``files`` in the order of writing; ``reason`` says why there is nothing to write."""

    runs: tuple[RunExport, ...] = ()
    files: tuple[Path, ...] = ()
    report: Path | None = None
    reason: str = ""


@dataclass(frozen=True)
class Found:
    """What the folder says to a plan: files that are there, or why it cannot be."""

    existing: frozenset[Path] = field(default_factory=frozenset)
    reason: str = ""


def make_plan(shown: Shown, choices: Choices) -> Plan:
    """Touches no file."""
    try:
        entries = _wanted(shown, choices)
        if choices.what != REPORT_OF_VISIBLE and not choices.formats:
            raise RequestError("Tick at least one format.")
        if not choices.folder.strip():
            raise RequestError("Choose a folder.")
        if not Path(choices.folder).is_absolute():
            raise RequestError("Give the whole path of the folder, or choose it with Browse.")
        if fault := name_fault(choices.base):
            raise RequestError(fault)
    except RequestError as error:
        return Plan(reason=str(error))
    folder, base = Path(choices.folder), choices.base
    if choices.what == REPORT_OF_VISIBLE:
        path = folder / f"{base}{REPORT.suffix}"
        runs = [RunExport(_record(e), (), e.name, e.job, corner=shown.corner) for e in entries]
        return Plan(tuple(runs), (path,), path)
    exports, files = list[RunExport](), list[Path]()
    names = _names(base, entries, choices.what)
    for entry, name in zip(entries, names, strict=True):
        numbers = entry.slices if choices.all_slices or shown.slice is None else (shown.slice,)
        keys = [format.key for format in FORMATS if format.key in choices.formats]
        outputs = [output_of(BY_KEY[key], folder, name, len(numbers)) for key in keys]
        files += [path for output in outputs for path in files_of(output, numbers)]
        one = numbers[0] if len(numbers) < len(entry.slices) else None
        about = (_record(entry), tuple(outputs), entry.name, entry.job, one)
        exports.append(RunExport(*about, number=entry.number, corner=shown.corner))
    return Plan(tuple(exports), tuple(files))


def fault_of(entry: RunEntry) -> str:
    """Why a run cannot be exported; empty when it can."""
    if entry.running:
        return f"{entry.name} is still running."
    if entry.stack is not None:
        return f"{entry.name} is a stack: choose it in the list of series, then export."
    if entry.images is None or not entry.slices:
        return f"{entry.name} has no image."
    if entry.record_path is None:
        return f"{entry.name} was not recorded."
    return ""


def look(plan: Plan) -> Found:
    """Ask the disk; runs in a task's thread."""
    if plan.reason or not plan.files:
        return Found()
    folder = plan.files[0].parent
    if not folder.is_dir():
        return Found(reason="The folder does not exist.")
    if not os.access(folder, os.W_OK):
        return Found(reason="The folder is not writable.")
    faults = [fault for path in plan.files if (fault := foreign(path))]
    existing = frozenset(path for path in plan.files if occupied(path))
    return Found(existing, faults[0] if faults else "")


def default_base(modality: str) -> str:
    """A name that says nothing of the patient."""
    return f"dualscope-{modality.lower()}" if modality else "dualscope"


def _wanted(shown: Shown, choices: Choices) -> list[RunEntry]:
    """The runs to export; says why not when one of them cannot be."""
    if choices.what == CURRENT:
        entries = [shown.current] if shown.current else []
    else:
        entries = [entry for entry in shown.visible if entry.images is not None]
    if not entries:
        raise RequestError("There is no finished run yet: press Run first.")
    for entry in entries:
        if fault := fault_of(entry):
            raise RequestError(fault)
    if choices.what == REPORT_OF_VISIBLE:
        for entry in entries[1:]:
            if other := differing(entries[0].job, entry.job):
                raise RequestError(report_fault(entry.name, other))
    elif not choices.all_slices and shown.slice is not None:
        without = [entry for entry in entries if shown.slice not in entry.slices]
        if without:
            raise RequestError(f"{without[0].name} does not have the slice that is shown.")
    return entries


def _names(base: str, entries: Iterable[RunEntry], what: str) -> list[str]:
    """One run takes the name as it is; several are told apart by number and method."""
    if what == CURRENT:
        return [base]
    return [f"{base}-{entry.number}-{re.sub('[^a-z0-9-]', '-', entry.solver)}" for entry in entries]


def _record(entry: RunEntry) -> Path:
    assert entry.record_path is not None  # fault_of has asked
    return entry.record_path
