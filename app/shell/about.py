"""About Dualscope: what it is, what it is not for, and whose work it stands on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import metadata
from typing import Any, Final

import PySide6
from PySide6.QtCore import Qt, Slot, qVersion
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

import engine
from app.shell.crash import DetailsDialog
from app.shell.icon import app_icon
from app.tasks import Tasks
from app.widgets import in_column, plain_look
from engine.audit.licences import Licence, licence_text, licences

NAME: Final = "Dualscope"
RESEARCH: Final = "Research use - not for diagnosis"
WORDS: Final = "A workstation for diffusion-prior reconstruction of CT and MRI."
LICENCE: Final = "Licence: Apache-2.0"
ICON_PX: Final = 64


def shown_versions() -> list[tuple[str, str]]:
    """Nothing is imported for this: torch takes seconds and may not be needed."""
    found = [
        ("Python", sys.version.split()[0]),
        ("Qt", qVersion()),
        ("PySide6", PySide6.__version__),
    ]
    torch = sys.modules.get("torch")
    found.append(("torch", str(getattr(torch, "__version__", "not loaded yet"))))
    return [*found, ("pydicom", metadata.version("pydicom"))]


class AboutDialog(QDialog):
    """``tasks`` reads the packages' licences in its thread; without it they are read at once."""

    def __init__(self, parent: QWidget | None = None, tasks: Tasks | None = None) -> None:
        super().__init__(parent)
        self.tasks = tasks
        self.setWindowTitle(f"About {NAME}")
        self.setAccessibleName(f"About {NAME}")
        picture = QLabel(self)
        picture.setPixmap(app_icon().pixmap(ICON_PX, ICON_PX))
        picture.setAccessibleName(f"Icon of {NAME}")
        self.name = QLabel(f"{NAME} {engine.__version__}", self)
        font = self.name.font()
        font.setPixelSize(22)
        font.setBold(True)
        self.name.setFont(font)
        self.research = QLabel(RESEARCH, self)
        bold = self.research.font()
        bold.setBold(True)
        self.research.setFont(bold)
        words = QVBoxLayout()
        words.setSpacing(4)
        for label in (self.name, QLabel(WORDS, self), QLabel(LICENCE, self), self.research):
            words.addWidget(label)
        head = QHBoxLayout()
        head.setSpacing(16)
        head.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(words, 1)

        self.table = QTableWidget(0, 3, self)
        self._prepare_table()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        close = buttons.button(QDialogButtonBox.StandardButton.Close)
        close.setToolTip("Close this window.")
        buttons.rejected.connect(self.reject)
        in_column(
            head, self._versions(), (self.table, 1), buttons, spacing=16, margins=16, parent=self
        )
        self.resize(560, 560)
        close.setFocus()
        self._start()

    def _versions(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(4)
        self.versions = {name: QLabel(number, self) for name, number in shown_versions()}
        for place, (name, label) in enumerate(self.versions.items()):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            label.setAccessibleName(f"Version of {name}")
            row, column = place % 3, 2 * (place // 3)
            grid.addWidget(QLabel(name, self), row, column)
            grid.addWidget(label, row, column + 1)
        grid.setColumnStretch(4, 1)
        return grid

    def _prepare_table(self) -> None:
        table = self.table
        table.setAccessibleName("Licences of the packages it uses")
        table.setToolTip("Packages that Dualscope uses; Enter or a double-click shows the licence.")
        table.setHorizontalHeaderLabels(["Package", "Version", "Licence"])
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        plain_look(table)
        table.setWordWrap(False)
        header = table.horizontalHeader()
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        table.setColumnWidth(0, 160)
        table.setColumnWidth(1, 96)
        table.activated.connect(lambda index: self.show_licence(index.row()))

    def _start(self) -> None:
        self._read("Reading licences", licences, self.show_list)

    def _read(self, words: str, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """In a thread when there is one; a dialog that has gone by then wants no answer."""
        if self.tasks is None:
            done(work())
        else:
            self.tasks.start(words, work, partial(self._take, done))

    def _take(self, done: Callable[[Any], None], found: Any) -> None:
        if isValid(self):
            done(found)

    @Slot(object)
    def show_list(self, found: list[Licence]) -> None:
        self.table.setRowCount(len(found))
        for row, entry in enumerate(found):
            for column, text in enumerate((entry.package, entry.version, entry.licence)):
                item = QTableWidgetItem(text)
                item.setToolTip(text)
                self.table.setItem(row, column, item)

    def show_licence(self, row: int) -> None:
        item = self.table.item(row, 0)
        if item is None:
            return
        package = item.text()
        self._read(
            "Reading a licence",
            lambda: licence_text(package),
            lambda text: self._show_text(package, text),
        )

    def _show_text(self, package: str, text: str) -> None:
        dialog = DetailsDialog(f"Licence of {package}", text, self)
        dialog.setWindowTitle(f"Licence of {package}")
        dialog.open()
