"""One question about a run: its maps side by side, what they say, and how to read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QGraphicsItem,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QToolTip,
    QWidget,
)

from app.forms.rows import SentenceLabel
from app.images import colours
from app.images.display import LinkedView
from app.images.overlay import ColourBar
from app.images.pane import ImagePane
from app.images.plane import PlanePane
from app.images.text import value_text
from app.images.view import PaneView
from app.runs.store import RunEntry
from app.theme import BLUE, GRID_PX, SMALLEST_TEXT_PX, VERMILLION, RunStyle, tabular
from app.tools.trust.model import CERTIFICATE, PULL, SPLIT, SPREAD, TITLES, Reading
from app.widgets import in_column

if TYPE_CHECKING:
    from engine.runs.certificate import Certificate
    from engine.workflows.trust.slices import Answer

IMAGE, SIGNED, SIZE, OVER = "image", "signed", "size", "over"  # how a map is shown
PANES: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {  # map, how, caption
    SPLIT: (
        ("measured", IMAGE, "Measured part"),
        ("guessed", SIGNED, "Guessed part"),
        ("size", OVER, "|Guessed| over the image"),
    ),
    SPREAD: (("sd", SIZE, "SD over seeds"), ("sd", OVER, "SD over the image")),
    PULL: (("pull", SIZE, "|x − z|"), ("pull", OVER, "|x − z| over the image")),
    CERTIFICATE: (),
}


@dataclass(frozen=True)
class Subject:
    """The run and the slice of it that is looked at."""

    entry: RunEntry
    slice: int
    placement: Any = None

    @property
    def sample(self) -> int:
        return self.entry.slices.index(self.slice)


class Page(QWidget):
    """Shows an answer; asks for nothing."""

    def __init__(self, kind: str, link: LinkedView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind, self.link = kind, link
        self.answer: Answer | None = None
        self.panes: list[ImagePane] = []
        self.plot = PartsPlot()
        self.empty = QLabel()
        self.says, self.reading, self.limits = SentenceLabel(), SentenceLabel(), SentenceLabel()
        self._modality = ""
        self.setAccessibleName(TITLES[kind])
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.empty.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        bold = self.says.font()
        bold.setBold(True)
        self.says.setFont(bold)
        for label, name in (
            (self.empty, "No answer yet"),
            (self.says, "What was found"),
            (self.reading, "How to read it"),
            (self.limits, "What it cannot tell"),
        ):
            label.setAccessibleName(name)
        for label in (self.says, self.reading, self.limits):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._row = QHBoxLayout()
        self._row.setSpacing(2)
        column = in_column((self.empty, 1), spacing=8, margins=8, parent=self)
        column.addLayout(self._row, 1 if PANES[kind] else 0)
        column.addWidget(self.plot, 0 if PANES[kind] else 1)
        for label in (self.says, self.reading, self.limits):
            column.addWidget(label)
        self.show_nothing("")

    def set_reading(self, reading: Reading) -> None:
        self.reading.say(f"How to read it: {reading.how_to_read}")
        self.limits.say(f"What it cannot tell: {reading.cannot_tell}")

    def show_nothing(self, why: str) -> None:
        self.answer = None
        self.empty.setText(why)
        self.empty.show()
        self.says.say("")
        self.plot.show_certificate(None)
        for pane in self.panes:
            pane.clear()
            pane.hide()

    def show_answer(self, answer: Answer, subject: Subject) -> None:
        """Nothing is drawn again that is there already: a person may have changed its scale."""
        if answer is self.answer:
            return
        self.answer = answer
        self.empty.setVisible(not answer.maps and answer.certificate is None)
        self.empty.setText("")
        self.says.say(" ".join(answer.says))
        self.plot.show_certificate(answer.certificate)
        self._make_panes(subject.entry.modality)
        for pane, (name, _, caption) in zip(self.panes, PANES[self.kind], strict=True):
            if name in answer.maps:
                self._fill(pane, answer, name, subject)
                pane.set_caption(f"{caption}: {subject.entry.name}")
            pane.setVisible(name in answer.maps)

    def _fill(self, pane: ImagePane, answer: Answer, name: str, subject: Subject) -> None:
        entry, values = subject.entry, answer.maps[name]
        pixel = entry.pixel_mm or (1.0, 1.0)
        pane.set_run_style(RunStyle(entry.colour, tuple(entry.dash)))
        pane.set_run_lines(entry.label)
        pane.set_placement(subject.placement)
        if isinstance(pane, OverlayPane):
            assert entry.images is not None
            scale = (answer.full_scale, answer.unit)
            pane.show_map(entry.images[subject.sample], values, scale, pixel, entry.modality)
        elif isinstance(pane, PlanePane):
            pane.show_plane(values, pixel, entry.modality, answer.unit)
        else:
            pane.set_image(values, pixel, entry.modality)

    def _make_panes(self, modality: str) -> None:
        """Of MR the magnitude is shown, which has no sign: its panes are others."""
        if modality == self._modality:
            return
        self._modality = modality
        for pane in self.panes:
            self._row.removeWidget(pane)
            pane.hide()
            pane.detach()
            pane.deleteLater()
        self.panes = [self._pane(how, modality) for _, how, _ in PANES[self.kind]]
        for pane in self.panes:
            pane.maximise_requested.connect(partial(self._toggle_alone, pane))
            self._row.addWidget(pane, 1)

    def _pane(self, how: str, modality: str) -> ImagePane:
        if how == OVER:
            return OverlayPane(self.link, self)
        if how == IMAGE:
            return ImagePane(self.link, parent=self)
        return PlanePane(self.link, how == SIGNED and modality == "CT", "", self)

    def _toggle_alone(self, pane: ImagePane) -> None:
        """A double click shows one map alone, and all again."""
        alone = any(not other.isHidden() for other in self.panes if other is not pane)
        for other in self.panes:
            other.setVisible(other is pane or not alone)


USUAL: Final = QColor(BLUE)
SUSPICIOUS: Final = QColor(VERMILLION)
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


DIMMED: Final = 0.6  # of the grey image under the map


def _see_through() -> np.ndarray:
    """RGBA from nothing at all to the brightest; small values let the image through."""
    rgb = colours.DIVERGING[len(colours.DIVERGING) // 2 :]
    alpha = 255 * np.linspace(0, 1, len(rgb)) ** 0.5
    return np.column_stack([rgb, alpha.round().astype(np.uint8)])


TABLE: Final = _see_through()


class OverlayView(PaneView):
    """The map lies between the image and the markers."""

    def make_image_item(self, parent: QGraphicsItem) -> pg.ImageItem:
        item = super().make_image_item(parent)
        item.setOpacity(DIMMED)
        self.map_item = super().make_image_item(parent)
        self.map_item.setLookupTable(TABLE)
        return item


class OverlayPane(ImagePane):
    """The image has the window of all others; the map its own scale and colour bar."""

    view: OverlayView

    def __init__(self, link: LinkedView, parent: QWidget | None = None) -> None:
        self.values: np.ndarray | None = None
        self.unit, self.full_scale = "", 1.0
        super().__init__(link, parent=parent)
        self.set_colour_bar(True)

    def make_view(self) -> PaneView:
        return OverlayView(self.link, self.window_model)

    def show_map(
        self,
        image: np.ndarray,
        values: np.ndarray,
        scale: tuple[float, str],
        pixel_mm: tuple[float, float],
        modality: str,
    ) -> None:
        """``values`` of the size of ``image``; ``scale`` is where the colours end, and the unit."""
        self.values, (self.full_scale, self.unit) = values, scale
        item = self.view.map_item
        item.setVisible(True)
        item.setImage(np.ascontiguousarray(values), levels=(0.0, self.full_scale))
        self.view.place(item, pixel_mm)
        self.set_image(image, pixel_mm, modality)

    def clear(self) -> None:
        self.values = None
        self.view.map_item.clear()
        self.view.map_item.setVisible(False)
        super().clear()

    def readout(self) -> str:
        found = self.value_at(self.link.cursor) if self.link.cursor is not None else None
        if found is None or self.values is None:
            return ""
        column, row = found[1]
        value = value_text(float(self.values[row, column]), "MR")
        return f"{value} {self.unit} over {value_text(found[0], self.modality)} @ ({column}, {row})"

    def _bar(self) -> ColourBar | None:
        table = np.ascontiguousarray(TABLE[:, :3])
        return ColourBar(table, "0", value_text(self.full_scale, "MR"), self.unit)
