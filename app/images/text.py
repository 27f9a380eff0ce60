"""Numbers and words of a pane, with their units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.images.display import ViewState
from app.images.measure import Measurement
from app.images.window_level import WindowLevel

if TYPE_CHECKING:
    from engine.metrics.roi import RoiStatistics

MASKED = "***"
GAP = "  "  # between the numbers of a caption


def unit_of(modality: str) -> str:
    """MR's scale is anyone's: its numbers are compared with each other only."""
    return "HU" if modality == "CT" else "signal"


def value_text(value: float, modality: str) -> str:
    """HU are whole numbers to a reader; MR's scale is anyone's, so four digits of it."""
    if value != value:
        return "NaN"
    return f"{value:.0f}" if modality == "CT" else f"{value:.4g}"


def readout(value: float, modality: str, pixel: tuple[int, int]) -> str:
    """'HU 52 @ (120, 80)': the pixel is (column, row), counted from 0."""
    return f"{unit_of(modality)} {value_text(value, modality)} @ ({pixel[0]}, {pixel[1]})"


def window_text(window: WindowLevel, modality: str) -> str:
    inverted = " inverted" if window.invert else ""
    if modality == "CT":
        return f"C {window.centre:.0f} W {window.width:.0f} HU{inverted}"
    low, high = window.levels  # a width means nothing to a reader of relative numbers
    return f"{low:.4g} to {high:.4g} signal{inverted}"


def zoom_text(magnification: float, state: ViewState) -> str:
    """Pixels of the screen for one of the image, and whether that is what fits the pane."""
    orientation = state.orientation
    words = [f"Zoom {100 * magnification:.0f} %"]
    if state.zoom == 1:
        words.append("fit")
    if orientation.degrees:
        words.append(f"{orientation.degrees}°")
    if orientation.mirrored:
        words.append("mirrored")
    return " ".join(words)


def metrics_text(psnr_db: float | None, ssim: float | None) -> str:
    words = []
    if psnr_db is not None:
        words.append(f"{psnr_db:.2f} dB")
    if ssim is not None:
        words.append(f"SSIM {ssim:.4f}")
    return GAP.join(words)


def verdict_lines(verdicts: Mapping[str, str]) -> list[str]:
    """The same verdicts, longest first: the line that sums them up, and less and less of it.

    Without one whole sentences, then up to their colons, then one.
    """
    if (summary := verdicts.get("summary", "")) != "":
        parts = summary.rstrip(".").split("; ")
        return ["; ".join(parts[:count]) for count in range(len(parts), 0, -1)]
    whole = list(verdicts.values())
    short = [sentence.split(":")[0].rstrip(".") for sentence in whole]
    return [" ".join(whole), f". {GAP}".join(short), *reversed(short)] if whole else []


def size_text(one: Measurement, spacing_known: bool) -> str:
    """Of a length or an angle; without the size of a pixel lengths are in pixels."""
    if one.length_mm is not None:
        return f"{one.length_mm:.1f} {'mm' if spacing_known else 'px'}"
    return "" if one.angle_degrees is None else f"{one.angle_degrees:.1f}°"


def area_text(area_mm2: float, spacing_known: bool) -> str:
    return f"{area_mm2:.0f} {'mm²' if spacing_known else 'px'}"


def statistics_text(found: RoiStatistics | None, modality: str) -> str:
    if found is None:
        return ""
    mean, sd = (value_text(value, modality) for value in (found.mean, found.sd))
    return f"{mean} ± {sd} {unit_of(modality)}"
