"""A titled part of a column that folds away."""

from __future__ import annotations

import html
from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QFrame,
    QLayout,
    QScrollArea,
    QSizePolicy,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)


class Section(QWidget):
    folded_changed = Signal(bool)

    def __init__(self, title: str, body: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title, self.body = title, body
        self.head = QToolButton()
        self.head.setText(title)
        self.head.setCheckable(True)
        self.head.setChecked(True)
        self.head.setAutoRaise(True)
        self.head.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.head.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.head.setAccessibleName(f"{title}, fold or unfold")
        self.head.setToolTip(f"Fold or unfold {title.lower()}.")
        font = self.head.font()
        font.setBold(True)
        self.head.setFont(font)
        self.head.toggled.connect(self._on_toggled)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.head)
        column.addWidget(body, 1)
        self._on_toggled(True)

    @property
    def folded(self) -> bool:
        return not self.head.isChecked()

    def set_title(self, title: str) -> None:
        """Words that may change: what does not fit is cut off and widens no column."""
        self.head.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.head.setText(title)

    def set_folded(self, folded: bool) -> None:
        self.head.setChecked(not folded)

    @Slot(bool)
    def _on_toggled(self, open_: bool) -> None:
        self.head.setArrowType(Qt.ArrowType.DownArrow if open_ else Qt.ArrowType.RightArrow)
        self.body.setVisible(open_)
        self.folded_changed.emit(not open_)


def scrolled(widget: QWidget, name: str) -> QScrollArea:
    """A column that scrolls up and down, never sideways."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(widget)
    area.setAccessibleName(name)
    return area


def empty_layout(layout: QLayout) -> None:
    """Remove its widgets for good. The item that `takeAt` hands out would never be freed."""
    while (item := layout.itemAt(0)) is not None:
        widget = item.widget()
        if widget is None:
            layout.removeItem(item)
            continue
        layout.removeWidget(widget)
        widget.hide()
        widget.deleteLater()


ROW_PX: Final = 24


def plain_look(table: QTableView) -> None:
    """Striped rows of equal height without grid or row numbers; Tab leaves the table."""
    table.setShowGrid(False)
    table.setAlternatingRowColors(True)
    table.setTabKeyNavigation(False)
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(ROW_PX)
    header = table.horizontalHeader()
    header.setHighlightSections(False)
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)


# Tool tips with words from files: shown as they are, never as markup.
#
# Qt takes a tip for HTML when it looks like it, and would then load the pictures that it names,
# from other computers too.


def plain_tip(words: str) -> str:
    """The words for `setToolTip`; only what Qt would misread is changed."""
    if "<" not in words and "&lt;" not in words:
        return words
    return f"<p>{html.escape(words)}</p>".replace("\n", "<br>")
