"""A window that asks on the left, starts and stops below, and shows a table that fills."""

from __future__ import annotations

from typing import Any, Final

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
    QUrl,
    Signal,
    Slot,
)
from PySide6.QtGui import QDesktopServices, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QTableView,
    QWidget,
)

from app.background import Begun, Ended, JobPresenter, Step, Table
from app.forms.rows import SentenceLabel
from app.runs.bar import left_text
from app.theme import tabular
from app.widgets import in_column, in_row, plain_look, plain_tip

WIDEST_PX: Final = 400  # of a column: why something failed may be a long sentence


class TableWindow(QWidget):
    """Shows what a `JobPresenter` tells; closing it lets the work go on.

    A subclass makes the ``panel`` (with a ``changed`` signal and a ``value()`` that names the
    ``folder`` of the results), has words of its own, and may put more beside the table.
    """

    started = Signal(object)  # what the panel holds

    TITLE = ""
    EMPTY = ""
    START_TIP = ""
    CANCEL_TIP = ""
    TABLE_TIP = ""
    THING = ""  # what is going on
    CASES = "cases"  # what it is counted in
    READING = "Reading the inputs …"
    FIRST = ""  # said when the inputs are read
    CANCELLED = "Cancelled: what is done is kept, and Start goes on from there."
    SIZE = (1200, 660)
    ENDING = "Ending after this iteration …"

    def __init__(self, presenter: JobPresenter, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.presenter = presenter
        self.setWindowTitle(self.TITLE)
        self.panel: Any = self.make_panel()
        self.model = ResultsModel(self)
        self.table = QTableView()
        self.empty = QLabel(self.EMPTY)
        self.notes = SentenceLabel()
        self.status, self.left = QLabel(), QLabel()
        self.bar = QProgressBar()
        self.start, self.cancel = QPushButton("Start"), QPushButton("Cancel")
        self.open_folder = QPushButton("Open folder")
        self._folder = ""  # of what is shown
        self._describe()
        self._build()
        self._connect()
        self.resize(*self.SIZE)
        self._refresh()

    def make_panel(self) -> Any:
        raise NotImplementedError

    def beside_table(self) -> QWidget:
        """The table with what else the window shows."""
        return self.pages

    def buttons(self) -> list[QPushButton]:
        """Below, from left to right."""
        return [self.open_folder, self.cancel, self.start]

    # -- building ---------------------------------------------------------------------------

    def _describe(self) -> None:
        for widget, name, tip in (
            (self.table, "Results", self.TABLE_TIP),
            (self.bar, f"Progress of the {self.THING}", f"How much of the {self.THING} is done."),
            (self.status, "What is computed", ""),
            (self.left, "Time left", "Estimated from what was computed so far."),
            (self.notes, f"Notes on the {self.THING}", ""),
            (self.start, "Start", self.START_TIP),
            (self.cancel, "Cancel", self.CANCEL_TIP),
            (self.open_folder, "Open folder", "Show the written files in the file manager."),
        ):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)
        self.table.setModel(self.model)
        self.table.setFont(tabular(self.table.font()))
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.table.setWordWrap(False)
        plain_look(self.table)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.empty.setFrameShape(QFrame.Shape.StyledPanel)
        self.bar.setRange(0, 1000)
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(8)
        self.bar.setFixedWidth(160)
        for label in (self.status, self.left):
            label.setFont(tabular(label.font()))
            label.setTextFormat(Qt.TextFormat.PlainText)  # files are named as anybody likes
        self.status.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.left.setMinimumWidth(self.left.fontMetrics().horizontalAdvance("00 min left"))
        self.start.setDefault(True)

    def _build(self) -> None:
        self.pages = QStackedWidget()
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self.table)
        right = in_column(self.notes, (self.beside_table(), 1), spacing=8)
        body = in_row(self.panel, (right, 1), spacing=16)
        foot = in_row((self.status, 1), self.bar, self.left, *self.buttons(), spacing=8)
        in_column((body, 1), foot, spacing=16, margins=16, parent=self)

    def _connect(self) -> None:
        self.panel.changed.connect(self._refresh)
        self.start.clicked.connect(lambda: self.started.emit(self.panel.value()))
        self.cancel.clicked.connect(self.presenter.cancel)
        self.open_folder.clicked.connect(self._on_open_folder)
        presenter = self.presenter
        presenter.state_changed.connect(self._on_state)
        presenter.blocked_changed.connect(self._refresh)
        presenter.begun.connect(self._on_begun)
        presenter.stepped.connect(self._on_step)
        presenter.table_changed.connect(self._on_table)
        presenter.ended.connect(self._on_ended)
        QShortcut(QKeySequence.StandardKey.Close, self).activated.connect(self.close)

    # -- what happens -----------------------------------------------------------------------

    @Slot(str)
    def _on_state(self, state: str) -> None:
        if state == "running":
            self.model.show_table(Table())
            self.pages.setCurrentWidget(self.empty)
            self.notes.say("")
            self.bar.setValue(0)
            self.left.clear()
            self._folder = self.panel.value().folder
            self.clear()
            self._say(self.READING)
        elif state == "ending":
            self._say(self.ENDING)
        self._refresh()

    def clear(self) -> None:
        """Another one begins: what a subclass shows of the last one goes."""

    @Slot(object)
    def _on_begun(self, begun: Begun) -> None:
        notes = list(begun.notes)
        if begun.done:
            notes.insert(0, f"{begun.done} of {begun.cases} {self.CASES} are done already.")
        self.notes.say(" ".join(notes))
        self._say(self.FIRST)

    @Slot(object)
    def _on_step(self, step: Step) -> None:
        self.bar.setValue(round(1000 * step.fraction))
        if self.presenter.state == "running":
            self._say(step.words)
            self.left.setText(left_text(step.seconds_left))

    @Slot(object)
    def _on_table(self, table: Table) -> None:
        before = self.model.columnCount()
        self.model.show_table(table)
        self.pages.setCurrentWidget(self.table if table.rows else self.empty)
        if self.model.columnCount() != before:
            self._fit_columns()
        self.follow()

    def follow(self) -> None:
        """Keep what is new in sight."""
        self.table.scrollToBottom()

    def _fit_columns(self) -> None:
        self.table.resizeColumnsToContents()
        for column in range(self.model.columnCount()):
            width = min(self.table.columnWidth(column) + 12, WIDEST_PX)
            self.table.setColumnWidth(column, width)

    @Slot(object)
    def _on_ended(self, ended: Ended) -> None:
        self.left.clear()
        if ended.status == "failed":
            self._say(f"⚠ {ended.sentence}")
            return
        self._fit_columns()
        self.conclude(ended)
        if ended.status == "done":
            self.bar.setValue(self.bar.maximum())
        self._say(ended.sentence or ("Done." if ended.status == "done" else self.CANCELLED))

    def conclude(self, ended: Ended) -> None:
        """It has ended well: what a subclass shows besides the table."""

    @Slot()
    def _on_open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(self._folder))

    @Slot()
    def _refresh(self) -> None:
        busy, reason = self.presenter.busy, self.presenter.reason(self.panel.value())
        self.panel.setEnabled(not busy)
        self.start.setEnabled(not reason)
        self.start.setToolTip(reason or self.START_TIP)
        running = self.presenter.state == "running"
        self.cancel.setEnabled(running)
        self.cancel.setToolTip(self.CANCEL_TIP if running else "Nothing is going on to cancel.")
        self.open_folder.setEnabled(bool(self._folder) and not busy)
        if not busy and not self._folder:
            self._say(reason)

    def _say(self, words: str) -> None:
        self.status.setText(words)
        self.status.setToolTip(plain_tip(words))


Index = QModelIndex | QPersistentModelIndex
_ROLE = Qt.ItemDataRole
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class ResultsModel(QAbstractTableModel):
    """Rows grow while the columns stay; new columns begin the table again."""

    table = Table()

    def show_table(self, table: Table) -> None:
        old, more = len(self.table.rows), len(table.rows)
        if table.headings != self.table.headings or more < old:
            self.beginResetModel()
            self.table = table
            self.endResetModel()
            return
        if more > old:
            self.beginInsertRows(QModelIndex(), old, more - 1)
        self.table = table
        if more > old:
            self.endInsertRows()
        if old:
            self.dataChanged.emit(self.index(0, 0), self.index(old - 1, self.columnCount() - 1))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.table.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.table.headings)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == _ROLE.DisplayRole:
            return self.table.headings[section]
        return self._alignment(section) if role == _ROLE.TextAlignmentRole else None

    def data(self, index: Index, role: int = _ROLE.DisplayRole) -> Any:
        if role in (_ROLE.DisplayRole, _ROLE.ToolTipRole):
            text = self.table.rows[index.row()][index.column()]
            return plain_tip(text) if role == _ROLE.ToolTipRole else text
        return self._alignment(index.column()) if role == _ROLE.TextAlignmentRole else None

    def _alignment(self, column: int) -> Qt.AlignmentFlag:
        return _LEFT if column in self.table.worded else _RIGHT
