"""A small picture of the angles a scan covers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import tabular

MOST_TICKS = 180  # more views are an arc


class PolarDial(QWidget):
    """Where the rays come from: ticks on a circle, seen as the image is.

    At angle t the source stands at (sin t, -cos t), as in the engine's geometry. A parallel
    ray and its opposite measure the same line, so both directions are marked.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.angles_deg: tuple[float, ...] = ()
        self.span, self.start, self.fan = 0.0, 0.0, False
        self.wrong = ""
        self.setFont(tabular(self.font()))
        self.setAccessibleName("Covered angles")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_coverage(1, 180.0, 0.0)

    def set_coverage(
        self,
        views: int,
        span_deg: float,
        start_deg: float,
        fan: bool = False,
        angles_deg: Sequence[float] | None = None,
    ) -> None:
        """Evenly spaced views, or the given ``angles_deg`` of a measured scan."""
        if angles_deg is None:
            angles_deg = [start_deg + i * span_deg / views for i in range(views)]
        self.angles_deg, self.wrong = tuple(angles_deg), ""
        self.span, self.start, self.fan = span_deg, start_deg, fan
        self._describe(self.words())

    def set_wrong(self, sentence: str) -> None:
        """The angles asked for make no scan: show none rather than old ones."""
        self.wrong = sentence
        self._describe(sentence)

    def _describe(self, words: str) -> None:
        self.setAccessibleDescription(words)
        self.setToolTip(words)
        self.update()

    def words(self) -> str:
        views = len(self.angles_deg)
        rays = "fan" if self.fan else "parallel"
        count = f"{views} {rays} view{'s' if views != 1 else ''}"
        text = f"{count} over {self.span:g}° from {self.start:g}°"
        if views > 1:
            text += f", one every {self.span / views:.3g}°"
        if not self.fan and self.span < 180:
            begin, end = (self.start + self.span) % 360, (self.start + 180) % 360
            text += f"; nothing is seen from {begin:g}° to {end:g}°, so some edges stay hidden"
        elif self.fan and self.span < 360:
            text += f"; the source stays out of the other {360 - self.span:g}°"
        return text + "."

    def sizeHint(self) -> QSize:
        return QSize(136, 136)

    def minimumSizeHint(self) -> QSize:
        return QSize(112, 112)

    def place(self, angle_deg: float, radius: float) -> QPointF:
        """Where the source of a view is on the screen (y downwards)."""
        t = math.radians(angle_deg)
        centre = QRectF(self.rect()).center()
        return QPointF(centre.x() + radius * math.sin(t), centre.y() + radius * math.cos(t))

    @property
    def radius(self) -> float:
        return min(self.width(), self.height()) / 2 - 10

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        text = self.palette().color(QPalette.ColorRole.WindowText)
        ink = self.palette().color(QPalette.ColorRole.Highlight)
        faint = QColor(text)
        faint.setAlpha(70)
        centre, radius = QRectF(self.rect()).center(), self.radius
        painter.setPen(QPen(faint, 1))
        painter.drawEllipse(centre, radius, radius)
        if self.wrong:
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "—")
            return
        self._paint_arcs(painter, ink, centre, radius)
        if len(self.angles_deg) <= MOST_TICKS:
            self._paint_ticks(painter, ink, radius)
        first = self.place(self.angles_deg[0] if self.angles_deg else self.start, radius)
        painter.setPen(QPen(text, 1))
        painter.setBrush(QBrush(text))
        painter.drawEllipse(first, 3, 3)
        inner = QRectF(0, 0, 1.3 * radius, 1.3 * radius)
        inner.moveCenter(centre)
        views = len(self.angles_deg)
        caption = f"{views} view{'s' if views != 1 else ''}\n{self.span:g}°"
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip
        painter.drawText(inner, flags, caption)

    def _paint_arcs(self, painter: QPainter, ink: QColor, centre: QPointF, radius: float) -> None:
        few = len(self.angles_deg) <= MOST_TICKS
        band = QColor(ink)
        band.setAlpha(90 if few else 255)
        painter.setPen(QPen(band, 6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        circle = QRectF(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius)
        # Qt counts sixteenths of a degree from three o'clock; the source starts at six o'clock.
        sides = (0.0,) if self.fan else (0.0, 180.0)
        for side in sides:
            begin = self.start + side - 90
            painter.drawArc(circle, round(16 * begin), round(16 * min(self.span, 360.0)))

    def _paint_ticks(self, painter: QPainter, ink: QColor, radius: float) -> None:
        painter.setPen(QPen(ink, 1.5))
        for angle in self.angles_deg:
            painter.drawLine(self.place(angle, radius - 8), self.place(angle, radius + 5))
        if self.fan:
            return
        for angle in self.angles_deg:
            painter.drawLine(
                self.place(angle + 180, radius - 4), self.place(angle + 180, radius + 2)
            )
