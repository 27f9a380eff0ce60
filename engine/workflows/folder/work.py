"""One input of a folder: from its files to its results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from engine.data.dataset import Dataset
from engine.data.source import open_input
from engine.export import Result, write_outputs
from engine.export.dicom import OUR_NAMES
from engine.files.checkpoint import Checkpoint
from engine.files.record import shared_record
from engine.runs.prepare import make_run, prepare, resume_run
from engine.runs.run import Run
from engine.solvers.iteration import Iteration
from engine.spec.control import RunControl
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions
from engine.workflows.folder.finding import Found
from engine.workflows.folder.request import FolderRequest
from engine.workflows.folder.table import DONE, STOPPED, Row

RECORD = "RUN.json"
SERIES = "dicom"  # the folder of a result of several slices
Tick = Callable[[Iteration], None]


def reconstruct(
    asked: FolderRequest, found: Found, row: Row, resume: bool, control: RunControl, tick: Tick
) -> None:
    """Fill the row and its folder; an interrupted run goes on where its checkpoint stands."""
    folder = asked.results / row.folder
    dataset, run = _begin(asked, found, folder / RECORD, resume, control)
    folder.mkdir(exist_ok=True)
    for iteration in run:
        tick(iteration)
    row.slices, row.seconds = len(run.problem.slices), run.record.timings.get("total")
    if run.status == "cancelled":
        row.status = STOPPED
        return
    for values in run.record.metrics.values():
        row.psnr, row.ssim = values.get("psnr"), values.get("ssim")
    if run.image is None:
        raise RequestError("The method gave no image.")
    names = output_names(asked.formats, row.slices)
    paths = [folder / name for name in names]
    run.record.outputs = [str(path) for path in paths]
    deidentify = asked.job.deidentify
    result = Result(run.problem, run.image, run.record, dataset, asked.window, deidentify, run.last)
    write_outputs(paths, result, overwrite=True)
    run.record.write(folder / RECORD)
    Checkpoint.path_beside(folder / RECORD).unlink(missing_ok=True)  # the outputs hold the image
    row.outputs, row.status = names, DONE


def _begin(
    asked: FolderRequest, found: Found, record: Path, resume: bool, control: RunControl
) -> tuple[Dataset, Run]:
    if resume and Checkpoint.path_beside(record).exists():
        nameless = asked.job.deidentify  # the record does not name its input then
        path = str(found.path.absolute()) if nameless else None
        with contextlib.suppress(RequestError):  # whatever it lacks, there is another way
            prepared, run = resume_run(record, control, input=path, own=not nameless)
            return prepared.dataset, run
    options = {**asked.job.options, **found.options}
    dataset = open_input(str(found.path), InputOptions.from_dict(options))
    prepared = prepare(asked.job_for(found.path, found.options, dataset), dataset)
    return dataset, make_run(prepared, record, control)


def output_names(formats: tuple[str, ...], slices: int) -> list[str]:
    """One DICOM file holds one slice; several make a folder."""
    return [SERIES if one == "dcm" and slices > 1 else f"result.{one}" for one in formats]


def discard(folder: Path, outputs: list[str]) -> None:
    """Remove what we wrote of an input that is no more; nothing else in the folder."""
    for name in outputs:
        path = folder / name
        with contextlib.suppress(OSError):
            if not path.is_dir():
                path.unlink(missing_ok=True)
                continue
            for member in path.iterdir():
                if OUR_NAMES.fullmatch(member.name):
                    member.unlink()
            path.rmdir()


def told_of(sentence: str, asked: FolderRequest, found: Found) -> str:
    """A sentence for the table, which names files without their folders, or none of them."""
    if asked.job.deidentify:
        paths = [str(found.path.absolute()), *(str(path.absolute()) for path in found.files[:100])]
        body = {"job": {"input": paths[0]}, "input": {}, "outputs": paths[1:], "message": sentence}
        return " ".join(str(shared_record(body, deidentify=True)["message"]).split())
    for place in (asked.folder.absolute(), asked.results.absolute(), asked.folder, asked.results):
        sentence = sentence.replace(f"{place}/", "").replace(f"{place}\\", "")
    return " ".join(sentence.split())
