"""A progress bar for a run on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine.run import Run


def follow(run: Run, quiet: bool = False) -> None:
    """Run to the end, showing where it is and how it goes."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(run.solver.label, total=None, note="")
        for it in run:
            note = f"sigma {it.sigma:.3g}  |Ax-y| {float(it.residual_x.mean()):.3g}"
            if "psnr" in it.metrics:
                note += f"  {it.metrics['psnr']:.2f} dB"
            bar.update(task, total=it.K, completed=it.k, note=note)
