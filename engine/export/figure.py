"""Side-by-side pictures of reconstructions, drawn with Pillow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from engine.export.outputs import default_window, linear_window, physical_array, window_to_bytes
from engine.export.picture import png_of
from engine.physics.problem import Problem
from engine.spec.marks import RESEARCH

CAPTION_PX, GAP_PX, FOOT_PX = 36, 4, 20
# Differences are drawn on their own scale: this share of the image window's width.
DIFFERENCE_SHARE = 0.25

Pane = tuple[str, np.ndarray]  # caption of up to two lines, 8-bit picture [H, W]


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

    return picture_grid(
        [
            [(text, window_to_bytes(values, shown)) for text, values in cells]
            for cells, shown in rows
        ]
    )


def picture_grid(rows: Sequence[Sequence[Pane]]) -> bytes:
    """PNG of captioned pictures; each row is as high as its highest picture."""
    cells = [[(c, p, p.shape[1] + GAP_PX) for c, p in row] for row in rows]
    heights = [max(p.shape[0] for _, p, _ in row) + CAPTION_PX + GAP_PX for row in cells]
    breadth = max(sum(w for _, _, w in row) for row in cells)
    canvas = Image.new("L", (breadth, sum(heights) + FOOT_PX), 0)
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(13)
    y = 0
    for row, height in zip(cells, heights, strict=True):
        x = 0
        for caption, picture, width in row:
            text = _fit(caption, picture.shape[1])
            draw.multiline_text((x + 2, y + 1), text, fill=255, font=font)
            canvas.paste(Image.fromarray(picture), (x, y + CAPTION_PX))
            x += width
        y += height
    draw.text((2, y), RESEARCH, fill=255, font=font)
    return png_of(canvas, {})


def _fit(caption: str, width: int) -> str:
    """Cut lines that would run into the next pane (about 7 px a letter)."""
    most = max(8, width // 7)
    lines = [line if len(line) <= most else line[: most - 1] + "…" for line in caption.split("\n")]
    return "\n".join(lines)
