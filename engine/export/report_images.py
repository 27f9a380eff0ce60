"""The pictures of a report: panes at one window, and differences in colour with their scale."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape

import numpy as np
from PIL import Image

from engine.export.figure import DIFFERENCE_SHARE
from engine.export.outputs import physical_array
from engine.export.picture import windowed_png
from engine.export.window import default_window
from engine.physics.problem import Problem
from engine.runs.run import Run

SMALLEST_PX = 240  # smaller slices are enlarged by whole pixels
# blue - white - red: no difference is white, also on paper
_STOPS = np.array([[5, 48, 97], [67, 147, 195], [255, 255, 255], [214, 96, 77], [103, 0, 31]])


def images_section(
    problem: Problem, runs: Sequence[tuple[str, Run]], window: tuple[float, float] | None
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
    figures = [_pane(label, caption, values, window, bar) for label, caption, values in panes]
    if truth is None:
        against, baseline, others = panes[0][0], panes[0][2], panes[1:]
    else:
        figures.insert(0, _pane("reference", "", truth, window, bar))
        against, baseline, others = "the reference", truth, panes
    count = len(problem.slices)
    about = f"Window: centre {window[0]:.6g}{unit}, width {window[1]:.6g}{unit}."
    if count > 1:
        about += f" Slice {problem.slices[0]} is shown; the numbers below are of all {count}."
    out = f'<p>{about}</p><div class="row">{"".join(figures)}</div>'
    if not others:
        return out
    half = DIFFERENCE_SHARE * window[1] / 2
    maps = [_difference(label, values - baseline, half, unit) for label, _, values in others]
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
    label: str, caption: str, values: np.ndarray, window: tuple[float, float], bar: float | None
) -> str:
    content = windowed_png(values, window, bar_mm_per_pixel=bar, zoom=_zoom(values))
    return _figure(content, label, caption)


def _difference(label: str, values: np.ndarray, half: float, unit: str) -> str:
    zoom = _zoom(values)
    coloured = _colours(values, half).repeat(zoom, 0).repeat(zoom, 1)
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
