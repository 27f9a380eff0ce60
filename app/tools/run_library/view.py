"""The window of the library: search, a table with pictures, what can be done with a run."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QItemSelectionModel, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QStackedWidget,
    QTableView,
    QWidget,
)

from app.forms.fields import CalmCombo
from app.icons import icon
from app.theme import tabular
from app.tools.run_library.model import DATA, NOTE, PICTURE_PX, LibraryModel
from app.widgets import in_column, in_row, plain_look
from engine.files.budget import size_in_words
from engine.files.run_library_entry import RUNNING, STATUSES, LibraryEntry

ROW_PX: Final = 56
ALL: Final = "Any status"
EMPTY: Final = (
    "No runs yet.\n\nEvery run is kept here by itself, with its image, its curves and its "
    "settings:\nclosing the window loses nothing."
)
NONE_FOUND: Final = "No run is like that.\n\nEvery word of the search must be found in it."
WIDEST: Final = (
    *("phantom of abdomen", "100 to 120", "360 views / 180°", "DC-PnPDP naive"),
    *("100 of 100", "finished early", "99.99", "0.999", "9999.9", "2026-01-01 00:00", "999 MiB"),
    "a remark",
)
GIB: Final = 1 << 30


class LibraryWindow(QWidget):
    """Says what a person wants; the controller does it."""

    asked = Signal()  # other words, another status
    open_wanted = Signal(list)  # LibraryEntry
    resume_wanted = Signal(object)
    delete_wanted = Signal(list)
    pin_wanted = Signal(list, bool)
    limit_changed = Signal(int)  # bytes

    def __init__(self, model: LibraryModel, most_bytes: int, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.model = model
        self.busy = ""  # why no run can go on now
        self.setWindowTitle("Library of runs")
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search data, method, views or R, note …")
        self.search.setClearButtonEnabled(True)
        self.search.addAction(icon("search"), QLineEdit.ActionPosition.LeadingPosition)
        self.status = CalmCombo()
        self.status.addItems([ALL, *STATUSES])
        self.only_open = QCheckBox("Only the open data")
        self.table = QTableView()
        self.empty = QLabel(EMPTY)
        self.space = QLabel()
        self.limit = QSpinBox()
        self.limit.setKeyboardTracking(False)
        self.limit.setRange(1, 10_000)
        self.limit.setSuffix(" GiB")
        self.limit.setValue(max(1, round(most_bytes / GIB)))
        self.pin = QPushButton("Pin")
        self.note = QPushButton("Note")
        self.delete = QPushButton("Delete")
        self.resume = QPushButton("Resume")
        self.open = QPushButton("Open")
        self.open.setDefault(True)
        self._describe()
        self._build()
        self._connect()
        self.resize_to_screen()
        self.refresh()

    # -- building ---------------------------------------------------------------------------

    def _describe(self) -> None:
        for widget, name, tip in (
            (self.search, "Search the library", "Every word must be found in a run."),
            (self.status, "Status of the runs", "Show only runs that ended like this."),
            (self.only_open, "Only the open data", "Show only runs of the data in the window."),
            (self.table, "Library of runs", "Double-click a run, or press Enter, to open it."),
            (self.space, "Space of the library", ""),
            (
                *(self.limit, "Most space of the library"),
                "When more is needed, the oldest runs go that are neither pinned nor open.",
            ),
        ):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)
        table = self.table
        table.setModel(self.model)
        table.setFont(tabular(table.font()))
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        table.setIconSize(QSize(PICTURE_PX, PICTURE_PX))
        table.setWordWrap(False)
        plain_look(table)
        table.verticalHeader().setDefaultSectionSize(ROW_PX)
        metrics = table.fontMetrics()
        for column, widest in enumerate(WIDEST):
            table.setColumnWidth(column, metrics.horizontalAdvance(widest) + 20)
        table.setColumnWidth(DATA, table.columnWidth(DATA) + PICTURE_PX + 8)
        table.horizontalHeader().setStretchLastSection(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.space.setFont(tabular(self.space.font()))

    def _build(self) -> None:
        head = in_row((self.search, 1), self.status, self.only_open, spacing=8)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self.table)
        most = QLabel("Keep at most")
        most.setBuddy(self.limit)
        foot = in_row(self.space, 16, most, self.limit, None, spacing=8)
        for button in (self.pin, self.note, self.delete, self.resume, self.open):
            button.setAccessibleName(f"{button.text()} the selected runs")
            foot.addWidget(button)
        in_column(head, (self.pages, 1), foot, spacing=16, margins=16, parent=self)

    def _connect(self) -> None:
        self.search.textChanged.connect(self.asked)
        self.status.currentIndexChanged.connect(self.asked)
        self.only_open.toggled.connect(self.asked)
        self.limit.valueChanged.connect(lambda gib: self.limit_changed.emit(gib * GIB))
        self.model.modelReset.connect(self.refresh)
        self.model.dataChanged.connect(self.refresh)
        self.table.selectionModel().selectionChanged.connect(self.refresh)
        self.table.doubleClicked.connect(lambda _: self._on_open())
        self.search.returnPressed.connect(self.focus_table)
        self.open.clicked.connect(self._on_open)
        self.resume.clicked.connect(lambda: self.resume_wanted.emit(self.selected()[0]))
        self.delete.clicked.connect(self._on_delete)
        self.note.clicked.connect(self._on_note)
        self.pin.clicked.connect(self._on_pin)
        for keys, widget, act in (
            (QKeySequence.StandardKey.Delete, self.table, self._on_delete),
            (QKeySequence(Qt.Key.Key_Return), self.table, self._on_open),
            (QKeySequence(Qt.Key.Key_Enter), self.table, self._on_open),
            (QKeySequence.StandardKey.Find, self, self.search.setFocus),
            (QKeySequence.StandardKey.Close, self, self.close),
            (QKeySequence(Qt.Key.Key_Escape), self, self.close),
        ):
            shortcut = QShortcut(keys, widget)
            if widget is self.table:
                shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(act)

    def resize_to_screen(self) -> None:
        room = self.screen().availableSize()
        self.resize(min(1280, room.width()), min(720, room.height() - 40))

    def changeEvent(self, event: QEvent) -> None:
        """What another window has done meanwhile is seen on coming back."""
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.asked.emit()
        super().changeEvent(event)

    # -- what is shown ----------------------------------------------------------------------

    def filters(self) -> tuple[str, tuple[str, ...], bool]:
        """The words, the statuses and whether only runs of the open data are asked for."""
        row = self.status.currentIndex()
        return (
            self.search.text(),
            STATUSES[row - 1 : row] if row else (),
            self.only_open.isChecked(),
        )

    def show_entries(self, entries: list[LibraryEntry], count: int, used: int) -> None:
        """Those found of ``count`` runs, which take ``used`` bytes together."""
        chosen = {entry.id for entry in self.selected()}
        self.model.show(entries)
        self.pages.setCurrentWidget(self.table if entries else self.empty)
        self.empty.setText(NONE_FOUND if count else EMPTY)
        runs = "1 run" if count == 1 else f"{count:,} runs"
        self.space.setText(f"{runs}, {size_in_words(used)}")
        if not self.selected():
            self._select(chosen)
        self.refresh()

    def _select(self, chosen: set[str]) -> None:
        """What was selected before; the newest run at first."""
        selection = self.table.selectionModel()
        how = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
        rows = [row for row, entry in enumerate(self.model.entries) if entry.id in chosen]
        for row in rows or [0][: len(self.model.entries)]:
            selection.select(self.model.index(row, 0), how)
            selection.setCurrentIndex(
                self.model.index(row, 0), QItemSelectionModel.SelectionFlag.NoUpdate
            )

    def selected(self) -> list[LibraryEntry]:
        rows = sorted(index.row() for index in self.table.selectionModel().selectedRows())
        return [self.model.entries[row] for row in rows if row < len(self.model.entries)]

    @Slot()
    def focus_table(self) -> None:
        self.table.setFocus()

    def set_busy(self, reason: str) -> None:
        self.busy = reason
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Which buttons can be pressed, and why the others cannot."""
        chosen = self.selected()
        none = "" if chosen else "Select a run first."
        ended = [entry for entry in chosen if entry.status != RUNNING]
        pinned = bool(chosen) and all(entry.pinned for entry in chosen)
        self.pin.setText("Unpin" if pinned else "Pin")
        resume = none or self.busy
        if not resume and len(chosen) > 1:
            resume = "One run at a time can go on: select only one."
        if not resume and not chosen[0].resumable:
            resume = "Only a run that was interrupted, cancelled or finished early can go on."
        single = none or ("" if len(chosen) == 1 else "Select only one run to write its note.")
        going = none or ("" if ended else "A run can be deleted when it has ended.")
        for button, reason, tip in (
            (self.open, none, "Show the run with its image, curves and iterations. (Enter)"),
            (self.resume, resume, "Open its data and compute the rest of the run."),
            (self.delete, going, "Delete the runs and free their space. (Delete)"),
            (self.note, single, "Write a remark. (F2)"),
            (self.pin, none, "Keep the runs whatever the space, or no longer."),
        ):
            button.setEnabled(not reason)
            button.setToolTip(reason or tip)

    # -- what is wanted ---------------------------------------------------------------------

    @Slot()
    def _on_open(self) -> None:
        if chosen := self.selected():
            self.open_wanted.emit(chosen)

    @Slot()
    def _on_delete(self) -> None:
        if chosen := [entry for entry in self.selected() if entry.status != RUNNING]:
            self.delete_wanted.emit(chosen)

    @Slot()
    def _on_note(self) -> None:
        index = self.table.selectionModel().selectedRows()[0].siblingAtColumn(NOTE)
        self.table.scrollTo(index)
        self.table.setCurrentIndex(index)
        self.table.edit(index)

    @Slot()
    def _on_pin(self) -> None:
        if chosen := self.selected():
            self.pin_wanted.emit(chosen, not all(entry.pinned for entry in chosen))
