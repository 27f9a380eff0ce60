"""Pictures of a result: 8 bit through the window, or all its values (16 bit, float32).

The files that keep values say in their description (JSON) what the values mean, and our reader
takes it from there.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from engine import __version__
from engine.data.readers.volumes.picture import DESCRIPTION, SOFTWARE
from engine.export.outputs import Result, check_finite, window_to_bytes
from engine.files.atomic import write_atomic, write_bytes_atomic

HU_AT_ZERO = -32768.0  # 16-bit CT: HU = number - 32768, one HU a step
NOTICE = "Not for diagnostic use"
X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT, SOFTWARE_TAG, CENTIMETRE = 282, 283, 296, 305, 3
BAR_SHARE = 0.25  # of the picture's width, at most


def write_png(path: Path, result: Result) -> None:
    """All slices side by side, through the window."""
    values = result.values()
    check_finite(values)
    row = np.concatenate(list(values), axis=1)
    write_bytes_atomic(path, windowed_png(row, result.shown_window()))


def windowed_png(
    values: np.ndarray,
    window: tuple[float, float],
    *,
    overlay: Sequence[str] = (),
    bar_mm_per_pixel: float | None = None,
    zoom: int = 1,
) -> bytes:
    """An 8-bit PNG of ``[H, W]``.

    Parameters
    ----------
    overlay
        Lines of text for the upper left corner.
    bar_mm_per_pixel
        Size of a column: draws a scale bar of a round length in the lower left corner.
    zoom
        Every pixel becomes this many squared, so that text and bar are fine.
    """
    grey = window_to_bytes(values, window)
    image = Image.fromarray(grey.repeat(zoom, 0).repeat(zoom, 1))
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(13)
    style: dict[str, Any] = {"fill": 255, "font": font, "stroke_width": 1, "stroke_fill": 0}
    if overlay:
        draw.multiline_text((5, 3), "\n".join(overlay), **style)
    if bar_mm_per_pixel is not None:
        length = round_length(BAR_SHARE * image.width * bar_mm_per_pixel / zoom)
        pixels, bottom = length * zoom / bar_mm_per_pixel, image.height - 8
        draw.rectangle((6, bottom - 3, 8 + pixels, bottom + 1), fill=0)
        draw.rectangle((7, bottom - 2, 7 + pixels, bottom), fill=255)
        draw.text((7, bottom - 21), f"{length:g} mm", **style)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def round_length(most: float) -> float:
    """The longest of 1, 2, 5, 10, 20, ... that is not longer than ``most``."""
    power = 10.0 ** math.floor(math.log10(most))
    return max(step * power for step in (1, 2, 5) if step * power <= most * (1 + 1e-9))


def write_png16(path: Path, result: Result) -> list[str]:
    """Whole HU (CT), or 65536 steps up to the brightest pixel (MR); slices side by side."""
    values = result.values()
    check_finite(values)
    row = np.concatenate(list(values), axis=1).astype(np.float64)
    notes = []
    if result.problem.modality == "CT":
        slope, intercept = 1.0, HU_AT_ZERO
    else:
        slope, intercept = max(float(row.max()), 1e-30) / 65535, 0.0
    numbers = np.round((row - intercept) / slope)
    clipped = int(((numbers < 0) | (numbers > 65535)).sum())
    if clipped:
        notes.append(f"{path.name}: {clipped} pixels beyond 16 bit were clipped.")
    if len(values) > 1:
        notes.append(f"{path.name}: the {len(values)} slices are side by side in one picture.")
    said = describe(result, slope=slope, intercept=intercept)
    text = PngInfo()
    text.add_text("Software", f"{SOFTWARE} {__version__}")
    text.add_text("Comment", NOTICE)
    text.add_text("Description", said)
    image = Image.fromarray(np.clip(numbers, 0, 65535).astype(np.uint16))
    write_atomic(path, lambda stream: image.save(stream, "PNG", pnginfo=text))
    return notes


def write_tiff(path: Path, result: Result) -> None:
    """float32, one page a slice, with the pixel size in the resolution tags."""
    values = result.values()
    check_finite(values)
    tags: dict[int, object] = {
        DESCRIPTION: describe(result, result.to_hu(), slices=len(values)),
        SOFTWARE_TAG: f"{SOFTWARE} {__version__}",
    }
    pixel_mm = result.pixel_mm
    if pixel_mm is not None:
        row_mm, column_mm = pixel_mm
        tags |= {X_RESOLUTION: 10 / column_mm, Y_RESOLUTION: 10 / row_mm}
        tags[RESOLUTION_UNIT] = CENTIMETRE
    pages = [Image.fromarray(result.exported(page)) for page in values]

    def write(stream: BinaryIO) -> None:
        pages[0].save(stream, "TIFF", save_all=True, append_images=pages[1:], tiffinfo=tags)

    write_atomic(path, write)


def describe(result: Result, to_hu: dict[str, float] | None = None, **more: float) -> str:
    """What the numbers of a picture mean, as JSON; nothing about whose picture it is.

    ``to_hu``: slope and intercept of attenuation.
    """
    is_ct = result.problem.modality == "CT"
    said: dict[str, object] = {
        "software": SOFTWARE,
        "version": __version__,
        "modality": result.problem.modality,
        "unit": "1/mm" if to_hu else "HU" if is_ct else "magnitude, input's scale",
        **more,
        **(to_hu or {}),
        "notice": NOTICE,
    }
    pixel_mm = result.pixel_mm
    if pixel_mm is not None:
        said["row_mm"], said["column_mm"] = pixel_mm
    return json.dumps(said)
