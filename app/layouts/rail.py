"""A column beside the images that folds to a strip."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QSizePolicy,
    QWidget,
)

from app.icons import SIDE, icon
from app.theme import GRID_PX
from app.widgets import in_row

WIDEST: Final = 16777215  # Qt's own word for 'no limit'


class Strip(QAbstractButton):
    """A narrow button along the edge, its words turned by a quarter."""

    def __init__(self, title: str, picture: str, keys: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(title)
        self.setIcon(icon(picture))
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(f"{title}, fold or unfold")
        self.setToolTip(f"Fold or unfold {title.lower()}. ({keys})")

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Enter, QEvent.Type.Leave):
            self.update()
        return super().event(event)

    def sizeHint(self) -> QSize:
        return QSize(max(3 * GRID_PX, self.fontMetrics().height() + GRID_PX // 2), 8 * GRID_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        palette = self.palette()
        if self.underMouse() or self.hasFocus():
            painter.fillRect(self.rect(), palette.midlight())
        top = GRID_PX + (self.width() - SIDE) // 2
        self.icon().paint(painter, (self.width() - SIDE) // 2, top, SIDE, SIDE)
        painter.setPen(palette.windowText().color())
        painter.rotate(90)
        painter.translate(0, -self.width())
        start = top + SIDE + GRID_PX
        room = max(self.height() - start - GRID_PX, 0)
        words = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, room)
        middle = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(start, 0, room, self.width(), middle, words)
        painter.end()


class Rail(QWidget):
    """``content`` with its strip at the outer edge; folded only the strip is left."""

    folded_changed = Signal(bool)

    def __init__(self, title: str, content: QWidget, side: str, keys: str, usual_px: int) -> None:
        super().__init__()
        self.content, self.open_px = content, usual_px
        self.strip = Strip(title, f"rail-{side}", keys)
        row = in_row(spacing=0, margins=0, parent=self)
        for part in (self.strip, content) if side == "left" else (content, self.strip):
            row.addWidget(part)
        self.strip.clicked.connect(lambda: self.set_folded(not self.folded))

    @property
    def folded(self) -> bool:
        return self.content.isHidden()

    @property
    def wanted_px(self) -> int:
        return self.strip.sizeHint().width() if self.folded else self.open_px

    @Slot(bool)
    def set_folded(self, folded: bool) -> None:
        if folded == self.folded:
            return
        if folded:
            self.open_px = self.width()
        self.content.setVisible(not folded)
        self.setMaximumWidth(self.strip.sizeHint().width() if folded else WIDEST)
        self.strip.setChecked(folded)
        self.folded_changed.emit(folded)
