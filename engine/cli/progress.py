"""Progress bars on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from engine.runs.run import Run


def progress_bar(quiet: bool = False) -> Progress:
    """A bar with the time left; its tasks have a ``note``. Silent unless on a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),  # also while the total is not known
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),  # may name a file
    )
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal)


def follow(run: Run, quiet: bool = False) -> None:
    """Run to the end, showing where it is and how it goes."""
    with progress_bar(quiet) as bar:
        task = bar.add_task(run.solver.label, total=None, note="")
        for it in run:
            note = f"sigma {it.sigma:.3g}  |Ax-y| {float(it.residual_x.mean()):.3g}"
            if "psnr" in it.metrics:
                note += f"  {it.metrics['psnr']:.2f} dB"
            bar.update(task, total=it.K, completed=it.k, note=note)
