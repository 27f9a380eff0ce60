"""Pictures of a result: 8 bit through the window, or all its values (16 bit, float32).

The files that keep values say in their description (JSON) what the values mean, and our reader
takes it from there.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from engine import __version__
from engine.data.readers.volumes.picture import DESCRIPTION, SOFTWARE
from engine.export.dicom_derivation import calls_of, sampling, series_description, solver_of
from engine.export.outputs import Result, check_finite, window_to_bytes
from engine.files.atomic import write_atomic, write_bytes_atomic
from engine.spec.marks import NO_LETTERS, RESEARCH, EdgeLetters, Marks, letters_of, round_length

LEGIBLE_PX, SMALLEST_FONT, BAR_PX = 240, 12, 6
HU_AT_ZERO = -32768.0  # 16-bit CT: HU = number - 32768, one HU a step
X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT, SOFTWARE_TAG, CENTIMETRE = 282, 283, 296, 305, 3
BAR_SHARE = 0.25  # of the picture's width, at most


def write_png(path: Path, result: Result) -> None:
    """All slices side by side, through the window; each carries all that must be said of it."""
    values = result.values()
    check_finite(values)
    window = result.shown_window()
    pages = [
        windowed_picture(page, window, marks_of(result, window, index))
        for index, page in enumerate(values)
    ]
    row = Image.fromarray(np.concatenate([np.asarray(page) for page in pages], axis=1))
    write_bytes_atomic(path, png_of(row, said_of(result, window)))


def windowed_png(
    values: np.ndarray,
    window: tuple[float, float],
    *,
    overlay: Sequence[str] = (),
    bar_mm_per_pixel: float | None = None,
    zoom: int = 1,
) -> bytes:
    """An 8-bit PNG of ``[H, W]``, marked as research.

    Parameters
    ----------
    overlay
        Further lines of text.
    bar_mm_per_pixel
        Size of a column: draws a scale bar of a round length.
    zoom
        Every pixel becomes at least this many squared, so that text and bar are fine.
    """
    marks = Marks((RESEARCH, *overlay), mm_per_pixel=bar_mm_per_pixel)
    return png_of(windowed_picture(values, window, marks, zoom), {})


def windowed_picture(
    values: np.ndarray, window: tuple[float, float], marks: Marks, zoom: int = 1
) -> Image.Image:
    return marked(window_to_bytes(values, window), marks, zoom)


def marked(pixels: np.ndarray, marks: Marks, zoom: int = 1) -> Image.Image:
    """8-bit grey or colour, with its marks; enlarged by whole pixels until they can be read."""
    zoom = max(zoom, -(-LEGIBLE_PX // pixels.shape[1]))
    image = Image.fromarray(np.ascontiguousarray(pixels.repeat(zoom, 0).repeat(zoom, 1)))
    width, height = image.size
    size = max(SMALLEST_FONT, min(width, height) // 40)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size)
    while size > SMALLEST_FONT - 4 and max(map(font.getlength, marks.lines)) > width - 12:
        size -= 1
        font = ImageFont.load_default(size)
    white: Any = 255 if image.mode == "L" else (255,) * len(image.getbands())
    black: Any = 0 if image.mode == "L" else (0,) * len(image.getbands())
    style: dict[str, Any] = {"fill": white, "font": font, "stroke_width": 1, "stroke_fill": black}
    step, right = round(1.25 * size), marks.corner.endswith("right")
    bar = marks.mm_per_pixel is not None
    high = step * (len(marks.lines) + bar) + (BAR_PX if bar else 0)
    y = 4.0 if marks.corner.startswith("top") else height - high - 6.0
    for line in marks.lines:
        x = width - 6 - font.getlength(line) if right else 6
        draw.text((x, y), line, **style)
        y += step
    if marks.mm_per_pixel is not None:
        length = round_length(BAR_SHARE * width * marks.mm_per_pixel / zoom)
        wide = length * zoom / marks.mm_per_pixel
        left = width - 7 - wide if right else 7
        draw.text((left, y), f"{length:g} mm", **style)
        y += step + 2
        draw.rectangle((left - 1, y - 1, left + wide + 1, y + 3), fill=black)
        draw.rectangle((left, y, left + wide, y + 2), fill=white)
    letters, middle = marks.letters, (height - step) / 2
    for word, at in (
        (letters.left, (6, middle)),
        (letters.right, (width - 6 - font.getlength(letters.right), middle)),
        (letters.top, ((width - font.getlength(letters.top)) / 2, 4)),
        (letters.bottom, ((width - font.getlength(letters.bottom)) / 2, height - step - 4)),
    ):
        if word:
            draw.text(at, word, **style)
    return image


def png_of(image: Image.Image, said: dict[str, str]) -> bytes:
    """As a PNG whose texts say what its pixels say, and no more of the patient."""
    text = PngInfo()
    for key, words in {
        "Software": f"{SOFTWARE} {__version__}",
        "Comment": RESEARCH,
        **said,
    }.items():
        text.add_text(key, words)
    stream = io.BytesIO()
    image.save(stream, "PNG", pnginfo=text)
    return stream.getvalue()


def marks_of(result: Result, window: tuple[float, float], index: int = 0) -> Marks:
    """Of slice ``index`` of a result."""
    placements, pixel_mm = result.placements, result.pixel_mm
    letters = NO_LETTERS
    if placements:
        row = np.asarray(placements[index].along_row, dtype=float)
        column = np.asarray(placements[index].along_column, dtype=float)
        letters = EdgeLetters(*map(letters_of, (-row, -column, row, column)))
    how = ", ".join(filter(None, (sampling(result), calls_of(result))))
    lines = (RESEARCH, solver_of(result), how, window_words(result.problem.modality, window))
    bar = pixel_mm[1] if pixel_mm else None
    return Marks(tuple(filter(None, lines)), letters, bar, result.mark_corner)


def said_of(result: Result, window: tuple[float, float]) -> dict[str, str]:
    """The marks again as text, for programs."""
    return {
        "Title": series_description(result),
        "Description": "; ".join(marks_of(result, window).lines),
    }


def window_words(modality: str, window: tuple[float, float]) -> str:
    centre, width = window
    if modality == "CT":
        return f"C {centre:.0f} W {width:.0f} HU"
    half = (width - 1) / 2
    return f"{centre - 0.5 - half:.4g} to {centre - 0.5 + half:.4g} signal"


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
    image = Image.fromarray(np.clip(numbers, 0, 65535).astype(np.uint16))
    title = series_description(result)
    write_bytes_atomic(path, png_of(image, {"Title": title, "Description": said}))
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
        "method": solver_of(result),
        "sampling": sampling(result),
        "calls": calls_of(result),
        **more,
        **(to_hu or {}),
        "notice": RESEARCH,
    }
    pixel_mm = result.pixel_mm
    if pixel_mm is not None:
        said["row_mm"], said["column_mm"] = pixel_mm
    return json.dumps(said)
