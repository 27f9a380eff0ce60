"""The figures of an experiment: curves as SVG, pictures as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from engine.export.figure import Pane, picture_grid
from engine.export.report_svg import Curve, chart_page, plot, style
from engine.files.atomic import write_bytes_atomic
from engine.workflows.experiments.definition import Drawing, Experiment, Method, Scan
from engine.workflows.experiments.store import Row
from engine.workflows.experiments.summary import summarise

# name in the history, title, logarithmic
HISTORY = (
    ("residual_z", "data residual |Az - y|", True),
    ("residual_x", "data residual |Ax - y|", True),
    ("gap", "consensus gap |x - z|", True),
    ("dual", "dual norm |u|", False),
)
LARGEST_ROW = 5  # panes, when one scan fills several rows


def write_figures(
    experiment: Experiment, cases: dict[str, list[Row]], folder: Path, pictures: Path
) -> list[Path]:
    """Every drawing of the experiment for which there is something to draw."""
    written = []
    for drawing in experiment.drawings:
        if drawing == "gallery":
            path, content = folder / f"{experiment.name}.png", gallery(experiment, cases, pictures)
        else:
            path = folder / f"{experiment.name}.svg"
            content = _curves(drawing, experiment, cases).encode()
        if content:
            write_bytes_atomic(path, content)
            written.append(path)
    return written


def gallery(experiment: Experiment, cases: dict[str, list[Row]], pictures: Path) -> bytes:
    """The first slice: a row for every scan, the reference before the methods."""
    kept = {
        (row["scan"], row["method"]): row
        for rows in cases.values()
        for row in rows
        if "picture" in row
    }
    grid: list[list[Pane]] = []
    for scan in experiment.scans:
        rows = [kept[scan.label, m.label] for m in experiment.methods if _is(kept, scan, m)]
        panes = [_pane(_caption(row), pictures / row["picture"]) for row in rows]
        if rows and "reference" in rows[0]:
            reference = _pane(f"{scan.label}\nreference", pictures / rows[0]["reference"])
            panes = [reference, *panes]
        whole = len(panes) if len(experiment.scans) > 1 else LARGEST_ROW + 1
        grid += [panes[i : i + whole] for i in range(0, len(panes), max(1, whole))]
    return picture_grid(grid) if grid else b""


def _is(kept: dict[tuple[str, str], Row], scan: Scan, method: Method) -> bool:
    return (scan.label, method.label) in kept


def _caption(row: Row) -> str:
    psnr = row.get("psnr")
    return row["method"] if psnr is None else f"{row['method']}\n{psnr:.2f} dB"


def _pane(caption: str, path: Path) -> Pane:
    with Image.open(path) as image:
        return caption, np.asarray(image.convert("L"))


def _curves(drawing: Drawing, experiment: Experiment, cases: dict[str, list[Row]]) -> str:
    rows = [row for part in cases.values() for row in part if row["status"] == "done"]
    draw = {"sweep": _sweep, "history": _history, "spectra": _spectra, "rounds": _rounds}[drawing]
    charts, labels = draw(experiment, rows)
    charts = [text for text in charts if text]
    legend = [(label, *style(number)) for number, label in enumerate(labels)]
    return chart_page(experiment.name, charts, legend) if charts else ""


Drawn = tuple[list[str], list[str]]  # charts, and the labels of their curves in order of style


def _sweep(experiment: Experiment, rows: list[Row]) -> Drawn:
    """PSNR and SSIM along the axis of the scans or of the methods; the paper's beside ours."""
    table = {(row["scan"], row["method"]): row for row in summarise(experiment, {"": rows})}
    points: dict[tuple[str, str, str], dict[str, list[tuple[float, float]]]] = {}
    labels: dict[str, None] = {}
    for scan in experiment.scans:
        for method in experiment.methods:
            axis = method.axis or scan.axis
            row = table.get((scan.label, method.label))
            if axis is None or row is None:
                continue
            where = scan.label if method.axis else scan.series
            label = method.curve or method.label
            for name in ("psnr", "ssim"):
                for said, curve in (("", label), ("paper_", f"{label} (paper)")):
                    value = row[said + name]
                    at = row["nfe"] if method.axis and not said else axis.at
                    if value is not None:
                        labels[curve] = None
                        place = points.setdefault((where, axis.label, name), {})
                        place.setdefault(curve, []).append((at, value))
    order = list(labels)
    titles = {"psnr": "PSNR, dB", "ssim": "SSIM"}
    charts = []
    for (where, axis_label, name), curves in points.items():
        drawn = [_curve(label, pairs, order) for label, pairs in curves.items()]
        charts.append(plot(f"{where}: {titles[name]}", axis_label, drawn))
    return charts, order


def _history(experiment: Experiment, rows: list[Row]) -> Drawn:
    """Norms by iteration, of the first slice of every scan."""
    order = [method.label for method in experiment.methods]
    charts = []
    for scan in experiment.scans:
        for name, title, log in HISTORY:
            curves = []
            for label, row in _first_of(scan, order, rows):
                pairs = [(entry["k"], entry[name]) for entry in row["history"]]
                if any(value for _, value in pairs):  # a method without it reports zeros
                    curves.append(_curve(label, pairs, order))
            charts.append(plot(f"{scan.label}: {title}", "iteration", curves, log))
    return charts, order


def _spectra(experiment: Experiment, rows: list[Row]) -> Drawn:
    """Power of what the denoiser is given, against white noise of its level."""
    methods = [method.label for method in experiment.methods]
    order = [*methods, "white target"]
    charts = []
    for scan in experiment.scans:
        found = _first_of(scan, methods, rows)
        curves = [_curve(m, list(enumerate(r["psd"]["homogenized"])), order) for m, r in found]
        if found:
            target = list(enumerate(found[0][1]["psd"]["target"]))
            curves.append(_curve("white target", target, order))
        title = f"{scan.label}: power of the denoiser's input"
        charts.append(plot(title, "frequency, cycles over the shorter side", curves, log=True))
    return charts, order


def _rounds(experiment: Experiment, rows: list[Row]) -> Drawn:
    """Seconds of every timed iteration: how much the machine's own noise matters."""
    order = [method.label for method in experiment.methods]
    charts = []
    for scan in experiment.scans:
        curves = [
            _curve(label, [(n + 1, r["total"]) for n, r in enumerate(row["rounds"])], order)
            for label, row in _first_of(scan, order, rows)
        ]
        charts.append(plot(f"{scan.label}: seconds per iteration", "round", curves, log=True))
    return charts, order


def _first_of(scan: Scan, methods: Sequence[str], rows: list[Row]) -> list[tuple[str, Row]]:
    """The first slice of each method that has one."""
    found = []
    for label in methods:
        mine = (row for row in rows if (row["scan"], row["method"]) == (scan.label, label))
        first = next(mine, None)
        if first is not None:
            found.append((label, first))
    return found


def _curve(label: str, pairs: Sequence[tuple[float, float]], order: list[str]) -> Curve:
    x, y = zip(*pairs, strict=True)
    return Curve(label, x, y, *style(order.index(label)))
