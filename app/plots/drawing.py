"""Which numbers of a run become which curves."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from app.plots.curves import CurvePlot
from app.runs.colours import DOTS, Dash, swatch
from app.runs.store import RunEntry
from app.theme import REFERENCE
from app.widgets import empty_layout

IDEAL_DASH: Final = (12.0, 4.0)


def run_of(key: str) -> str:
    """A curve's key is the run's id, and for one of several quantities '/' and its name."""
    return key.split("/")[0]


def is_level(entry: RunEntry) -> bool:
    """Whether the method takes one step, and is drawn as a level to compare with."""
    return entry.history.last("K") == 1


def draw_residual(plot: CurvePlot, entry: RunEntry) -> None:
    """||Ax - y||."""
    k = _iterations(plot, entry)
    values = _spread(entry.history.column("residual_x"), k)
    plot.set_curve(entry.run_id, f"#{entry.number}", entry.colour, entry.dash, k, values)


def draw_gap(plot: CurvePlot, entry: RunEntry) -> None:
    """||x - z||, and ||u|| dotted where the method has one."""
    k, key, short = _iterations(plot, entry), entry.run_id, f"#{entry.number}"
    gap, dual = (_spread(entry.history.column(name), k) for name in ("gap", "dual"))
    plot.set_curve(f"{key}/gap", short, entry.colour, entry.dash, k, gap)
    if np.any(dual > 0):
        plot.set_curve(f"{key}/dual", f"{short} ‖u‖", entry.colour, DOTS, k, dual)


def draw_psnr(plot: CurvePlot, entry: RunEntry) -> None:
    history = entry.history
    if "psnr" not in history.names():
        return
    nfe, psnr = history.column("nfe"), history.column("psnr")
    if nfe[-1] > 0:
        plot.include_x(0, history.last("K") or 1.0)
    else:  # no denoiser calls to count: a level to compare with
        nfe, psnr = np.array([0.0, plot.right]), np.repeat(psnr[-1:], 2)
    plot.set_curve(entry.run_id, f"#{entry.number}", entry.colour, entry.dash, nfe, psnr)


def draw_spectra(plot: CurvePlot, entry: RunEntry, frame: Any) -> None:
    """Before (dotted) and after homogenization, the white target, the deficit shaded."""
    f, psd = frame.frequency, frame.psd
    key, short, colour = entry.run_id, f"#{entry.number}", entry.colour
    target, before = psd["target"], psd["residual"]
    plot.set_curve("ideal", "target σ²HW", REFERENCE.colour, IDEAL_DASH, f, target)
    plot.set_curve(f"{key}/before", f"{short} before", colour, DOTS, f, before)
    plot.set_curve(f"{key}/after", f"{short} after", colour, entry.dash, f, psd["homogenized"])
    plot.set_shade(f"{key}/before", colour, f, np.minimum(before, target), target)


def _iterations(plot: CurvePlot, entry: RunEntry) -> np.ndarray:
    """k; for a level the whole width."""
    plot.include_x(0, entry.history.last("K") or 1.0)
    return np.array([0.0, plot.right]) if is_level(entry) else entry.history.column("k")


def _spread(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """One value as a level line of as many points as ``x``."""
    return np.repeat(values[-1:], len(x)) if len(values) != len(x) else values


class Legend(QWidget):
    """Swatches and names, ``per_row`` in a line; clipped, not wrapped, when too wide."""

    def __init__(self, parent: QWidget | None = None, per_row: int = 99) -> None:
        super().__init__(parent)
        self.per_row = per_row
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setHorizontalSpacing(4)
        self._layout.setVerticalSpacing(0)
        self._layout.setColumnStretch(2 * per_row, 1)
        # many names must not make the window wider
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._lines: list[tuple[str, str, Dash]] = []
        self.setAccessibleName("Legend")

    def show_lines(self, lines: list[tuple[str, str, Dash]]) -> None:
        """(name, colour, dash) of every line."""
        if lines == self._lines:
            return
        self._lines = lines
        empty_layout(self._layout)
        ratio = self.devicePixelRatioF()
        for number, (name, colour, dash) in enumerate(lines):
            row, column = divmod(number, self.per_row)
            mark, text = QLabel(self), QLabel(name, self)
            mark.setPixmap(swatch(colour, dash, max(ratio, 1.0)))
            text.setContentsMargins(0, 0, 12, 0)
            self._layout.addWidget(mark, row, 2 * column)
            self._layout.addWidget(text, row, 2 * column + 1)
        self.setAccessibleDescription(", ".join(name for name, _, _ in lines))

    def names(self) -> list[str]:
        return [name for name, _, _ in self._lines]
