"""A map in colour over a grey image, with its scale, and figures made of such pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from engine.export.outputs import window_to_bytes

CAPTION_PX, BAR_PX, LABEL_PX, GAP_PX = 36, 10, 46, 6
LINE_PX = 17
DIMMED = 0.6  # of the grey image under a map
FULL_SHARE = 0.995  # of the pixels lie within the colour scale
# blue below zero, orange above: told apart by every reader, and as bright on either side
STOPS = (-1.0, -0.5, 0.0, 0.5, 1.0)
COLOURS = ((150, 215, 255), (0, 114, 178), (0, 0, 0), (200, 100, 0), (255, 220, 130))


@dataclass(frozen=True)
class Picture:
    """``values`` in colour over ``grey``, or ``grey`` alone. ``limit`` ends the colour scale."""

    caption: str
    grey: np.ndarray
    window: tuple[float, float]
    values: np.ndarray | None = None
    unit: str = ""
    limit: float | None = None

    def scale(self) -> tuple[float, bool]:
        """Where the colours end, and whether they go below zero."""
        assert self.values is not None
        limit = self.limit or float(np.quantile(np.abs(self.values), FULL_SHARE))
        return max(limit, 1e-12), bool((self.values < 0).any())


def colours(share: np.ndarray) -> np.ndarray:
    """-1..1 to RGB ``[..., 3]``."""
    return np.stack([np.interp(share, STOPS, [c[i] for c in COLOURS]) for i in range(3)], axis=-1)


def draw(picture: Picture, zoom: int = 1) -> Image.Image:
    """The picture, its caption above and its colour scale beside it."""
    grey = window_to_bytes(picture.grey, picture.window).astype(np.float64)
    rgb = np.repeat(grey[..., None], 3, axis=-1)
    if picture.values is not None:
        limit, _ = picture.scale()
        share = np.clip(picture.values / limit, -1, 1)
        opaque = np.abs(share)[..., None] ** 0.5
        rgb = (1 - opaque) * DIMMED * rgb + opaque * colours(share)
    body = rgb.round().astype(np.uint8).repeat(zoom, 0).repeat(zoom, 1)
    height, width = body.shape[:2]
    canvas = Image.new("RGB", (width + BAR_PX + LABEL_PX, height + CAPTION_PX), (0, 0, 0))
    canvas.paste(Image.fromarray(body), (0, CAPTION_PX))
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(13)
    pen.multiline_text((2, 1), picture.caption, fill=(255, 255, 255), font=font)
    if picture.values is not None:
        _bar(canvas, pen, picture, width, height)
    return canvas


def _bar(
    canvas: Image.Image, pen: ImageDraw.ImageDraw, picture: Picture, left: int, height: int
) -> None:
    limit, signed = picture.scale()
    column = np.linspace(1, -1 if signed else 0, height)[:, None].repeat(BAR_PX - 4, 1)
    canvas.paste(Image.fromarray(colours(column).round().astype(np.uint8)), (left + 4, CAPTION_PX))
    font = ImageFont.load_default(11)
    labels = [(0, f"{limit:.3g}"), (height - 13, f"{-limit:.3g}" if signed else "0")]
    labels.append((14, picture.unit))
    if signed:
        labels.append((height // 2 - 7, "0"))
    for y, text in labels:
        pen.text((left + BAR_PX + 3, CAPTION_PX + y), text, fill=(255, 255, 255), font=font)


def png(canvas: Image.Image) -> bytes:
    stream = io.BytesIO()
    canvas.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def sheet(
    rows: Sequence[Sequence[Picture]],
    lines: Sequence[str] = (),
    strips: Sequence[Image.Image] = (),
    zoom: int = 1,
) -> bytes:
    """PNG of rows of pictures, then strips, then lines of text broken to the width."""
    drawn = [[draw(picture, zoom) for picture in row] for row in rows]
    width = max(sum(p.width + GAP_PX for p in row) for row in drawn)
    text = [part for line in lines for part in _broken(line, width)]
    heights = [max(p.height for p in row) + GAP_PX for row in drawn]
    total = sum(heights) + sum(s.height + GAP_PX for s in strips) + LINE_PX * len(text) + GAP_PX
    canvas = Image.new("RGB", (width, total), (0, 0, 0))
    y = 0
    for row, height in zip(drawn, heights, strict=True):
        x = 0
        for picture in row:
            canvas.paste(picture, (x, y))
            x += picture.width + GAP_PX
        y += height
    for strip in strips:
        canvas.paste(strip, (0, y))
        y += strip.height + GAP_PX
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(13)
    for n, line in enumerate(text):
        pen.text((4, y + LINE_PX * n), line, fill=(220, 220, 220), font=font)
    return png(canvas)


def bars(
    caption: str,
    values: Sequence[float | None],
    marked: Sequence[int],
    level: float | None,
    width: int,
    height: int = 90,
) -> Image.Image:
    """A bar for every part of a measurement; ``marked`` ones in orange, ``level`` as a line."""
    canvas = Image.new("RGB", (width, height + LINE_PX), (0, 0, 0))
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(13)
    pen.text((4, 0), caption, fill=(255, 255, 255), font=font)
    known = [value for value in values if value is not None]
    top = max([*known, 1.2 * (level or 0.0), 1e-12])
    step = width / max(1, len(values))
    for number, value in enumerate(values):
        if value is None:
            continue
        colour = COLOURS[3] if number in marked else COLOURS[1]
        edge = LINE_PX + height - max(1, round(height * value / top))
        left, right = (
            round(number * step),
            max(round(number * step), round((number + 1) * step) - 2),
        )
        pen.rectangle((left, edge, right, LINE_PX + height), fill=colour)
    if level is not None:
        line = LINE_PX + height - round(height * level / top)
        pen.line((0, line, width, line), fill=(255, 255, 255))
    return canvas


def _broken(line: str, width: int) -> list[str]:
    """Words in lines that fit (about 7 px a letter)."""
    most, lines = max(20, width // 7), [""]
    for word in line.split():
        if len(lines[-1]) + len(word) + 1 > most and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
