"""Saved runs as the table, the panes and the plots take them; runs in a task's thread."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.forms.choices import load_methods
from app.forms.labels import on_screen
from app.runs.colours import dash_for, style_of
from app.runs.store import RunColumns, RunEntry
from app.theme import run_style
from app.workspace.file import PLACES, SUFFIX, SavedRun, Workspace
from app.workspace.reading import read_workspace
from engine.files.kept_result import KeptResult
from engine.files.path_safety import fault_of_place
from engine.files.record import REMOVED
from engine.files.record_words import prior_words, scan_words
from engine.spec.errors import DualscopeError
from engine.spec.input_options import PATH_OPTIONS
from engine.spec.numbers import as_float, numbers_in

if TYPE_CHECKING:
    from engine.files.record import RunRecord
    from engine.runs.reopen import Rebuilder

NOTHING_TO_SCRUB = "Of its past iterations and noise spectra nothing was kept."
Progress = Callable[[float, str], None]
MOST_LETTERS = 500  # of a verdict, which may be anybody's


def saved_run(entry: RunEntry) -> SavedRun | None:
    """A run of the session for `Workspace.runs`; None while it runs, or without a record."""
    if entry.running or entry.record_path is None:
        return None
    places = {name: value for name, value in entry.job.items() if name in PLACES}
    return SavedRun(entry.record_path, entry.number, entry.label, entry.note, entry.visible, places)


def restore_runs(
    path: Path, progress: Progress = lambda share, words: None, workspace: Workspace | None = None
) -> list[RunEntry]:
    """The runs of a workspace, or the one of a run record, for `RunStore.add`.

    A run that cannot be rebuilt, because its data are gone or changed, still comes: with its
    curves and numbers, with its image when the record tells enough, and with a message.
    ``workspace`` is the file's content when it has been read before.
    """
    from engine.runs.reopen import Rebuilder

    runs: tuple[SavedRun, ...] = (SavedRun(path),)
    if path.suffix == SUFFIX:
        runs = (workspace or read_workspace(path)).runs
    load_methods()  # whose colours the runs take
    rebuilder, entries = Rebuilder(), list[RunEntry]()
    for done, run in enumerate(runs):
        progress(done / len(runs), f"Opening run {run.number}")
        try:
            entries.append(_entry(run, rebuilder, entries))
        except DualscopeError as error:
            if path.suffix != SUFFIX:
                raise  # one record that is none: there is nothing to show
            entries.append(_lost(run, on_screen(error)))
    return entries


def kept_run(record_path: Path, note: str, others: list[RunEntry]) -> RunEntry:
    """A run of the library as it was seen last, without its data.

    One that was cut short kept no pictures; it is rebuilt, and a message says what is missing.
    """
    from engine.files.record import RunRecord

    load_methods()
    saved = SavedRun(record_path, note=note)
    record = RunRecord.read(record_path)
    try:
        kept = KeptResult.read(KeptResult.path_beside(record_path))
    except DualscopeError:
        from engine.runs.reopen import Rebuilder

        entry = _entry(saved, Rebuilder(), others)
        if entry.images is not None and len(entry.history) > 1:
            entry.message = entry.message or NOTHING_TO_SCRUB
    else:
        entry = _described(saved, record, others)
        entry.images = kept.images
        slices = kept.told.get("slices")
        numbers = [n for n in slices if isinstance(n, int)] if isinstance(slices, list) else []
        count = len(kept.images)
        entry.slices = tuple(numbers if len(numbers) == count else range(count))
        pixel = [as_float(size) for size in kept.told.get("pixel_mm") or ()]
        if len(pixel) == 2 and min(pixel) > 0:
            entry.pixel_mm = (pixel[0], pixel[1])
        _show_kept(entry, kept)
        steps = entry.last_frame.K if entry.last_frame is not None else 0
        entry.history = _history(record.history, steps)
    entry.run_id = record_path.stem
    entry.input_sha256 = str(record.input.get("sha256", ""))
    return entry


def _show_kept(entry: RunEntry, kept: KeptResult) -> None:
    """What there is to scrub through, and the last iteration's spectra and planes."""
    from app.runs.kept import frame_of_kept, snapshots_of

    entry.snapshots = snapshots_of(kept)
    entry.last_frame = frame_of_kept(kept)
    sample = kept.told.get("sample")
    if isinstance(sample, int) and 0 <= sample < len(entry.slices):
        entry.frame_slice = entry.slices[sample]


def _entry(run: SavedRun, rebuilder: Rebuilder, others: list[RunEntry]) -> RunEntry:
    from engine.files.record import RunRecord
    from engine.runs.frames import pictures_of, plane_unit
    from engine.runs.reopen import recorded_pictures

    record = RunRecord.read(run.record_path)
    entry = _described(run, record, others)
    history = record.history
    try:
        rebuilt = rebuilder.rebuild(run.record_path, run.places)
        problem = rebuilt.prepared.problem
        entry.images = pictures_of(problem, rebuilt.image)
        if problem.reference is not None:
            entry.reference = pictures_of(problem, problem.reference)
        entry.slices, entry.pixel_mm = tuple(problem.slices), problem.pixel_mm
        entry.modality, entry.unit = problem.modality, plane_unit(problem, "image")
        history = history[: rebuilt.k]  # the image is not newer than its checkpoint
    except DualscopeError as error:
        entry.message = entry.message or on_screen(error)
        entry.images = recorded_pictures(record, run.record_path)
        count = 0 if entry.images is None else len(entry.images)
        slices = record.input.get("slices")
        numbers = [n for n in slices if isinstance(n, int)] if isinstance(slices, list) else []
        entry.slices = tuple(numbers if len(numbers) == count else range(count))
    entry.history = _history(history)
    with contextlib.suppress(DualscopeError):  # older ones have none
        kept = KeptResult.read(KeptResult.path_beside(run.record_path))
        if entry.images is not None and kept.images.shape == entry.images.shape:
            _show_kept(entry, kept)
    return entry


def _described(run: SavedRun, record: RunRecord, others: list[RunEntry]) -> RunEntry:
    """All that the record says by itself."""
    from engine.runs.verdicts import CLASSICAL, doubts_prior

    job = {**_harmless(record.job), **run.places}
    solver, style = str(job.get("solver", "dc-pnpdp")), style_of(job)
    dash = dash_for(style, [entry.dash for entry in others if entry.colour == style.colour])
    label = run.label or _label(solver, naive=style == run_style("naive"))
    entry = RunEntry(_new_id(run), run.number, solver, job, style.colour, dash, label)
    entry.note, entry.visible, entry.record_path = run.note, run.visible, run.record_path
    entry.message = record.message
    entry.status = record.status
    if record.status == "running":  # its process died; nothing of it runs now
        entry.status, entry.message = "interrupted", "The run was interrupted."
    entry.metrics = numbers_in(next(iter(record.metrics.values()), {}))
    entry.scan, entry.prior = scan_words(record.operator), prior_words(record.prior)
    entry.verdicts = {n: t[:MOST_LETTERS] for n, t in record.verdicts.items() if isinstance(t, str)}
    entry.compare_with = CLASSICAL if doubts_prior(entry.verdicts) else ""
    entry.seconds = numbers_in(record.timings).get("total", 0.0)
    modality, pixel = record.input.get("modality"), record.input.get("pixel_mm")
    entry.modality = modality if modality in ("CT", "MR") else ""
    entry.unit = {"CT": "HU", "MR": "signal"}.get(entry.modality, "")
    if as_float(pixel) > 0:
        entry.pixel_mm = (as_float(pixel), as_float(pixel))
    return entry


def _harmless(job: dict[str, Any]) -> dict[str, Any]:
    """Without what a file must not name; the person's own places come on top of it."""
    options = job.get("options")
    named = [("input", job.get("input")), ("prior", job.get("prior"))]
    if isinstance(options, dict):
        named += [("options", options.get(name)) for name in PATH_OPTIONS]
    bad = [name for name, text in named if isinstance(text, str) and fault_of_place(text)]
    return job | {name: {} if name == "options" else REMOVED for name in bad}


def _lost(run: SavedRun, sentence: str) -> RunEntry:
    """A run whose record cannot be read: its name and note are still the person's."""
    style = run_style(run.label)
    name = run.label or "run"
    entry = RunEntry(
        _new_id(run), run.number, name, dict(run.places), style.colour, style.dash, name
    )
    entry.note, entry.visible, entry.record_path = run.note, run.visible, run.record_path
    entry.status, entry.message = "failed", sentence
    return entry


def _new_id(run: SavedRun) -> str:
    """Never one that is in use: the same run may be there already, or come back by Undo."""
    return f"{run.record_path.stem}-{uuid.uuid4().hex[:6]}"


def _label(solver: str, naive: bool) -> str:
    from engine.solvers.catalogue import find_solver

    try:
        label = find_solver(solver).label
    except DualscopeError:
        return solver
    return f"{label} naive" if naive else label


def _history(lines: list[Any], steps: int = 0) -> RunColumns:
    """``steps`` is how many were asked for, where that is known."""
    from app.runs.run_group import recorded_scalars

    history = RunColumns()
    for line in lines:
        if isinstance(line, dict):
            clean = {**line, "seconds": numbers_in(line.get("seconds"))}
            history.append({**recorded_scalars(clean), **({"K": steps} if steps else {})})
    return history
