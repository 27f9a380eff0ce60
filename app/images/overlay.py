"""The text over an image: four corners, the letters at the edges, the colour bar.

It lies on true black in either theme, so its colours are fixed. It is drawn once into a pixmap
and only again when a word changes, not with every frame of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QImage,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from app.theme import GRID_PX, SMALLEST_TEXT_PX, tabular
from engine.spec.marks import NO_LETTERS, EdgeLetters, round_length

_TEXT: Final = QColor("#e8e8e8")
_EDGE: Final = QColor(0, 0, 0, 200)
_LETTER: Final = QColor("#f0c860")
_BAR_WIDTH: Final = 10
CROWDED_PX: Final = 200  # a narrower pane drops all but the last line of its right corners
_AROUND: Final = ((-1, 0), (1, 0), (0, -1), (0, 1))


@dataclass(frozen=True)
class ColourBar:
    """A look-up table with the values at its ends; the unit is written at the upper one."""

    table: np.ndarray = field(compare=False)
    low: str
    high: str
    unit: str


@dataclass(frozen=True)
class ScaleBar:
    pixels: float
    words: str


def scale_bar(pixels_per_mm: float, width: float) -> ScaleBar:
    """Of a round length, at most a quarter of a picture's width."""
    length = round_length(0.25 * width / pixels_per_mm)
    return ScaleBar(length * pixels_per_mm, f"{length:g} mm")


@dataclass(frozen=True)
class OverlayText:
    """Lines for each corner; the rest only where there is something to say."""

    top_left: tuple[str, ...] = ()
    top_right: tuple[str, ...] = ()
    bottom_left: tuple[str, ...] = ()
    bottom_right: tuple[str, ...] = ()
    letters: EdgeLetters = NO_LETTERS
    scale: ScaleBar | None = None
    middle: str = ""  # the empty state, or why there is no image
    bar: ColourBar | None = None


class Overlay(QWidget):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Image annotations")
        self._text = OverlayText()
        self._pixmap: QPixmap | None = None

    @property
    def text(self) -> OverlayText:
        return self._text

    def set_text(self, text: OverlayText) -> None:
        if text != self._text:
            self._text = text
            self._redraw()

    def _redraw(self) -> None:
        self._pixmap = None
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._redraw()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.FontChange:
            self._redraw()
        super().changeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        ratio = self.devicePixelRatioF()
        if self._pixmap is None or self._pixmap.devicePixelRatioF() != ratio:
            self._pixmap = QPixmap(self.size() * ratio)
            self._pixmap.setDevicePixelRatio(ratio)
            self._pixmap.fill(Qt.GlobalColor.transparent)
            painter = QPainter(self._pixmap)
            draw_overlay(painter, self.rect(), self._text, self.font())
            painter.end()
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._pixmap)
        painter.end()


def draw_overlay(painter: QPainter, rect: QRect, text: OverlayText, font: QFont) -> None:
    """On the screen; a narrow pane gets smaller letters."""
    small = tabular(font)
    small.setPixelSize(SMALLEST_TEXT_PX if rect.width() < 360 else SMALLEST_TEXT_PX + 1)
    painter.setRenderHint(QPainter.RenderHint.TextAntialiasing)
    Drawing(rect, text).draw(painter, small)


class Drawing:
    """The same lines, letters and bars on anything that can be painted on."""

    def __init__(self, rect: QRect, text: OverlayText) -> None:
        self.rect, self._text = rect, text

    def draw(self, painter: QPainter, font: QFont) -> None:
        painter.setFont(font)
        area = self.rect.adjusted(GRID_PX, GRID_PX - 2, -GRID_PX, -GRID_PX + 2)
        text = self._text
        if self.rect.width() < CROWDED_PX:
            text = replace(text, top_right=text.top_right[-1:], bottom_right=text.bottom_right[-1:])
        right, bottom = Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignBottom
        nothing = Qt.AlignmentFlag(0)
        self._corner(painter, area, text.top_left, text.top_right, nothing)
        self._corner(painter, area, text.top_right, text.top_left, right)
        self._corner(painter, area, text.bottom_left, text.bottom_right, bottom)
        self._corner(painter, area, text.bottom_right, text.bottom_left, bottom | right)
        bar = self._draw_bar(painter, area, text.bar) if text.bar is not None else 0
        self._draw_letters(painter, area.adjusted(bar, 0, -bar, 0), font)
        if text.scale is not None:
            self._draw_scale(painter, area, text.scale)
        if text.middle:
            painter.setPen(_TEXT)
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(area.adjusted(GRID_PX, 0, -GRID_PX, 0), flags, text.middle)

    def _corner(
        self,
        painter: QPainter,
        area: QRect,
        lines: tuple[str, ...],
        opposite: tuple[str, ...],
        align: Qt.AlignmentFlag,
    ) -> None:
        metrics = painter.fontMetrics()
        height = metrics.height()
        top, edge_row, letter = area.top(), 0, self._text.letters.top
        if align & Qt.AlignmentFlag.AlignBottom:
            top = area.bottom() + 1 - height * len(lines)
            edge_row, letter = len(lines) - 1, self._text.letters.bottom
            # rows are counted from the edge: only those at the same height are neighbours
            opposite = ("",) * (len(lines) - len(opposite)) + opposite[-len(lines) :]
        for number, line in enumerate(lines):
            neighbour = opposite[number] if number < len(opposite) else ""
            taken = metrics.horizontalAdvance(neighbour)
            # each side may have half, and what the other side leaves of its own half
            room = area.width() - min(taken, area.width() // 2) - (GRID_PX if neighbour else 0)
            if number == edge_row and letter:  # the letter stands in the middle of this row
                room = min(room, (area.width() - metrics.horizontalAdvance(letter)) // 2 - GRID_PX)
            shown = metrics.elidedText(line, Qt.TextElideMode.ElideRight, max(room, 0))
            x = area.left()
            if align & Qt.AlignmentFlag.AlignRight:
                x = area.right() + 1 - metrics.horizontalAdvance(shown)
            self._outlined(painter, x, top + number * height + metrics.ascent(), shown, _TEXT)

    def _draw_letters(self, painter: QPainter, area: QRect, font: QFont) -> None:
        bold = QFont(font)
        bold.setBold(True)
        bold.setPixelSize(font.pixelSize() + 2)
        painter.setFont(bold)
        metrics = QFontMetrics(bold)
        letters = self._text.letters
        middle = area.center().y() + metrics.ascent() // 2
        centre = area.center().x()
        wide = metrics.horizontalAdvance
        for word, x, y in (
            (letters.left, area.left(), middle),
            (letters.right, area.right() + 1 - wide(letters.right), middle),
            (letters.top, centre - wide(letters.top) // 2, area.top() + metrics.ascent()),
            (letters.bottom, centre - wide(letters.bottom) // 2, area.bottom() - metrics.descent()),
        ):
            if word:
                self._outlined(painter, x, y, word, _LETTER)
        painter.setFont(font)

    def _draw_bar(self, painter: QPainter, area: QRect, bar: ColourBar) -> int:
        """Along the right edge, between the corner texts; returns the width it takes."""
        metrics = painter.fontMetrics()
        lines = max(len(self._text.top_right), len(self._text.bottom_right))
        height = area.height() - 2 * ((lines + 1) * metrics.height() + GRID_PX)
        if height < 32:
            return 0
        table = np.ascontiguousarray(bar.table[::-1])
        image = QImage(table.data, 1, len(table), 3, QImage.Format.Format_RGB888)
        right = area.right() + 1
        frame = QRectF(right - _BAR_WIDTH, area.center().y() - height / 2, _BAR_WIDTH, height)
        painter.drawImage(frame, image)
        painter.setPen(QPen(_TEXT, 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(frame)
        for word, baseline in (
            (f"{bar.high} {bar.unit}".strip(), frame.top() - 4),
            (bar.low, frame.bottom() + metrics.ascent() + 4),
        ):
            x = right - metrics.horizontalAdvance(word)
            self._outlined(painter, x, round(baseline), word, _TEXT)
        return _BAR_WIDTH + GRID_PX

    def _draw_scale(self, painter: QPainter, area: QRect, scale: ScaleBar) -> None:
        """Above the lines of the lower left corner."""
        metrics = painter.fontMetrics()
        y = area.bottom() - metrics.height() * len(self._text.bottom_left) - GRID_PX
        bar = QRectF(area.left() + 1, y, scale.pixels, 2)
        for colour, rect in ((_EDGE, bar.adjusted(-1, -1, 1, 1)), (_TEXT, bar)):
            painter.fillRect(rect, colour)
        self._outlined(painter, area.left(), round(y - 4), scale.words, _TEXT)

    def _outlined(self, painter: QPainter, x: int, y: int, word: str, colour: QColor) -> None:
        """Light text with a dark edge: readable on bone as on air."""
        painter.setPen(_EDGE)
        for dx, dy in _AROUND:
            painter.drawText(QPointF(x + dx, y + dy), word)
        painter.setPen(colour)
        painter.drawText(QPointF(x, y), word)
