"""``dualscope trust RUN.json -o FOLDER``: where a result is measured, and where it is guessed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine.cli.progress import progress_bar
from engine.cli.reconstruct import cancel_on_signals
from engine.files.record import RunRecord
from engine.physics.device import DEVICES
from engine.runs.rerun import iterations_of, prepare_again, threads
from engine.runs.run import RunControl, image_sha256
from engine.spec.errors import RequestError
from engine.workflows.trust import words
from engine.workflows.trust.assess import Assessment, assess
from engine.workflows.trust.report import claim_folder, write_assessment

SEEDS, STUDY_SEEDS = 8, 4


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", nargs="?", metavar="RUN.json", help="The record of a run.")
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True)
    parser.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help=f"Runs for the spread, the record's own the first. Default: {SEEDS} (study: "
        f"{STUDY_SEEDS}); 1: no spread.",
    )
    parser.add_argument(
        "--stop-below",
        type=float,
        metavar="HU",
        help="No more seeds once one changes the spread by less than this, RMS, twice in a row "
        "(MR: in the input's scale). Default: a tenth of the spread.",
    )
    parser.add_argument("--input", metavar="INPUT", help="The data of a de-identified record.")
    parser.add_argument("--device", metavar="|".join(DEVICES), help="Default: as recorded.")
    parser.add_argument("--overwrite", action="store_true", help="Replace an older assessment.")
    parser.add_argument("--quiet", action="store_true", help="No progress, no summary.")
    parser.add_argument(
        "--study", action="store_true", help="Without RUN.json: the study of false lesions."
    )


def run(options: argparse.Namespace) -> int:
    if options.seeds is None:
        options.seeds = STUDY_SEEDS if options.study else SEEDS
    if options.seeds < 1:
        raise RequestError(f"--seeds must be at least 1, not {options.seeds}.")
    if options.stop_below is not None and not options.stop_below > 0:
        raise RequestError(f"--stop-below must be greater than 0, not {options.stop_below:g}.")
    if options.study:
        from engine.cli.trust_study import run_study

        return run_study(options)
    if options.record is None:
        raise RequestError("RUN.json is missing: name the record of a run, or give --study.")
    path, folder = Path(options.record), Path(options.output)
    record = RunRecord.read(path)
    until = iterations_of(record, path)
    control = RunControl()
    with (
        threads(record.threads),
        cancel_on_signals(control),
        progress_bar(options.quiet) as bar,
    ):
        prepared = prepare_again(record, path, options.input, options.device)
        claim_folder(folder, options.overwrite)
        task = bar.add_task("seeds", total=options.seeds, note="")
        found = assess(
            prepared,
            until,
            options.seeds,
            control,
            options.stop_below,
            lambda done, share, word: bar.update(task, completed=done + share, note=word),
        )
    if found is None:
        print("dualscope: cancelled before the first run was done.", file=sys.stderr)
        return 130
    assert found.run.image is not None
    recorded = record.result_sha256
    same = image_sha256(found.run.image) == recorded if recorded else None
    if same is False:
        print(
            f"dualscope: note: the image is not bit for bit the one of {path}; "
            "see dualscope verify.",
            file=sys.stderr,
        )
    written = write_assessment(folder, found, same)
    if not options.quiet:
        _say(found)
        for each in written:
            print(f"  {each}")
    return 130 if control.cancelled else 0


def _say(found: Assessment) -> None:
    many = len(found.certificates) > 1
    for number, certificate in zip(found.run.problem.slices, found.certificates, strict=True):
        start = f"Slice {number}: " if many else ""
        print(start + words.verdict_sentence(certificate), words.parts_sentence(certificate))
    shares = ", ".join(f"{100 * share:.1f} %" for share in found.split.share)
    print(f"Guessed: {shares} of the image's energy.")
    print(f"Spread: {found.spread_sentence()}")
