"""Side-by-side pictures of reconstructions, drawn with Pillow."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from engine.data.writers.outputs import physical_array
from engine.data.writers.window import default_window, linear_window, window_to_bytes
from engine.problem import Problem

CAPTION_PX, GAP_PX = 36, 4
# Differences are drawn on their own scale: this share of the image window's width.
DIFFERENCE_SHARE = 0.25


def comparison_figure(
    problem: Problem,
    panes: Sequence[tuple[str, float | None, Tensor]],
    window: tuple[float, float] | None,
) -> bytes:
    """PNG: the reference and each image at one window, differences to the reference below.

    Parameters
    ----------
    panes
        (caption, PSNR or None, normalised image) of each reconstruction; first slice shown.
    """
    columns = [(name, psnr, physical_array(problem, image)[0]) for name, psnr, image in panes]
    truth = None if problem.reference is None else physical_array(problem, problem.reference)[0]
    window = window or default_window(problem, columns[0][2] if truth is None else truth)
    spread = DIFFERENCE_SHARE * window[1]

    top = [
        (name if psnr is None else f"{name}\n{psnr:.2f} dB", values)
        for name, psnr, values in columns
    ]
    bottom: list[tuple[str, np.ndarray]] = []
    if truth is not None:
        top.insert(0, ("reference", truth))
        bottom = [("difference", np.zeros_like(truth))]
        bottom += [("", values - truth) for _, _, values in columns]
        unit = "HU" if problem.modality == "CT" else ""
        bottom[0] = (f"difference\n+-{spread / 2:.3g} {unit}", bottom[0][1])
    difference_window = linear_window(-spread / 2, spread / 2)
    rows = [(top, window)] + ([(bottom, difference_window)] if bottom else [])

    height, width = columns[0][2].shape
    cell = (width + GAP_PX, height + CAPTION_PX + GAP_PX)
    canvas = Image.new("L", (cell[0] * len(top), cell[1] * len(rows)), 0)
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(13)
    for r, (cells, shown) in enumerate(rows):
        for c, (caption, values) in enumerate(cells):
            x, y = c * cell[0], r * cell[1]
            draw.multiline_text((x + 2, y + 1), _fit(caption, width), fill=255, font=font)
            canvas.paste(Image.fromarray(window_to_bytes(values, shown)), (x, y + CAPTION_PX))
    stream = io.BytesIO()
    canvas.save(stream, "PNG")
    return stream.getvalue()


def _fit(caption: str, width: int) -> str:
    """Cut lines that would run into the next pane (about 7 px a letter)."""
    most = max(8, width // 7)
    lines = [line if len(line) <= most else line[: most - 1] + "…" for line in caption.split("\n")]
    return "\n".join(lines)
