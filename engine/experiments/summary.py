"""The table of an experiment: means over slices beside the figures of the paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any

from engine.experiments.definition import Experiment
from engine.experiments.paper import RUNTIME
from engine.experiments.store import Row

BASELINE = "DiffPIR"  # what the cost of an iteration is compared with


@dataclass(frozen=True)
class Column:
    key: str
    heading: str
    form: str = ""  # of a number
    always: bool = False  # shown even when empty


QUALITY = (
    Column("scan", "scan"),
    Column("method", "method"),
    Column("nfe", "NFE"),
    Column("slices", "slices"),
    Column("psnr", "PSNR dB", ".2f"),
    Column("psnr_sd", "SD", ".2f"),
    Column("ssim", "SSIM", ".3f"),
    Column("paper_psnr", "paper PSNR", ".2f", always=True),
    Column("paper_ssim", "paper SSIM", ".3f", always=True),
    Column("chi2", "chi-square"),
    Column("noise_found", "SD found / true"),
    Column("residual", "|Az - y|", ".4g"),
    Column("dual", "|u|", ".3g"),
    Column("off_white_db", "off white dB", ".1f"),
    Column("seconds", "time s", ".1f"),
    Column("failed", "failed"),
)
COST = (
    Column("scan", "scan"),
    Column("method", "method"),
    Column("denoiser_ms", "denoise ms", ".1f"),
    Column("data_ms", "data ms", ".1f"),
    Column("sh_ms", "SH ms", ".2f"),
    Column("other_ms", "other ms", ".1f"),
    Column("total_ms", "total ms", ".1f"),
    Column("sh_percent", "SH %", ".2f"),
    Column("relative", f"/ {BASELINE}", ".3f"),
    Column("memory_gb", "memory GB", ".3f"),
    Column("paper_ms", "paper ms", ".1f", always=True),
    Column("paper_sh_percent", "paper SH %", ".2f", always=True),
    Column("paper_relative", f"paper / {BASELINE}", ".3f", always=True),
    Column("paper_memory_gb", "paper GB", ".0f", always=True),
    Column("failed", "failed"),
)


def columns(experiment: Experiment, rows: list[Row]) -> list[Column]:
    """Those of the experiment that say something."""
    shown = COST if experiment.measure == "side by side" else QUALITY
    return [c for c in shown if c.always or any(row.get(c.key) is not None for row in rows)]


def cell(column: Column, row: Row) -> str:
    value = row.get(column.key)
    if value is None:
        return "-"
    return f"{value:{column.form}}"


def summarise(experiment: Experiment, cases: dict[str, list[Row]]) -> list[Row]:
    """One row per scan and method, in the order of the definition."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in (row for rows in cases.values() for row in rows):
        found.setdefault((row["scan"], row["method"]), []).append(row)
    names = [(s.label, m.label) for s in experiment.scans for m in experiment.methods]
    ordered = [name for name in dict.fromkeys(names) if name in found]
    if experiment.measure == "side by side":
        return [_cost(name, found[name], found.get((name[0], BASELINE), [])) for name in ordered]
    return [_quality(experiment, name, found[name]) for name in ordered]


def _quality(experiment: Experiment, name: tuple[str, str], rows: list[Row]) -> Row:
    done = [row for row in rows if row["status"] == "done"]
    psnr = _values(done, "psnr")
    paper = experiment.paper.get(name, {})
    return {
        **_head(name, rows, done),
        "nfe": next(iter(_values(done, "nfe")), None) or None,  # methods without a denoiser: 0
        "slices": len(done),
        "psnr": _mean(psnr),
        "psnr_sd": stdev(psnr) if len(psnr) > 1 else None,
        "ssim": _mean(_values(done, "ssim")),
        "chi2": _range(_values(done, "chi2")),
        "noise_found": _range([one for row in _values(done, "noise_found") for one in row]),
        "residual": _mean(_values(done, "residual")),
        "dual": _mean(_values(done, "dual")) or None,  # methods without a dual: 0
        "off_white_db": _mean(_values(done, "off_white_db")),
        "seconds": _mean(_values(done, "seconds")),
        "paper_psnr": paper.get("psnr"),
        "paper_ssim": paper.get("ssim"),
    }


def _cost(name: tuple[str, str], rows: list[Row], baseline: list[Row]) -> Row:
    done = [row for row in rows if row["status"] == "done"]
    steps = {
        step: _mean([row["seconds_by_step"][step] for row in done])
        for step in ("denoiser", "data", "sh", "other")
    }
    total = _mean(_values(done, "seconds"))
    out = {f"{step}_ms": None if s is None else 1e3 * s for step, s in steps.items()}
    return {
        **_head(name, rows, done),
        **out,
        "total_ms": None if total is None else 1e3 * total,
        "sh_percent": 100 * steps["sh"] / total if steps["sh"] and total else None,
        "relative": relative(done, [row for row in baseline if row["status"] == "done"]),
        "memory_gb": _mean(_values(done, "memory_gb")),
        **_paper_cost(name[1]),
    }


def relative(rows: list[Row], baseline: list[Row]) -> float | None:
    """Median over the rounds of the ratio to the baseline's iteration of the same round."""
    ratios = [
        mine["total"] / other["total"]
        for row, base in zip(rows, baseline, strict=False)
        for mine, other in zip(row["rounds"], base["rounds"], strict=True)
    ]
    return median(ratios) if ratios else None


def _paper_cost(method: str) -> Row:
    printed = RUNTIME.get(method, {})
    parts = [printed[step] for step in ("denoiser", "data", "sh") if step in printed]
    total = printed.get("total") or (sum(parts) if parts else None)
    return {
        "paper_ms": None if total is None else 1e3 * total,
        "paper_sh_percent": 100 * printed["sh"] / total if total and "sh" in printed else None,
        "paper_relative": None if total is None else total / RUNTIME[BASELINE]["total"],
        "paper_memory_gb": printed.get("memory_gb"),
    }


def _head(name: tuple[str, str], rows: list[Row], done: list[Row]) -> Row:
    messages = [row.get("message") or "failed" for row in rows if row["status"] != "done"]
    failed = f"{len(messages)} of {len(rows)}: {messages[0]}" if messages else None
    return {"scan": name[0], "method": name[1], "failed": failed}


def _values(rows: Iterable[Row], key: str) -> list[Any]:
    return [row[key] for row in rows if row.get(key) is not None]


def _range(values: list[float]) -> str | None:
    return f"{min(values):.2f} to {max(values):.2f}" if values else None


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None
