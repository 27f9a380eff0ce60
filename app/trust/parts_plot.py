"""How well every view or line of the measurement fits, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from app.theme import GRID_PX, SMALLEST_TEXT_PX, run_style, tabular

if TYPE_CHECKING:
    from engine.runs.certificate import Certificate

USUAL: Final = QColor(run_style("diffpir").colour)
SUSPICIOUS: Final = QColor(run_style("naive").colour)
LEAST_PX: Final = 96


class PartsPlot(QWidget):
    """A bar of a suspicious part has another colour; a line is drawn at 1, where noise leads."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.certificate: Certificate | None = None
        self.setMinimumHeight(LEAST_PX)
        self.setAccessibleName("Fit of every part of the measurement")
        font = tabular(self.font())
        font.setPixelSize(SMALLEST_TEXT_PX)
        self.setFont(font)

    def show_certificate(self, certificate: Certificate | None) -> None:
        self.certificate = certificate
        self.setVisible(certificate is not None)
        if certificate is not None:
            self.setAccessibleDescription(self._title(certificate))
        self.update()

    def words_at(self, x: float) -> str:
        """The part under the mouse and its value."""
        c = self.certificate
        area = self._area()
        if c is None or not c.parts or not area.left() <= x < area.right():
            return ""
        number = int((x - area.left()) / area.width() * len(c.parts))
        value = c.parts[number]
        return f"{c.part} {number}: " + ("not measured" if value is None else f"{value:.3g}")

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.words_at(event.pos().x()), self)
            return True
        return super().event(event)

    @staticmethod
    def _title(c: Certificate) -> str:
        kind = "Relative residual" if c.reduced is None else "Reduced chi-square"
        return f"{kind} by {c.part}"

    def _area(self) -> QRectF:
        """Of the bars; numbers stand left of it, names above and below."""
        line = self.fontMetrics().height()
        left = self.fontMetrics().horizontalAdvance("0.000e-00") + GRID_PX
        return QRectF(self.rect()).adjusted(left, line + GRID_PX, -GRID_PX, -line - GRID_PX // 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        c = self.certificate
        known = [value for value in c.parts if value is not None] if c is not None else []
        if c is None or not known:
            return
        level = None if c.reduced is None else 1.0
        top = max(*known, 1.2 * (level or 0.0), 1e-12)
        painter, area, palette = QPainter(self), self._area(), self.palette()
        width = area.width() / len(c.parts)
        gap = 1.0 if width > 4 else 0.0
        for number, value in enumerate(c.parts):
            if value is not None:
                height = max(1.0, area.height() * value / top)
                left = area.left() + number * width
                bar = QRectF(left, area.bottom() - height, max(1.0, width - gap), height)
                painter.fillRect(bar, SUSPICIOUS if number in c.suspicious else USUAL)
        text = palette.windowText().color()
        painter.setPen(QPen(palette.mid().color(), 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        painter.setPen(text)
        marks = [(top, area.top()), (0.0, area.bottom())]
        if level is not None:
            height = area.bottom() - area.height() * level / top
            painter.setPen(QPen(text, 1, Qt.PenStyle.DashLine))
            painter.drawLine(int(area.left()), int(height), int(area.right()), int(height))
            painter.setPen(text)
            line = self.fontMetrics().height()
            if area.top() + line < height < area.bottom() - line:  # else it lies on another
                marks.append((level, height))
        self._write(painter, area, marks, c)
        painter.end()

    def _write(
        self, painter: QPainter, area: QRectF, marks: list[tuple[float, float]], c: Certificate
    ) -> None:
        line, right = self.fontMetrics().height(), Qt.AlignmentFlag.AlignRight
        for value, y in marks:
            box = QRectF(0, y - line / 2, area.left() - GRID_PX // 2, line)
            painter.drawText(box, right | Qt.AlignmentFlag.AlignVCenter, f"{value:.3g}")
        above = QRectF(area.left(), 0, area.width(), line)
        painter.drawText(above, Qt.AlignmentFlag.AlignLeft, self._title(c))
        below = QRectF(area.left(), area.bottom() + GRID_PX // 2, area.width(), line)
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft, f"{c.part} 0")
        painter.drawText(below, right, f"{c.part} {len(c.parts) - 1}")
