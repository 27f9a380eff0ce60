"""Small things that every part of the window is made of: sections, tables, tips, questions."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QLabel,
    QLayout,
    QLayoutItem,
    QMessageBox,
    QPushButton,
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


class FlowLayout(QLayout):
    """Widgets in a line that goes on below when the window is too narrow for all of them."""

    def __init__(self, spacing: int = 8) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # type: ignore[override]
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), move=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._place(rect, move=True)

    def sizeHint(self) -> QSize:
        sizes = [item.sizeHint() for item in self._items if not item.isEmpty()]
        across = sum(size.width() + self.spacing() for size in sizes)
        return QSize(across, max((size.height() for size in sizes), default=0))

    def minimumSize(self) -> QSize:
        sizes = [item.minimumSize() for item in self._items if not item.isEmpty()]
        return QSize(
            max((size.width() for size in sizes), default=0),
            max((size.height() for size in sizes), default=0),
        )

    def _place(self, rect: QRect, move: bool) -> int:
        """The height that it takes."""
        x, y, line = rect.x(), rect.y(), list[tuple[QLayoutItem, QRect]]()
        high = 0
        for item in (item for item in self._items if not item.isEmpty()):
            size = item.sizeHint()
            if line and x + size.width() > rect.x() + rect.width():
                self._settle(line, high, move)
                x, y, high, line = rect.x(), y + high + self.spacing(), 0, []
            high = max(high, size.height())
            line.append((item, QRect(QPoint(x, y), size)))
            x += size.width() + self.spacing()
        self._settle(line, high, move)
        return y + high - rect.y()

    @staticmethod
    def _settle(line: list[tuple[QLayoutItem, QRect]], high: int, move: bool) -> None:
        """Every widget in the middle of its line."""
        for item, place in line if move else ():
            item.setGeometry(place.translated(0, (high - place.height()) // 2))


class EmptyState(QWidget):
    """Where nothing is to be seen yet: why, and what to do about it."""

    def __init__(self, words: str, action: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.words = QLabel(words, self)
        self.words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.words.setWordWrap(True)
        self.button = QPushButton(action, self)
        self.button.setVisible(bool(action))
        column = QVBoxLayout(self)
        column.setSpacing(16)
        column.addStretch(1)
        column.addWidget(self.words)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignCenter)
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
