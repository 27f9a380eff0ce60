"""``dualscope trust --study -o FOLDER``: a false lesion, a removed one, and what finds them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.cli.progress import progress_bar
from engine.cli.reconstruct import cancel_on_signals
from engine.files.atomic import write_bytes_atomic
from engine.files.record import plain
from engine.runs.prepare import versions
from engine.runs.rerun import threads
from engine.runs.run import RunControl
from engine.spec.errors import RequestError
from engine.workflows.trust import study
from engine.workflows.trust.report import claim_folder
from engine.workflows.trust.study_figure import study_figure

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
