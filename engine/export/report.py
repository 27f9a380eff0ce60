"""One comparison as one HTML file: nothing in it runs, and nothing is fetched from elsewhere."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from engine import __version__
from engine.export.figure import DIFFERENCE_SHARE
from engine.export.outputs import check_finite, default_window, physical_array
from engine.export.picture import marked, png_of, windowed_picture
from engine.export.report_svg import COLOURS, DASHES, Curve, chart, legend
from engine.export.report_tables import metrics_table, provenance_table, settings_table, whole_norm
from engine.files.atomic import write_bytes_atomic
from engine.files.record import plain, shared_record
from engine.physics.problem import Problem
from engine.runs.run import Run
from engine.solvers.catalogue import all_solvers
from engine.spec.marks import CORNERS, RESEARCH, Marks
from engine.spec.run_colours import NAIVE, NAIVE_STYLE, Dash, dash_for, method_of

# name in the history, title, logarithmic
CHARTS = (
    ("residual_z", "Data residual ‖Az − y‖", True),
    ("gap", "Consensus gap ‖x − z‖", True),
    ("dual", "Dual ‖u‖", False),
    ("psnr", "PSNR, dB", False),
)
PSD_NAMES = {"residual": "residual", "homogenized": "after injection", "target": "white target"}

CSS = """
:root{color-scheme:light}
body{font:15px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:1100px;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid #ccc}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
header p{margin:.3rem 0;color:#444}.notice{display:inline-block;border:1px solid #b00020;
color:#b00020;border-radius:3px;padding:0 .5em;font-weight:600}
.row{display:flex;flex-wrap:wrap;gap:12px}
figure{margin:0;flex:0 1 255px}figure img{width:100%;display:block;border:1px solid #ccc}
figcaption{font-size:.85rem;margin-top:.2rem;line-height:1.35}
.bar{width:min(420px,100%);margin:.3rem 0 .8rem;font-size:.8rem}
.bar img{width:100%;height:14px;display:block;border:1px solid #ccc;box-sizing:border-box}
.bar div{display:flex;justify-content:space-between}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(360px,1fr));gap:12px}
.charts svg{width:100%;height:auto}
.legend{list-style:none;padding:0;margin:.4rem 0;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem}
th,td{padding:.2rem .7rem;border-bottom:1px solid #e3e3e3;text-align:right;vertical-align:top;
font-variant-numeric:tabular-nums}
tbody th{text-align:left;font-weight:500;white-space:nowrap}thead th{border-bottom:2px solid #999}
.differs{background:#fff3c4}.differs th{font-weight:700}
.provenance{width:100%}.provenance td{text-align:left;overflow-wrap:anywhere}
footer{margin-top:2rem;font-size:.8rem;color:#555}
@media print{body{margin:0;max-width:none;font-size:11px}h2,h3,.bar,.legend{break-after:avoid}
figure,.charts svg,tr{break-inside:avoid}.scroll{overflow:visible}.row,.charts{display:block}
figure{display:inline-block;width:32%;vertical-align:top;margin-bottom:8px}
.charts svg{display:inline-block;width:49%}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""


def write_report(
    path: Path,
    problem: Problem,
    runs: Sequence[tuple[str, Run]],
    window: tuple[float, float] | None = None,
    title: str = "Comparison of reconstructions",
    *,
    deidentify: bool = False,
    corner: str = CORNERS[0],
) -> None:
    """Images, differences, metrics, curves, settings and provenance of runs on one problem.

    Files are named without their folders; with ``deidentify`` they are not named at all.
    """
    for _, run in runs:
        if run.image is not None:
            check_finite(physical_array(problem, run.image))
    write_bytes_atomic(path, page(problem, runs, window, title, deidentify, corner).encode())


def page(
    problem: Problem,
    runs: Sequence[tuple[str, Run]],
    window: tuple[float, float] | None,
    title: str,
    deidentify: bool,
    corner: str = CORNERS[0],
) -> str:
    bodies = [(label, shared_record(run.record.content(), deidentify)) for label, run in runs]
    operator = plain(problem.operator.describe())
    size = " x ".join(str(n) for n in problem.operator.image_shape[1:])
    modality = {"CT": "CT", "MR": "MRI"}[problem.modality]
    about = f"{modality}, {len(problem.slices)} slice(s) of {size} pixels; the same measurement "
    about += "and the same seed for every solver."
    sections: list[tuple[str, str]] = [
        ("Images", images_section(problem, runs, window, corner)),
        ("Metrics", metrics_table(runs, [body["message"] for _, body in bodies])),
        ("Convergence", charts(runs)),
        ("Spectra of the last iteration", _spectra(runs)),
        ("Settings", settings_table(runs)),
        ("Provenance", provenance_table(bodies, operator) if bodies else ""),
    ]
    body = "".join(f"<section><h2>{n}</h2>{text}</section>" for n, text in sections if text)
    return document(title, about, body)


def document(title: str, about: str, body: str) -> str:
    """A page in the reports' style around ``body``, which is HTML already."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        # the browser itself then refuses scripts and requests
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "img-src data:; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head><body>"
        f"<header><h1>{escape(title)}</h1><p>{escape(about)}</p>"
        '<p class="notice">Not for diagnostic use</p></header>'
        f"{body}<footer>Dualscope {escape(__version__)}</footer></body></html>"
    )


def styles_of(jobs: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Colour and dashes of every run, as the window draws it."""
    found: list[tuple[str, Dash]] = []
    for job in jobs:
        method = method_of(job)
        colour, own = NAIVE_STYLE
        if method != NAIVE:
            solver = all_solvers().get(method)
            colour, own = (solver.colour, solver.dash) if solver is not None else ("", ())
        colour = colour or COLOURS[-1]
        found.append((colour, dash_for(own, [dash for other, dash in found if other == colour])))
    return [(colour, " ".join(f"{part:g}" for part in dash)) for colour, dash in found]


def charts(runs: Sequence[tuple[str, Run]]) -> str:
    drawn, styles = [], styles_of(run.record.job for _, run in runs)
    for name, heading, log in CHARTS:
        curves = []
        for (label, run), look in zip(runs, styles, strict=True):
            points = [(entry.get("k"), whole_norm(entry.get(name))) for entry in run.record.history]
            kept = [(k, value) for k, value in points if k is not None and value is not None]
            if any(value for _, value in kept):  # a method without this quantity reports zeros
                x, y = zip(*kept, strict=True)
                curves.append(Curve(label, x, y, *look))
        drawn.append(chart(heading, "iteration", curves, log))
    if not any(drawn):
        return ""
    key = legend([(label, *look) for (label, _), look in zip(runs, styles, strict=True)])
    return f'{key}<div class="charts">{"".join(drawn)}</div>'


def _spectra(runs: Sequence[tuple[str, Run]]) -> str:
    """Power of what the denoiser was given: a white residual lies on the target."""
    drawn = []
    for label, run in runs:
        curves = []
        for number, name in enumerate(PSD_NAMES):
            if run.last is not None and name in run.last.psd:
                power = run.last.psd[name].mean(dim=(0, 1)).tolist()
                rings = list(range(len(power)))
                curves.append(Curve(PSD_NAMES[name], rings, power, COLOURS[number], DASHES[number]))
        drawn.append(chart(label, "frequency, cycles over the shorter side", curves, log=True))
    if not any(drawn):
        return ""
    key = legend([(n, COLOURS[i], DASHES[i]) for i, n in enumerate(PSD_NAMES.values())])
    return f'{key}<div class="charts">{"".join(drawn)}</div>'


SMALLEST_PX = 240  # smaller slices are enlarged by whole pixels
# blue - white - red: no difference is white, also on paper
_STOPS = np.array([[5, 48, 97], [67, 147, 195], [255, 255, 255], [214, 96, 77], [103, 0, 31]])


def images_section(
    problem: Problem,
    runs: Sequence[tuple[str, Run]],
    window: tuple[float, float] | None,
    corner: str = CORNERS[0],
) -> str:
    """Figures of the first slice of the problem; differences to the reference, if there is one."""
    panes = [
        (label, _said(run), physical_array(problem, run.image)[0])
        for label, run in runs
        if run.image is not None
    ]
    if not panes:
        return "<p>No solver gave an image.</p>"
    unit = " HU" if problem.modality == "CT" else ""
    truth = None if problem.reference is None else physical_array(problem, problem.reference)[0]
    window = window or default_window(problem, panes[0][2] if truth is None else truth)
    bar = problem.pixel_mm[1] if problem.pixel_mm else None
    figures = [_pane(label, said, values, window, bar, corner) for label, said, values in panes]
    if truth is None:
        against, baseline, others = panes[0][0], panes[0][2], panes[1:]
    else:
        figures.insert(0, _pane("reference", "", truth, window, bar, corner))
        against, baseline, others = "the reference", truth, panes
    count = len(problem.slices)
    about = f"Window: centre {window[0]:.6g}{unit}, width {window[1]:.6g}{unit}."
    if count > 1:
        about += f" Slice {problem.slices[0]} is shown; the numbers below are of all {count}."
    out = f'<p>{about}</p><div class="row">{"".join(figures)}</div>'
    if not others:
        return out
    half = DIFFERENCE_SHARE * window[1] / 2
    maps = [
        _difference(label, values - baseline, half, unit, corner) for label, _, values in others
    ]
    out += f"<h3>Difference to {escape(against)}</h3>{colour_bar(half, unit)}"
    return out + f'<div class="row">{"".join(maps)}</div>'


def colour_bar(half: float, unit: str) -> str:
    ramp = _colours(np.linspace(-half, half, 256)[None].repeat(12, 0), half)
    labels = "".join(f"<span>{v:+.3g}{unit}</span>" for v in (-half, -half / 2))
    labels += f"<span>0{unit}</span>"
    labels += "".join(f"<span>{v:+.3g}{unit}</span>" for v in (half / 2, half))
    picture = f'<img src="{_data_uri(_png(ramp))}" alt="colour scale">'
    return f'<div class="bar">{picture}<div>{labels}</div></div>'


def _pane(
    label: str,
    caption: str,
    values: np.ndarray,
    window: tuple[float, float],
    bar: float | None,
    corner: str,
) -> str:
    marks = Marks((RESEARCH, label), mm_per_pixel=bar, corner=corner)
    content = png_of(windowed_picture(values, window, marks, _zoom(values)), {})
    return _figure(content, label, caption)


def _difference(label: str, values: np.ndarray, half: float, unit: str, corner: str) -> str:
    zoom = _zoom(values)
    marks = Marks((RESEARCH, f"{label}, difference"), corner=corner)
    coloured = np.asarray(marked(_colours(values, half), marks, zoom))
    beyond = float((np.abs(values) > half).mean())
    caption = f"mean |d| {np.abs(values).mean():.3g}{unit}, {100 * beyond:.2g} % beyond the scale"
    return _figure(_png(coloured), label, caption)


def _figure(content: bytes, label: str, caption: str) -> str:
    words = "<br>".join([f"<b>{escape(label)}</b>", *map(escape, caption.splitlines())])
    source = _data_uri(content)
    return (
        f'<figure><img src="{source}" alt="{escape(label)}"><figcaption>{words}</figcaption>'
        "</figure>"
    )


def _said(run: Run) -> str:
    """PSNR and verdicts, one below the other."""
    lines = [
        f"PSNR {values['psnr']:.2f} dB ({profile})"
        for profile, values in run.record.metrics.items()
        if "psnr" in values
    ]
    return "\n".join([*lines[:1], *run.record.verdicts.values()])


def _zoom(values: np.ndarray) -> int:
    return max(1, -(-SMALLEST_PX // max(values.shape)))


def _colours(values: np.ndarray, half: float) -> np.ndarray:
    place = np.clip(values / half, -1, 1) * 2 + 2
    channels = [np.interp(place, range(5), _STOPS[:, c]) for c in range(3)]
    return np.round(np.stack(channels, axis=-1)).astype(np.uint8)


def _png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
