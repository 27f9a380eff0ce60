"""The tables of a report: metrics, settings side by side, and where everything came from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from engine.files.record_words import calls_of
from engine.metrics.profiles import PROFILES, describe
from engine.runs.run import Run

HEADINGS = {
    "psnr": "PSNR, dB",
    "ssim": "SSIM",
    "nrmse": "NRMSE",
    "hu_mae": "MAE, HU",
    "psnr_body": "PSNR in the body, dB",
    "ssim_body": "SSIM in the body",
    "hu_mae_body": "MAE in the body, HU",
    "psnr_fov": "PSNR in the field of view, dB",
    "ssim_fov": "SSIM in the field of view",
    "hu_mae_fov": "MAE in the field of view, HU",
    "lpips": "LPIPS",
    "lpips_dcpnpdp": "LPIPS (paper)",
}
LARGER_IS_BETTER = ("psnr", "ssim", "psnr_body", "ssim_body", "psnr_fov", "ssim_fov")
MAX_SHOWN = 6  # of a long list of numbers


def metrics_table(runs: Sequence[tuple[str, Run]], messages: Sequence[str]) -> str:
    """One row per run; the best of a column is bold. ``messages`` say why a run failed."""
    results = [next(iter(run.record.metrics.values()), {}) for _, run in runs]
    names = [name for name in HEADINGS if any(name in values for values in results)]
    best = {name: _best(name, [values.get(name) for values in results]) for name in names}
    head = ["", *(HEADINGS[name] for name in names), "‖Az − y‖", "NFE", "time, s", "status"]
    rows = []
    for (label, run), values, message in zip(runs, results, messages, strict=True):
        last = run.record.history[-1] if run.record.history else {}
        cells = [_metric(values.get(name), best[name]) for name in names]
        cells += [_plain(whole_norm(last.get("residual_z"))), _calls(run)]
        status = f"{run.status}: {message}" if message else run.status
        cells += [_plain(run.record.timings.get("total")), _plain(status)]
        rows.append(f"<tr><th>{escape(label)}</th>{''.join(cells)}</tr>")
    profile = next((p for _, run in runs for p in run.record.metrics), None)
    return table(head, rows) + (_profile_note(profile) if profile in PROFILES else "")


def _calls(run: Run) -> str:
    """'12', or '5 of 12': what was made, beside what was asked for."""
    done, asked = calls_of(run.record.job, run.record.history)
    last = run.record.history[-1].get("nfe") if run.record.history else None
    short = done is not None and asked is not None and done != asked
    return _plain(f"{done} of {asked}" if short else last)


def settings_table(runs: Sequence[tuple[str, Run]]) -> str:
    """Rows in which runs differ come first and are marked."""
    columns = [_settings_of(run) for _, run in runs]
    names = list(dict.fromkeys(name for column in columns for name in column))
    differing = [n for n in names if len({_text(c[n]) for c in columns if n in c}) > 1]
    rows = []
    for name in [*differing, *(n for n in names if n not in differing)]:
        cells = "".join(
            f"<td>{escape(_text(column[name])) if name in column else '–'}</td>"
            for column in columns
        )
        mark = ' class="differs"' if name in differing else ""
        rows.append(f"<tr{mark}><th>{escape(name)}</th>{cells}</tr>")
    note = "<p>Marked rows differ between the runs; – is a setting the solver does not have.</p>"
    return table(["", *(label for label, _ in runs)], rows) + (note if differing else "")


def provenance_table(bodies: Sequence[tuple[str, dict[str, Any]]], operator: dict[str, Any]) -> str:
    """``bodies`` are the runs' records as they may be shown; the first one tells of the input."""
    first = bodies[0][1]
    given = first["input"]
    entries: list[tuple[str, Any]] = [
        ("input", given.get("name")),
        ("input sha256", given.get("sha256")),
        ("slices", given.get("slices")),
        ("seed", first["job"].get("seed")),
        ("device", first["device"]),
    ]
    entries += [(f"version: {name}", text) for name, text in first["versions"].items()]
    entries += _priors(bodies)
    for fact in given.get("facts", []):
        entries.append((f"input: {fact['name']}", f"{fact['value']} ({fact['origin']})"))
    known = {"name", "sha256", "slices", "intensity", "facts", "checks", "warnings"}
    entries += [(f"input: {n}", v) for n, v in given.items() if n not in known]
    checks = given.get("checks", [])
    entries += [(f"check: {c['name']}", f"{c['verdict']}: {c['sentence']}") for c in checks]
    said = {c["sentence"] for c in checks}
    entries += [("warning", text) for text in given.get("warnings", []) if text not in said]
    entries += list(_flat("operator", operator))
    rows = [
        f"<tr><th>{escape(name)}</th><td>{escape(_text(value))}</td></tr>"
        for name, value in entries
        if value is not None
    ]
    return table([], rows, "provenance")


def _priors(bodies: Sequence[tuple[str, dict[str, Any]]]) -> list[tuple[str, str]]:
    """Each prior once, with the runs that used it."""
    users: dict[str, list[str]] = {}
    for label, body in bodies:
        prior = body["prior"]
        if prior:
            said = f"{prior.get('name')}; sha256 {prior.get('sha256')}; {prior.get('licence')}"
            users.setdefault(said, []).append(label)
    return [("prior", f"{said} ({', '.join(labels)})") for said, labels in users.items()]


def table(head: Sequence[str], rows: Sequence[str], kind: str = "") -> str:
    top = "".join(f"<th>{escape(text)}</th>" for text in head)
    top = f"<thead><tr>{top}</tr></thead>" if head else ""
    return (
        f'<div class="scroll"><table class="{kind}">{top}<tbody>{"".join(rows)}</tbody>'
        "</table></div>"
    )


def whole_norm(value: Any) -> float | None:
    """A norm of the history; of several slices, the norm of them together."""
    if isinstance(value, list):
        value = math.sqrt(sum(part**2 for part in value if isinstance(part, (int, float))))
    return float(value) if isinstance(value, (int, float)) else None


def _settings_of(run: Run) -> dict[str, Any]:
    prior = run.prior.info.name if run.prior else "none"
    return {"solver": run.solver.label, "prior": prior, **run.settings.to_dict()}


def _best(name: str, values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    if len(numbers) < 2:
        return None
    return max(numbers) if name in LARGER_IS_BETTER else min(numbers)


def _metric(value: float | None, best: float | None) -> str:
    if value is not None and value == best:
        return f"<td><b>{value:.4g}</b></td>"
    return _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return "<td>–</td>"
    return f"<td>{value:.4g}</td>" if isinstance(value, float) else f"<td>{escape(str(value))}</td>"


def _profile_note(profile: str) -> str:
    said = describe(profile)
    return (
        "<p>"
        + escape(
            f"Metrics by the profile {profile}: {said['domain']}; range {said['data_range']}; "
            f"clip {said['clip']}; {said['reduction']}."
        )
        + "</p>"
    )


def _flat(prefix: str, value: Any) -> Iterable[tuple[str, Any]]:
    """{'geometry': {'views': 20}} as ('geometry: views', 20)."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _flat(f"{prefix}: {name}" if prefix else str(name), part)
    else:
        yield prefix, value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        if len(value) > MAX_SHOWN:
            shown = [_text(part) for part in (value[0], value[1], value[-1])]
            return f"{shown[0]}, {shown[1]}, … {shown[2]} ({len(value)} values)"
        return ", ".join(_text(part) for part in value)
    return "automatic" if value is None else str(value)
