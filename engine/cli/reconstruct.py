"""``dualscope reconstruct INPUT -o OUT [OUT ...] [--record RUN.json]``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from engine.cli.options import (
    SHOWN,
    SHOWN_INPUT,
    add_job_options,
    follow,
    job_from,
    one_of,
    solver_help,
    unused_options,
)
from engine.cli.parser import Parser
from engine.cli.volume import add_volume_options, check_volume_options, run_volume, volume_folder
from engine.data.dataset import Dataset
from engine.data.sidecar import sidecar_of
from engine.export import Result, check_outputs, write_outputs
from engine.export.outputs import OUTPUT_UNITS, parse_window
from engine.files.atomic import check_writable, in_use
from engine.files.checkpoint import Checkpoint
from engine.files.folders import state_folder
from engine.files.path_safety import check_apart
from engine.runs.prepare import Prepared, check_job, make_run, open_dataset, prepare, resume_run
from engine.runs.run import Run
from engine.runs.verdicts import CLASSICAL, doubts_prior
from engine.solvers.catalogue import find_solver
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, RequestError, marked, shown
from engine.spec.input_options import PATH_OPTIONS
from engine.spec.job import Job
from engine.spec.numbers import regions_in_words

FILE_OPTIONS = tuple(name for name in PATH_OPTIONS if name != "allow_links")  # that is a folder
EXIT_CODES = {"done": 0, "finished early": 0, "failed": 1, "cancelled": 130}


def add_options(parser: argparse.ArgumentParser) -> None:
    add_job_options(parser)
    add_volume_options(parser)
    parser.add_argument(
        "-o",
        "--output",
        nargs="+",
        metavar="OUT",
        default=[],
        help="Results by suffix: .dcm, .nii.gz, .png, .16.png, .tif, .npy, .h5 (with the whole "
        "record); a name without suffix is a folder for a DICOM series.",
    )
    parser.add_argument(
        "--solver",
        default="dc-pnpdp",
        metavar="NAME",
        help=f"{solver_help()} Default: dc-pnpdp.",
    )
    parser.add_argument("--record", metavar="RUN.json", help="Keep a record, to resume from.")
    parser.add_argument("--resume", metavar="RUN.json", help="Continue an interrupted run.")
    parser.add_argument("--overwrite", action="store_true", help="Replace existing files.")
    parser.add_argument(
        "--output-unit",
        metavar="|".join(OUTPUT_UNITS),
        help="CT as HU or as attenuation in 1/mm (.npy, .tif, .nii). Default: hu.",
    )
    parser.add_argument("--window", metavar="C/W", help="Window of .png output, centre/width.")
    parser.add_argument(
        "--checkpoint-seconds",
        metavar="S",
        type=float,
        default=1.0,
        help="Lose at most this much work when killed. Default: 1.",
    )
    parser.add_argument("--quiet", action="store_true", help="No progress bar, no summary.")
    if isinstance(parser, Parser):
        parser.show(
            "INPUT -o OUT [OUT ...] [options]",
            {
                "input and output": (
                    "input",
                    *SHOWN_INPUT,
                    "--output",
                    "--overwrite",
                    "--record",
                    "--resume",
                ),
                **SHOWN,
                "method": ("--solver", *SHOWN["method"]),
            },
            (
                "demo:ct --views 20 -o image.png",
                "scan.npy --kind sinogram --record run.json -o image.nii.gz",
                "brain.h5 --acceleration 6 --solver dds --slice 10 -o image.dcm",
            ),
        )


def run(options: argparse.Namespace) -> int:
    """A record belongs to one process, from reading it to the last line written into it."""
    record = options.resume or options.record
    with in_use(Path(record)) if record else nullcontext():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    check_volume_options(options)
    overwrite = options.overwrite or bool(options.resume)
    outputs = check_outputs(options.output, overwrite, folders=True)
    window = parse_window(options.window)
    one_of("--output-unit", options.output_unit, OUTPUT_UNITS)
    control = RunControl()
    if options.resume:
        dataset, prepared_run = _resumed(options, control)
        check_apart(outputs, _sources(options, prepared_run.record.job, dataset))
    else:
        job = _job(options)
        record = _checked_record(options)
        dataset = open_dataset(job)
        written = [*outputs, *([record, Checkpoint.path_beside(record)] if record else [])]
        check_apart(written, _sources(options, job.to_dict(), dataset))
        folder = volume_folder(options, job, dataset, outputs)
        if folder is not None:
            with cancel_on_signals(control):
                return run_volume(options, folder, job, dataset, outputs, window, control)
        prepared_run = _fresh(options, control, job, dataset, record)
    if not outputs and not prepared_run.record_path:
        raise RequestError("Nothing to write: name an output with -o, or a --record.")
    failure: Exception | None = None
    with cancel_on_signals(control):
        try:
            follow(prepared_run, quiet=options.quiet)
        except Exception as error:  # whatever it is, the image so far is written first
            failure = error
    if prepared_run.image is not None:
        prepared_run.record.outputs = [str(path) for path in outputs]
        result = Result(
            prepared_run.problem,
            prepared_run.image,
            prepared_run.record,
            dataset,
            window,
            deidentify=bool(prepared_run.record.job.get("deidentify")),
            last=prepared_run.last,
            output_unit=options.output_unit or "hu",
        )
        try:
            notes = write_outputs(outputs, result, overwrite)
        except DualscopeError as error:
            kind = RequestError if isinstance(error, RequestError) else DualscopeError
            raise kind(f"{marked(error)} {kept(prepared_run)}".strip()) from error
        for note in notes:
            print(f"dualscope: note: {shown(note)}", file=sys.stderr)
        if prepared_run.record_path:
            prepared_run.record.write(prepared_run.record_path)
    if failure is not None:
        raise failure
    if not options.quiet:
        summary(prepared_run)
    return EXIT_CODES[prepared_run.status]


def _job(options: argparse.Namespace) -> Job:
    find_solver(options.solver)
    job = job_from(options, options.solver)
    for name in unused_options(options, options.solver):
        print(f"dualscope: note: {name} has no effect on {options.solver}.", file=sys.stderr)
    check_job(job)
    return job


def _checked_record(options: argparse.Namespace) -> Path | None:
    if not options.record:
        return None
    (record,) = check_outputs([options.record], options.overwrite, suffixes=(".json",))
    check_writable(Checkpoint.path_beside(record))
    return record


def _sources(options: argparse.Namespace, job: dict[str, Any], dataset: Dataset) -> list[Path]:
    """All that this run reads: no output may take the place of any of it."""
    chosen = job.get("options") or {}
    named = [job.get("input"), job.get("prior"), *(chosen.get(name) for name in FILE_OPTIONS)]
    found = [Path(text) for text in named if isinstance(text, str)]
    found += [*dataset.files, *(sidecar_of(path) for path in found[:1] if path.name)]
    if options.resume:
        record = Path(options.resume)
        found += [record, Checkpoint.path_beside(record)]
    return found


def _fresh(
    options: argparse.Namespace,
    control: RunControl,
    job: Job,
    dataset: Dataset,
    record: Path | None,
) -> Run:
    prepared = prepare(job, dataset)
    print_warnings(prepared)
    return make_run(prepared, record, control, options.checkpoint_seconds)


def print_warnings(prepared: Prepared) -> None:
    for warning in prepared.warnings:
        print(f"dualscope: warning: {warning}", file=sys.stderr)


def _resumed(options: argparse.Namespace, control: RunControl) -> tuple[Dataset, Run]:
    if options.record is not None:
        raise RequestError("--resume takes everything from the record: leave --record.")
    path = Path(options.resume)
    if not path.exists():
        raise RequestError(f"{path} does not exist.")
    prepared, resumed = resume_run(path, control, options.checkpoint_seconds, options.input)
    return prepared.dataset, resumed


@contextmanager
def cancel_on_signals(control: RunControl) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM ends the run after its step; a second Ctrl-C at once."""

    def on_signal(number: int, frame: object) -> None:
        control.cancel()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    old = {s: signal.signal(s, on_signal) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def kept(done: Run) -> str:
    """Keep a result that could not be written where it was asked for; how to get it."""
    path = done.record_path
    try:
        if path is None:
            path = state_folder() / "kept" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            done.keep(path)
    except (DualscopeError, OSError):
        return ""
    return f"The result is kept: write it with dualscope reconstruct --resume {path} -o OUT."


def summary(done: Run) -> None:
    words = [done.solver.label, done.status]
    for profile, values in done.record.metrics.items():
        words.append(f"PSNR {values['psnr']:.2f} dB, SSIM {values['ssim']:.3f} ({profile})")
    words.append(f"{done.record.timings.get('total', 0.0):.1f} s")
    print("; ".join(words))
    inside = [
        words for values in done.record.metrics.values() for words in regions_in_words(values)
    ]
    for sentence in (*inside, *done.record.verdicts.values()):
        print(f"  {sentence}")
    if doubts_prior(done.record.verdicts):
        print(f"  To compare: the same command with --solver {CLASSICAL}.")
    for path in done.record.outputs:
        print(f"  {shown(path)}")
