"""Runs written to files, from their records and checkpoints.

Everything here runs in a task's thread. The engine, and torch with it, is imported when first
needed; the files of one export appear together at its end, or not at all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.export.formats import files_of, is_series
from app.export.staging import check_free, staging
from app.runs.store import differing
from engine.spec.errors import DualscopeError, RequestError, marked
from engine.spec.marks import CORNERS

if TYPE_CHECKING:
    from engine.export import Result
    from engine.export.dicom_deidentify import UidMap
    from engine.runs.reopen import Rebuilder, Rebuilt
    from engine.runs.run import Run

Window = tuple[float, float]
IMAGE_ONLY = (".npy", ".png", ".tif", ".tiff")  # need nothing but the image and its unit
Progress = Callable[[float, str], None]  # share done (0 to 1), what is being done


class Cancelled(Exception):
    """The person does not want the files any more."""


@dataclass(frozen=True)
class RunExport:
    """One run and where it goes.

    ``job`` knows where the run's files are now, if the record does not; ``slice`` is the one
    slice wanted (its number in the input), None for all of the run; ``number`` is the run's in
    the window.
    """

    record_path: Path
    outputs: tuple[Path, ...] = ()
    label: str = ""
    job: dict[str, Any] | None = None
    slice: int | None = None
    number: int | None = None
    corner: str = CORNERS[0]  # for the marks of pictures


def export_run(
    record_path: Path,
    outputs: Sequence[Path],
    window: Window | None = None,
    deidentify: bool = False,
    overwrite: bool = False,
    progress: Progress = lambda share, words: None,
    cancelled: Callable[[], bool] = lambda: False,
    *,
    job: dict[str, Any] | None = None,
    slice: int | None = None,
) -> list[str]:
    """Write one run; the notes say what a format could not keep. Raises `Cancelled`."""
    run = RunExport(record_path, tuple(outputs), "", job, slice)
    return export_runs([run], window, deidentify, overwrite, progress, cancelled)


def export_runs(
    runs: Sequence[RunExport],
    window: Window | None = None,
    deidentify: bool = False,
    overwrite: bool = False,
    progress: Progress = lambda share, words: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Write several runs as one export: all their files, or none."""
    _check_folders([path for run in runs for path in run.outputs])
    for run in runs:
        check_free(list(run.outputs), overwrite)
    from engine.export.dicom_deidentify import UidMap
    from engine.runs.reopen import Rebuilder

    notes: list[str] = []
    rebuilder, uids = Rebuilder(), UidMap()  # one map: de-identified series stay one study

    def pause(share: float, words: str) -> None:
        if cancelled():
            raise Cancelled
        progress(share, words)

    with staging(overwrite) as stage:
        for number, run in enumerate(runs):
            begun = number / len(runs)
            pause(begun, f"Reading {run.label}".strip())
            result = _result(rebuilder, run, window, deidentify)
            steps = _steps(run, result)
            # A window of its own would make every slice's grey mean something else.
            seen = dataclasses.replace(result, window=result.shown_window())
            for done, (final, index) in enumerate(steps):
                share = begun + (done + 1) / (len(steps) + 1) / len(runs)
                pause(share, f"Writing {final.name}")
                shown = result if index is None else _one(seen, index)
                notes += write_staged(stage.place(final), final, shown, uids, pause, share)
        pause(1.0, "Putting the files in place")
        stage.commit()
    return list(dict.fromkeys(notes))


def export_report(
    runs: Sequence[RunExport],
    path: Path,
    window: Window | None = None,
    deidentify: bool = False,
    overwrite: bool = False,
    progress: Progress = lambda share, words: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[str]:
    """One HTML page about runs of one measurement."""
    _check_folders([path])
    check_free([path], overwrite)
    from engine.export.report import write_report
    from engine.runs.reopen import Rebuilder

    rebuilder, first, named = Rebuilder(), None, list[tuple[str, "Run"]]()
    for number, run in enumerate(runs):
        if cancelled():
            raise Cancelled
        progress(number / (len(runs) + 1), f"Reading {run.label}".strip())
        rebuilt = rebuilder.rebuild(run.record_path, run.job)
        first = first or rebuilt
        if other := differing(_plain_job(first), _plain_job(rebuilt)):
            raise RequestError(report_fault(run.label, other))
        named.append((run.label, _finished_run(rebuilt, first)))
    if first is None:
        raise RequestError("There is no run to report on.")
    if cancelled():
        raise Cancelled
    progress(len(runs) / (len(runs) + 1), f"Writing {path.name}")
    hidden = deidentify or any(run.record.job.get("deidentify") for _, run in named)
    with staging(overwrite) as stage:
        problem, place, corner = first.prepared.problem, stage.place(path), runs[0].corner
        write_report(place, problem, named, window, deidentify=hidden, corner=corner)
        if cancelled():
            raise Cancelled
        stage.commit()
    return ["The report shows the first slice of the runs."] if _has_slices(first) else []


def report_fault(label: str, other: str) -> str:
    return f"A report is about one measurement: {label or 'a run'} differs in its {other}."


def _check_folders(paths: Sequence[Path]) -> None:
    for path in paths:
        if not path.absolute().parent.is_dir():
            raise RequestError(f"The folder {path.parent} does not exist.")


def _result(
    rebuilder: Rebuilder, run: RunExport, window: Window | None, deidentify: bool
) -> Result:
    from engine.export import Result
    from engine.runs.reopen import image_alone, select_slice

    dataset = None
    if alone := image_alone(run.record_path, run.job):
        if needy := [path.name for path in run.outputs if not path.name.endswith(IMAGE_ONLY)]:
            raise RequestError(
                f"The data of this run are gone, and {needy[0]} would need them: NumPy, PNG and "
                "TIFF files can still be written."
            )
        record, problem, image = alone
    else:
        rebuilt = rebuilder.rebuild(run.record_path, run.job)
        record, problem, image = rebuilt.record, rebuilt.prepared.problem, rebuilt.image
        dataset = rebuilt.prepared.dataset
    if run.slice is not None:
        if run.slice not in problem.slices:
            raise RequestError(f"{run.label or 'The run'} does not have slice {run.slice + 1}.")
        index = problem.slices.index(run.slice)
        problem, image = select_slice(problem, index), image[index : index + 1]
    hidden = deidentify or bool(record.job.get("deidentify"))
    about = (record, dataset, window)
    result = Result(problem, image, *about, deidentify=hidden, run_number=run.number)
    return dataclasses.replace(result, mark_corner=run.corner)


def _steps(run: RunExport, result: Result) -> list[tuple[Path, int | None]]:
    """Every file, and the index of its slice when it holds only that one."""
    numbers, steps = result.problem.slices, list[tuple[Path, int | None]]()
    for output in run.outputs:
        files = files_of(output, numbers)
        several = len(files) > 1
        steps += [(path, index if several else None) for index, path in enumerate(files)]
    return steps


def write_staged(
    staged: Path,
    final: Path,
    result: Result,
    uids: UidMap,
    pause: Progress,
    share: float,
    room: float = 0.0,
) -> list[str]:
    """Write what is to become ``final``; ``room`` is how much of the share its slices take."""
    from engine.export import dicom, write_outputs

    count = len(result.problem.slices)

    def before_slice(number: int) -> None:
        done = share + room * number / count
        pause(done, f"Writing {final.name}, slice {number + 1} of {count}")

    try:
        if is_series(final):
            return dicom.write_dicom_series(staged, result, uids=uids, before_slice=before_slice)
        if final.suffix.lower() == ".dcm":
            return dicom.write_dicom(staged, result, uids)
        return write_outputs([staged], result)
    except DualscopeError as error:  # name the file asked for, not the interim one
        raise DualscopeError(marked(error).replace(str(staged), str(final))) from error


def _one(result: Result, index: int) -> Result:
    from engine.runs.reopen import select_slice

    image = result.image[index : index + 1]
    return dataclasses.replace(result, problem=select_slice(result.problem, index), image=image)


def _finished_run(rebuilt: Rebuilt, first: Rebuilt) -> Run:
    """As the report wants it: in the units of the first run's prior, and at its end."""
    from engine.runs.prepare import make_run

    run = make_run(rebuilt.prepared)
    theirs, ours = rebuilt.prepared.problem.intensity, first.prepared.problem.intensity
    same = theirs == ours
    run.image = rebuilt.image if same else ours.to_normalised(theirs.to_physical(rebuilt.image))
    run.record, run.status = rebuilt.record, rebuilt.record.status
    return run


def _plain_job(rebuilt: Rebuilt) -> dict[str, Any]:
    return rebuilt.prepared.job.to_dict()


def _has_slices(rebuilt: Rebuilt) -> bool:
    return len(rebuilt.prepared.problem.slices) > 1
