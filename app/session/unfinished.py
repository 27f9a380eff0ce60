"""Runs that were cut short: go on with one, forget it, or decide later."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.workspace.autosave import Unfinished

INTRO = (
    "Dualscope did not end properly while these were running. Each can go on from where it "
    "was saved; nothing of it is lost until you forget it."
)


class UnfinishedDialog(QDialog):
    resume_asked = Signal(object)  # Unfinished
    forget_asked = Signal(object)

    def __init__(self, runs: Sequence[Unfinished], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Unfinished runs")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        intro = QLabel(INTRO)
        intro.setWordWrap(True)
        self.list = QListWidget()
        self.list.setAccessibleName("Unfinished runs")
        self.list.setToolTip("Choose the run to go on with or to forget.")
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        for run in runs:
            item = QListWidgetItem(f"{run.words}, {run.input_name}")
            item.setData(Qt.ItemDataRole.UserRole, run)
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        self.resume = QPushButton("Go on")
        self.resume.setToolTip("Open its data and compute the rest of the run.")
        self.resume.setDefault(True)
        self.forget = QPushButton("Forget")
        self.forget.setToolTip("Delete what was saved of the chosen run.")
        self.later = QPushButton("Later")
        self.later.setToolTip("Keep everything; this is asked again at the next start.")
        buttons = QHBoxLayout()
        buttons.addWidget(self.forget)
        buttons.addStretch(1)
        buttons.addWidget(self.later)
        buttons.addWidget(self.resume)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(intro)
        column.addWidget(self.list, 1)
        column.addLayout(buttons)
        self.resume.clicked.connect(self._on_resume)
        self.forget.clicked.connect(self._on_forget)
        self.later.clicked.connect(self.reject)
        self.list.itemActivated.connect(self._on_resume)
        self.resize(480, 280)

    def _chosen(self) -> Unfinished | None:
        item = self.list.currentItem()
        return item.data(Qt.ItemDataRole.UserRole) if item is not None else None

    @Slot()
    def _on_resume(self) -> None:
        run = self._chosen()
        if run is not None:
            self.accept()
            self.resume_asked.emit(run)

    @Slot()
    def _on_forget(self) -> None:
        run = self._chosen()
        if run is not None:
            self.list.takeItem(self.list.currentRow())
            self.forget_asked.emit(run)
        if not self.list.count():
            self.accept()
