"""One problem, several methods: the table, the figure and the files of a comparison."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.table import Table

from engine.export.figure import comparison_figure
from engine.export.report import write_report
from engine.files.atomic import write_bytes_atomic
from engine.files.record import plain
from engine.runs.run import Run
from engine.spec.errors import RequestError


def row(done: Run) -> dict[str, Any]:
    """The numbers of one solver."""
    last = done.record.history[-1] if done.record.history else {}
    metrics = next(iter(done.record.metrics.values()), {})
    return {
        "status": done.status,
        "message": done.record.message,
        "nfe": last.get("nfe"),
        "psnr": metrics.get("psnr"),
        "ssim": metrics.get("ssim"),
        "psnr_body": metrics.get("psnr_body"),
        "ssim_body": metrics.get("ssim_body"),
        "residual": last.get("residual_z"),
        "seconds": done.record.timings.get("total"),
    }


def table(labels: list[str], runs: list[Run]) -> Table:
    out = Table(title="Same problem, same seed")
    out.add_column("solver")
    for heading in ("NFE", "PSNR dB", "SSIM", "body dB", "body SSIM", "time s", "status"):
        out.add_column(heading, justify="right")
    for label, done in zip(labels, runs, strict=True):
        values = row(done)
        out.add_row(
            label,
            str(values["nfe"] or "-"),
            _number(values["psnr"], 2),
            _number(values["ssim"], 4),
            _number(values["psnr_body"], 2),
            _number(values["ssim_body"], 4),
            _number(values["seconds"], 1),
            values["status"],
        )
    return out


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def write(
    path: Path, labels: list[str], runs: list[Run], window: tuple[float, float] | None
) -> None:
    if path.suffix.lower() == ".json":
        rows = [
            {"solver": label, **row(done), "record": done.record.content()}
            for label, done in zip(labels, runs, strict=True)
        ]
        write_bytes_atomic(path, json.dumps(plain(rows), indent=1, allow_nan=False).encode())
        return
    if path.suffix.lower() == ".html" and runs:
        named = list(zip(labels, runs, strict=True))
        hidden = bool(runs[0].record.job.get("deidentify"))
        write_report(path, runs[0].problem, named, window, deidentify=hidden)
        return
    panes = [
        (label, row(done)["psnr"], done.image)
        for label, done in zip(labels, runs, strict=True)
        if done.image is not None
    ]
    if not panes:
        raise RequestError("No solver gave an image: there is no figure to write.")
    write_bytes_atomic(path, comparison_figure(runs[0].problem, panes, window))
