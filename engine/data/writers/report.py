"""One comparison as one HTML file: nothing in it runs, and nothing is fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from engine import __version__
from engine.data.atomic import write_bytes_atomic
from engine.data.record import plain
from engine.data.shared_record import shared_record
from engine.data.writers.outputs import check_finite, physical_array
from engine.data.writers.report_images import images_section
from engine.data.writers.report_svg import COLOURS, DASHES, Curve, chart, legend, style
from engine.data.writers.report_tables import (
    metrics_table,
    provenance_table,
    settings_table,
    whole_norm,
)
from engine.problem import Problem
from engine.run import Run

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
) -> None:
    """Images, differences, metrics, curves, settings and provenance of runs on one problem.

    Files are named without their folders; with ``deidentify`` they are not named at all.
    """
    for _, run in runs:
        if run.image is not None:
            check_finite(physical_array(problem, run.image))
    write_bytes_atomic(path, page(problem, runs, window, title, deidentify).encode())


def page(
    problem: Problem,
    runs: Sequence[tuple[str, Run]],
    window: tuple[float, float] | None,
    title: str,
    deidentify: bool,
) -> str:
    bodies = [(label, shared_record(run.record.content(), deidentify)) for label, run in runs]
    operator = plain(problem.operator.describe())
    size = " x ".join(str(n) for n in problem.operator.image_shape[1:])
    modality = {"CT": "CT", "MR": "MRI"}[problem.modality]
    about = f"{modality}, {len(problem.slices)} slice(s) of {size} pixels; the same measurement "
    about += "and the same seed for every solver."
    sections: list[tuple[str, str]] = [
        ("Images", images_section(problem, runs, window)),
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


def charts(runs: Sequence[tuple[str, Run]]) -> str:
    drawn = []
    for name, heading, log in CHARTS:
        curves = []
        for number, (label, run) in enumerate(runs):
            points = [(entry.get("k"), whole_norm(entry.get(name))) for entry in run.record.history]
            kept = [(k, value) for k, value in points if k is not None and value is not None]
            if any(value for _, value in kept):  # a method without this quantity reports zeros
                x, y = zip(*kept, strict=True)
                curves.append(Curve(label, x, y, *style(number)))
        drawn.append(chart(heading, "iteration", curves, log))
    if not any(drawn):
        return ""
    key = legend([(label, *style(number)) for number, (label, _) in enumerate(runs)])
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
