"""A volume to look at: three linked cuts, what they show, and the figures along each axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QButtonGroup,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QSizePolicy,
    QTableView,
    QToolButton,
    QWidget,
)

from app.background import Table
from app.images.text import unit_of
from app.images.tools import ToolButtons
from app.images.window_level import WindowBox, WindowLevel
from app.theme import tabular
from app.tools.table_window import ResultsModel
from app.tools.volume.panes import CutPanes
from app.tools.volume.slab_box import SlabBox
from app.tools.volume.source import AXES, DIFFERENCE, REFERENCE, RESULT, Facts
from app.widgets import ROW_PX, in_column, in_row, plain_look, plain_tip

SIZE: Final = (1200, 860)
WHATS: Final = {
    RESULT: ("Result", "Show the reconstruction."),
    REFERENCE: ("Reference", "Show the true image that the scan was simulated from."),
    DIFFERENCE: ("Difference", "Show result − reference with a scale of its own."),
}
NO_REFERENCE: Final = "This volume was measured, not simulated: there is no true image of it."
READING: Final = "Reading the volume …"
A, B = "A", "B"
COMPARE_TIP: Final = "Choose another volume of the same size, and see both in turn: keys A and B."
MOUSE: Final = "Click, or drag the crosshair: all cuts follow. Wheel: slices. Left drag: window."


class VolumeViewer(QWidget):
    """Shows what it is given; ``letter`` and ``what`` say which cuts it would like to have."""

    wanted = Signal()  # other cuts than those that are shown
    compare_asked = Signal()
    export_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setWindowTitle("Volume")
        self.letter, self.what = A, RESULT
        self.facts: dict[str, Facts] = {}
        self.first_window: Callable[[Facts], WindowLevel | None] = lambda facts: None
        self.panes = CutPanes()
        self.table = FiguresTable()
        self.window_box = WindowBox(self.panes.window_model, lambda: self.panes.panes[0].image)
        self.tools = ToolButtons(self.panes.links[0])
        self.slab = SlabBox()
        self.title, self.notes = QLabel(), QLabel()
        self.whats = {key: self._switch(*words) for key, words in WHATS.items()}
        self.letters = {
            key: self._switch(key, f"Show volume {key}, in the same place. (key {key})")
            for key in (A, B)
        }
        self.compare, self.export = QPushButton("Compare with…"), QPushButton("Export…")
        self._describe()
        self._build()
        self._connect()
        self.resize(*SIZE)
        self._refresh()

    # -- building ---------------------------------------------------------------------------

    def _switch(self, name: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setText(name)
        button.setCheckable(True)
        button.setProperty("switch", True)
        button.setAccessibleName(f"Show {name}")
        button.setToolTip(tip)
        return button

    def _describe(self) -> None:
        for widget, name, tip in (
            (self.title, "Volume and method", ""),
            (self.notes, "Notes on the volume", ""),
            (self.compare, "Compare with another volume", COMPARE_TIP),
            (self.export, "Export the volume", "Write it as DICOM, NIfTI or NumPy."),
        ):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)
        for label in (self.title, self.notes):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            label.setFont(tabular(label.font()))
        self.notes.setWordWrap(True)

    def _build(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(4)
        for buttons in (self.whats, self.letters):
            group = QButtonGroup(self)
            for button in buttons.values():
                group.addButton(button)
                bar.addWidget(button)
            bar.addSpacing(12)
        bar.addWidget(self.window_box)
        bar.addSpacing(12)
        bar.addWidget(self.tools)
        bar.addSpacing(12)
        bar.addWidget(self.slab)
        bar.addSpacing(12)
        bar.addWidget(self.title, 1)
        bar.addWidget(self.compare)
        bar.addWidget(self.export)
        foot = in_row(self.table, (self.notes, 1), spacing=16)
        in_column(bar, (self.panes, 1), foot, spacing=8, margins=8, parent=self)

    def _connect(self) -> None:
        for what, button in self.whats.items():
            button.clicked.connect(partial(self.show_what, what))
        for letter, button in self.letters.items():
            button.clicked.connect(partial(self.show_letter, letter))
            QShortcut(QKeySequence(letter), self).activated.connect(
                partial(self.show_letter, letter)
            )
        self.panes.moved.connect(self.wanted)
        self.slab.changed.connect(self._on_slab)
        for other in self.panes.links[1:]:
            self.panes.links[0].tool_changed.connect(other.set_tool)
            other.tool_changed.connect(self.panes.links[0].set_tool)
        for keys, act in (
            (QKeySequence.StandardKey.Undo, self.panes.undo.undo),
            (QKeySequence.StandardKey.Redo, self.panes.undo.redo),
        ):
            QShortcut(QKeySequence(keys), self).activated.connect(act)
        self.compare.clicked.connect(self.compare_asked)
        self.export.clicked.connect(self.export_asked)
        for link in self.panes.links:
            link.notice.connect(self.notes.setText)
        QShortcut(QKeySequence.StandardKey.Close, self).activated.connect(self.close)

    # -- what is shown ----------------------------------------------------------------------

    def set_facts(self, facts: Mapping[str, Facts]) -> None:
        """The volumes to show; those that are known already may have more slices."""
        before = self.facts.get(A)
        self.facts = dict(facts)
        first = self.facts[A]
        if self.letter not in self.facts:
            self.letter = A
        fresh = before is None or (before.folder, before.shape) != (first.folder, first.shape)
        if fresh:
            self.panes.clear(READING)
            self.panes.set_reading_step(first.reading_step)
            self.panes.window_model.forget()
            window = self.first_window(first)
            if window is not None:
                self.panes.window_model.restore(first.modality, window)
            middle = sorted(first.stored or [first.shape[0] // 2])
            start = (middle[len(middle) // 2], first.shape[1] // 2, first.shape[2] // 2)
            self.panes.set_volume(first.cuts, first.shape, start)
        self._refresh()
        self.wanted.emit()

    def clear(self, words: str) -> None:
        self.facts = {}
        self.panes.clear(words)
        self._refresh()

    @Slot()
    def _on_slab(self) -> None:
        self.panes.set_slab(self.slab.value)
        self.wanted.emit()

    @Slot()
    def show_what(self, what: str) -> None:
        self.what = what
        self._refresh()
        self.wanted.emit()

    @Slot()
    def show_letter(self, letter: str) -> None:
        if letter in self.facts:
            self.letter = letter
            self._refresh()
            self.wanted.emit()

    @property
    def shown(self) -> Facts | None:
        return self.facts.get(self.letter)

    def show_cuts(self, what: str, pictures: Sequence[np.ndarray]) -> None:
        facts = self.shown
        if facts is not None:
            several = f"{self.letter}: " if len(self.facts) > 1 else ""
            method = facts.words.split(", ")[0]
            lines = () if what == REFERENCE else (f"{several}{method}",)
            number = facts.numbers[self.panes.voxel[0]]
            self.panes.show_cuts(what, pictures, facts.modality, (*lines, *self.slab.words()))
            if facts.numbers[0] or facts.numbers[-1] != facts.shape[0] - 1:  # a part of a series
                self.panes.name_slice(f"slice {number + 1} of the series")

    def _refresh(self) -> None:
        facts = self.shown
        truth = facts is not None and facts.has_reference
        if not truth:
            self.what = RESULT
        for what, button in self.whats.items():
            button.setEnabled(facts is not None and (what == RESULT or truth))
            button.setToolTip(WHATS[what][1] if what == RESULT or truth else NO_REFERENCE)
            button.setChecked(what == self.what)
        for number, what in enumerate((RESULT, REFERENCE)):
            self.whats[what].setText(facts.names[number] if facts is not None else WHATS[what][0])
        for what in (REFERENCE, DIFFERENCE):
            self.whats[what].setVisible(facts is None or facts.exportable or truth)
        for letter, button in self.letters.items():
            button.setVisible(len(self.facts) > 1)
            button.setChecked(letter == self.letter)
        complete = facts is not None and len(facts.stored) == facts.shape[0]
        self.export.setVisible(facts is None or facts.exportable)
        self.export.setEnabled(complete)
        self.export.setToolTip(
            "Write it as DICOM, NIfTI or NumPy." if complete else "Not all slices are stored yet."
        )
        self.compare.setEnabled(facts is not None)
        self.table.show_figures(self.facts)
        if facts is None:
            return
        several = f"{self.letter}: " if len(self.facts) > 1 else ""
        self.title.setText(several + facts.words)
        self.title.setToolTip(plain_tip(f"{facts.words}\n{facts.folder}"))
        self.notes.setText(" ".join([*facts.notes, MOUSE]))
        self.setWindowTitle(f"{facts.title} - Volume")


TIP: Final = (
    "Mean PSNR and SSIM over all planes of each direction, in the profile of the modality.\n"
    "Axial figures cannot see slices that disagree; coronal and sagittal ones can.\n"
    "Flicker is the part of the error that changes from slice to slice: 0 when all slices have "
    "the same error. Without a reference anatomy adds to it: compare it between "
    "reconstructions of the same volume only."
)


class FiguresTable(QTableView):
    """One row per volume; hidden while nothing is measured."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.figures = ResultsModel(self)
        self.setModel(self.figures)
        self.setFont(tabular(self.font()))
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setAccessibleName("Figures along the axes")
        self.setToolTip(TIP)
        plain_look(self)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)

    def show_figures(self, volumes: Mapping[str, Facts]) -> None:
        self.figures.show_table(table_of(volumes))
        rows = len(self.figures.table.rows)
        self.setVisible(rows > 0)
        height = self.horizontalHeader().sizeHint().height() + rows * ROW_PX
        self.setFixedHeight(height + 2 * self.frameWidth())
        self.setFixedWidth(self.horizontalHeader().length() + 2 * self.frameWidth())


def table_of(volumes: Mapping[str, Facts]) -> Table:
    first = next(iter(volumes.values()), None)
    if first is None:
        return Table()
    names = [cut.name.lower() for cut in first.cuts] if first.cuts[0].placement else list(AXES)
    rows = []
    for letter, facts in volumes.items():
        if (found := facts.figures) is None:
            continue
        pairs = ("" if pair is None else f"{pair[0]:.2f} dB, {pair[1]:.4f}" for pair in found.axes)
        unit = unit_of(facts.modality)
        flicker = "" if found.flicker is None else f"{found.flicker:.3g} {unit}"
        rows.append((letter, *pairs, flicker))
    headings = ("", *(f"{name} PSNR, SSIM" for name in names), "flicker along z")
    return Table(headings, tuple(rows), frozenset({0}))
