"""``dualscope trust RUN.json -o FOLDER``: where a result is measured, and where it is guessed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.cli.options import progress_bar
from engine.cli.reconstruct import cancel_on_signals
from engine.files.atomic import write_bytes_atomic
from engine.files.record import RunRecord, plain
from engine.physics.device import DEVICES
from engine.runs.prepare import versions
from engine.runs.rerun import iterations_of, prepare_again, threads
from engine.runs.run import image_sha256
from engine.spec.control import RunControl
from engine.spec.errors import RequestError
from engine.workflows.trust import study, words
from engine.workflows.trust.assess import Assessment, assess, claim_folder, write_assessment
from engine.workflows.trust.study import study_figure

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
    shares = ", ".join(f"{100 * share:.0f} %" for share in found.split.detail)
    print(f"Guessed: {shares} of the edges inside the body.")
    print(f"Spread: {found.spread_sentence()}")


NAME = "false-lesion"


def run_study(options: argparse.Namespace) -> int:
    if options.record is not None:
        raise RequestError("--study makes its own run: leave RUN.json.")
    folder = Path(options.output)
    numbers, figure = folder / f"{NAME}.json", folder / f"{NAME}.png"
    claim_folder(folder, options.overwrite, numbers.name)
    control, found = RunControl(), []
    with threads(1), cancel_on_signals(control), progress_bar(options.quiet) as bar:
        task = bar.add_task("study", total=len(study.SCANS), note="")
        for done, scan in enumerate(study.SCANS):

            def progress(share: float, word: str, done: int = done) -> None:
                bar.update(task, completed=done + share, note=word)

            studied = study.study_scan(scan, options.seeds, control, progress)
            if studied is None:
                break
            found.append(studied)
    if not found:
        print("dualscope: cancelled before the first scan was done.", file=sys.stderr)
        return 130
    rows = [row for studied in found for row in studied.rows]
    body: dict[str, Any] = {
        "versions": versions(),
        "phantom_seed": study.PHANTOM_SEED,
        "noise": study.NOISE,
        "settings": study.SETTINGS,
        "seeds": options.seeds,
        "complete": len(found) == len(study.SCANS),
        "rows": rows,
    }
    write_bytes_atomic(figure, study_figure(found))
    write_bytes_atomic(numbers, json.dumps(plain(body), indent=1, allow_nan=False).encode())
    if not options.quiet:
        _print(rows)
        for path in (figure, numbers):
            print(f"  {path}")
    return 130 if control.cancelled else 0


def _print(rows: list[dict[str, Any]]) -> None:
    headings = ("scan", "change", "HU", "unseen", "evidence", "chi2", "with it", "certificate")
    table = Table(*headings, "taken back", "off the seeds", title="What the tools find")
    for row in rows:
        away = row["seeds_away"]
        table.add_row(
            row["scan"],
            row["change"],
            f"{row['contrast_hu']:.0f}",
            f"{100 * row['null_share']:.0f} %",
            f"{row['evidence_sd']:.1f} SD",
            f"{row['chi2_before']:.2f}",
            f"{row['chi2_after']:.2f}",
            "finds it" if row["certificate_finds_it"] else "does not",
            f"{100 * row['taken_back']:.0f} %",
            "" if away is None else f"{away:.1f} SD",
        )
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(table)
