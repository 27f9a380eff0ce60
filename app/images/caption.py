"""What stands around an image: the run's colour above it, its name, quality and verdict below."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.images import text
from app.images.display import LinkedView, Orientation
from app.images.overlay import ColourBar, OverlayText, ScaleBar
from app.theme import GRID_PX, SMALLEST_TEXT_PX, RunStyle, tabular
from app.widgets import plain_tip
from engine.spec.marks import CORNERS, NO_LETTERS, RESEARCH, EdgeLetters, letters_of

if TYPE_CHECKING:
    from engine.data.dataset import Placement


def edge_letters(placement: Placement | None, orientation: Orientation) -> EdgeLetters:
    """What lies beyond each edge of the pane as it is turned now; nothing when unknown."""
    if placement is None:
        return NO_LETTERS
    along_row = np.asarray(placement.along_row, dtype=float)
    along_column = np.asarray(placement.along_column, dtype=float)

    def towards(x: float, y: float) -> str:
        columns, rows = orientation.to_image(x, y)
        return letters_of(columns * along_row + rows * along_column)

    return EdgeLetters(towards(-1, 0), towards(0, -1), towards(1, 0), towards(0, 1))


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
    """The name on the left, the numbers on the right, as many as there is room for.

    Below them a line for what is to be said about the image, in as many words as fit. Its place
    is always kept: an image must not move when its run ends.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        font = tabular(self.font())
        font.setPixelSize(SMALLEST_TEXT_PX + 1)
        self.setFont(font)
        self.name = ""
        self.numbers = self.whole = ""
        self.verdicts: dict[str, str] = {}
        self.why: Callable[[], object] | None = None  # a click on the line below asks for it

    def set_text(
        self, name: str, numbers: str, verdicts: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if (name, numbers, verdicts) != (self.name, self.numbers, self.verdicts):
            self.name, self.numbers, self.verdicts = name, numbers, dict(verdicts)
            self.whole = whole = f"{name}: {numbers}" if numbers else name
            whole = "\n".join([whole, *verdicts.values()])
            hand = Qt.CursorShape.PointingHandCursor
            self.setCursor(hand if verdicts and self.why else Qt.CursorShape.ArrowCursor)
            self.setAccessibleName(f"Caption {whole}")
            self.setToolTip(plain_tip(whole))
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, 2 * self.fontMetrics().height() + GRID_PX // 2)

    def verdict_shown(self) -> str:
        """The longest form that fits; the last one is cut off where even that is too long."""
        room, metrics = self.width() - GRID_PX, self.fontMetrics()
        lines = text.verdict_lines(self.verdicts)
        fitting = [line for line in lines if metrics.horizontalAdvance(line) <= room]
        if fitting or not lines:
            return fitting[0] if fitting else ""
        return metrics.elidedText(lines[-1], Qt.TextElideMode.ElideRight, max(room, 0))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """On the line below: why it says so."""
        if self.why is not None and self.verdicts and event.position().y() > self.height() / 2:
            self.why()
            event.accept()
        else:
            super().mouseReleaseEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().windowText().color())
        whole = self.rect().adjusted(GRID_PX // 2, 0, -GRID_PX // 2, 0)
        area, below = whole.adjusted(0, 0, 0, -whole.height() // 2), whole
        below.setTop(area.bottom())
        painter.drawText(
            below, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.verdict_shown()
        )
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


@dataclass
class Annotations:
    """What a pane was told about its image, beside the pixels."""

    patient: tuple[str, ...] = ()
    patient_masked: bool = True
    run_lines: tuple[str, ...] = ()
    placement: Placement | None = None
    not_finite: int = 0

    def compose(
        self,
        link: LinkedView,
        modality: str,
        bottom_left: tuple[str, ...],
        bar: ColourBar | None,
        scale: ScaleBar | None,
    ) -> OverlayText:
        state = link.state
        return OverlayText(
            top_left=self.shown_patient(),
            scale=scale,
            top_right=(*self.run_lines, "RESEARCH") if self.run_lines else (),
            bottom_left=bottom_left,
            bottom_right=self._bottom_right(link),
            letters=edge_letters(self.placement, state.orientation),
            bar=bar,
        )

    def shown_patient(self) -> tuple[str, ...]:
        masked = (text.MASKED,) if self.patient else ()
        return masked if self.patient_masked else self.patient

    def on_picture(
        self,
        link: LinkedView,
        name: str,
        window: str,
        bar: ColourBar | None,
        scale: ScaleBar | None,
    ) -> OverlayText:
        """What a picture that leaves the program says of itself; the corner can be chosen."""
        told = [line for line in self.run_lines if line not in name]
        lines = tuple(filter(None, (RESEARCH, name, ", ".join(told), window)))
        corners = {corner: lines if corner == link.mark_corner else () for corner in CORNERS}
        return OverlayText(
            top_left=(*self.shown_patient(), *corners["top left"]),
            top_right=corners["top right"],
            bottom_left=corners["bottom left"],
            bottom_right=corners["bottom right"],
            letters=edge_letters(self.placement, link.state.orientation),
            bar=bar,
            scale=scale,
        )

    def _bottom_right(self, link: LinkedView) -> tuple[str, ...]:
        lines = []
        if self.not_finite:
            lines.append(f"{self.not_finite} px not a number")
        if link.slice_count > 1:
            lines.append(f"Slice {link.state.slice + 1} / {link.slice_count}")
        return tuple(lines)
