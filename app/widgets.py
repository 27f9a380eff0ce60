"""Small things that every part of the window is made of: sections, tables, tips, questions."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any, Final, TypeVar

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QTableView,
    QToolButton,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

Box = TypeVar("Box", QHBoxLayout, QVBoxLayout)
Part = QWidget | QLayout
# a part; a part and its share of what is free; a gap in pixels; or None, where what is free goes
Parts = Part | tuple[Part, int] | int | None


def in_row(
    *parts: Parts,
    spacing: int | None = None,
    margins: int | tuple[int, int, int, int] | None = None,
    parent: QWidget | None = None,
) -> QHBoxLayout:
    """Parts beside each other."""
    return _filled(QHBoxLayout(), parts, spacing, margins, parent)


def in_column(
    *parts: Parts,
    spacing: int | None = None,
    margins: int | tuple[int, int, int, int] | None = None,
    parent: QWidget | None = None,
) -> QVBoxLayout:
    """Parts below each other."""
    return _filled(QVBoxLayout(), parts, spacing, margins, parent)


def _filled(
    box: Box,
    parts: tuple[Parts, ...],
    spacing: int | None,
    margins: int | tuple[int, int, int, int] | None,
    parent: QWidget | None,
) -> Box:
    if parent is not None:
        parent.setLayout(box)
    if margins is not None:
        box.setContentsMargins(*(margins if isinstance(margins, tuple) else (margins,) * 4))
    if spacing is not None:
        box.setSpacing(spacing)
    for one in parts:
        part, share = one if isinstance(one, tuple) else (one, 0)
        if isinstance(part, QWidget):
            box.addWidget(part, share)
        elif isinstance(part, QLayout):
            box.addLayout(part, share)
        elif part is None:
            box.addStretch(1)
        else:
            box.addSpacing(part)
    return box


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


class EmptyState(QWidget):
    """Where nothing is to be seen yet: why, and buttons for what to do about it."""

    def __init__(self, words: str, *actions: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.words = QLabel(words, self)
        self.words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.words.setWordWrap(True)
        self.buttons = {name: QPushButton(name, self) for name in actions}
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addStretch(1)
        for button in self.buttons.values():
            row.addWidget(button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setSpacing(16)
        column.addStretch(1)
        column.addWidget(self.words)
        column.addLayout(row)
        column.addStretch(1)


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
TIP_GAP_PX: Final = 4


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


def tip_beside(widget: QWidget) -> None:
    """Show the tool tip above the widget, or below it, where it covers nothing of it."""
    place = widget.rect().translated(widget.mapToGlobal(QPoint(0, 0)))
    QToolTip.showText(place.bottomLeft(), widget.toolTip(), widget)
    shown = [w for w in QApplication.topLevelWidgets() if w.inherits("QTipLabel") and w.isVisible()]
    for tip in shown:
        above = place.top() - tip.height() - TIP_GAP_PX
        room = widget.screen().availableGeometry()
        tip.move(
            max(room.left(), min(place.left(), room.right() - tip.width())),
            above if above >= room.top() else place.bottom() + TIP_GAP_PX,
        )


def ask_first(
    title: str, question: str, advice: str, go_on: Callable[[], None], parent: QWidget
) -> QMessageBox:
    """A warning whose default answer is No."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setWindowTitle(title)
    box.setTextFormat(Qt.TextFormat.PlainText)  # addresses are a stranger's words
    box.setText(question)
    box.setInformativeText(advice)
    box.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.No)
    box.setDefaultButton(QMessageBox.StandardButton.No)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    yes = QMessageBox.StandardButton.Yes.value
    box.finished.connect(lambda answer: go_on() if answer == yes else None)
    box.open()
    return box


def ask_path(
    parent: QWidget | None,
    title: str,
    start: str,
    chosen: Callable[[str], Any],
    mode: QFileDialog.FileMode = QFileDialog.FileMode.Directory,
    kinds: str = "",
) -> QFileDialog:
    """The system's dialog for an existing folder or file; it does not wait for the answer."""
    dialog = QFileDialog(parent, title, start, kinds)
    dialog.setFileMode(mode)
    if mode == QFileDialog.FileMode.Directory:
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: chosen(path))
    dialog.open()
    return dialog


def ask_new_file(
    parent: QWidget, title: str, start: str, kinds: str, name: str, chosen: Callable[[str], Any]
) -> QFileDialog:
    """The system's dialog for a file to write, called like ``name`` at first."""
    dialog = QFileDialog(parent, title, start, kinds)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(name.rpartition(".")[2])
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.selectFile(name)
    dialog.fileSelected.connect(lambda path: chosen(path))
    dialog.open()
    return dialog
