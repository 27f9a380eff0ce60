"""One colour and one dash pattern per run, the same in every pane, plot and table.

Colour says the method, so that it means the same everywhere; runs of one method are told
apart by their dashes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap

from app.theme import RunStyle, run_style

Dash = tuple[float, ...]

# For the second and later runs of a method; dots are kept for second quantities of one run.
REPEATS: Final[tuple[Dash, ...]] = ((9, 3), (9, 3, 3, 3), (15, 5), (4, 4), (9, 3, 3, 3, 3, 3))
DOTS: Final[Dash] = (1, 3)


def style_of(job: dict[str, Any]) -> RunStyle:
    """By method; DC-PnPDP with plain white noise injected is the paper's 'naive' variant."""
    solver, settings = str(job.get("solver", "dc-pnpdp")), job.get("settings") or {}
    naive = solver == "dc-pnpdp" and settings.get("injection") == "awgn"
    return run_style("naive" if naive else solver)


def dash_for(style: RunStyle, taken: Collection[Dash]) -> Dash:
    """The method's own pattern, or the next that no other run of its colour uses."""
    order = [style.dash, *(dash for dash in REPEATS if dash != style.dash)]
    return next((dash for dash in order if dash not in taken), order[len(taken) % len(order)])


SWATCH_PX = QSize(24, 14)


def run_pen(colour: str, dash: Dash, width: float = 1.0, pixel_ratio: float = 1.0) -> QPen:
    """Cosmetic: as wide on the screen at any zoom, in pixels of the screen itself."""
    pen = QPen(QColor(colour), width * max(1, round(pixel_ratio)))
    pen.setCosmetic(True)
    if dash:
        pen.setDashPattern(list(dash))
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    return pen


def swatch(colour: str, dash: Dash, pixel_ratio: float = 1.0) -> QPixmap:
    pixmap = QPixmap(SWATCH_PX * pixel_ratio)
    pixmap.setDevicePixelRatio(pixel_ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    pen = run_pen(colour, tuple(part / 2 for part in dash), 2.0, pixel_ratio)
    painter.setPen(pen)
    middle = SWATCH_PX.height() / 2
    painter.drawLine(QPointF(0, middle), QPointF(SWATCH_PX.width(), middle))
    painter.end()
    return pixmap
