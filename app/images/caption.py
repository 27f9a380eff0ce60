"""What stands around an image: the run's colour above it, its name and quality below it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.images import text
from app.theme import GRID_PX, SMALLEST_TEXT_PX, RunStyle, tabular
from app.tips import plain_tip

LINE_PX = 3


class TitleLine(QWidget):
    """A thin line in the colour and the dashes of the run."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(LINE_PX)
        self.setAccessibleName("Colour of the run")
        self.style_of_run: RunStyle | None = None

    def set_run_style(self, style: RunStyle | None) -> None:
        self.style_of_run = style
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.style_of_run is None:
            return
        painter = QPainter(self)
        pen = QPen(QColor(self.style_of_run.colour), LINE_PX)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if self.style_of_run.dash:
            pen.setDashPattern(list(self.style_of_run.dash))
        painter.setPen(pen)
        painter.drawLine(0, LINE_PX // 2, self.width(), LINE_PX // 2)
        painter.end()


class Caption(QWidget):
    """The name on the left, the numbers on the right, as many as there is room for."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        font = tabular(self.font())
        font.setPixelSize(SMALLEST_TEXT_PX + 1)
        self.setFont(font)
        self.name = ""
        self.numbers = ""

    def set_text(self, name: str, numbers: str) -> None:
        if (name, numbers) != (self.name, self.numbers):
            self.name, self.numbers = name, numbers
            whole = f"{name}: {numbers}" if numbers else name
            self.setAccessibleName(f"Caption {whole}")
            self.setToolTip(plain_tip(whole))
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, self.fontMetrics().height() + GRID_PX // 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().windowText().color())
        area = self.rect().adjusted(GRID_PX // 2, 0, -GRID_PX // 2, 0)
        metrics = self.fontMetrics()
        middle = Qt.AlignmentFlag.AlignVCenter
        bold = QFont(self.font())
        bold.setBold(True)
        name_width = QFontMetrics(bold).horizontalAdvance(self.name) + GRID_PX
        parts = self.numbers.split(text.GAP)
        while parts and metrics.horizontalAdvance(text.GAP.join(parts)) + name_width > area.width():
            parts.pop()  # the name says what is seen: a number goes first
        numbers = text.GAP.join(parts)
        painter.drawText(area, middle | Qt.AlignmentFlag.AlignRight, numbers)
        room = area.width() - metrics.horizontalAdvance(numbers)
        painter.setFont(bold)
        name = painter.fontMetrics().elidedText(
            self.name, Qt.TextElideMode.ElideRight, max(room, 0)
        )
        painter.drawText(area, middle | Qt.AlignmentFlag.AlignLeft, name)
        painter.end()
