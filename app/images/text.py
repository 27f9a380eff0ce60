"""Numbers and words of a pane, with their units."""

from __future__ import annotations

from collections.abc import Mapping

from app.images.display import ViewState
from app.images.window_level import WindowLevel

MASKED = "***"
GAP = "  "  # between the numbers of a caption


def unit_of(modality: str) -> str:
    return "HU" if modality == "CT" else "rel."


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
    return f"{low:.4g} to {high:.4g} rel.{inverted}"


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
    """The same verdicts, longest first: whole sentences, then up to their colons, then one."""
    whole = list(verdicts.values())
    short = [sentence.split(":")[0].rstrip(".") for sentence in whole]
    return [" ".join(whole), f". {GAP}".join(short), *reversed(short)] if whole else []
