"""Where is it guessing? Four questions about the current run, in a window of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QSpinBox,
    QTabWidget,
    QWidget,
)

from app.background import Ended, JobPresenter, Step
from app.images.display import LinkedView
from app.theme import tabular
from app.tools.trust.model import SEEDS, SPREAD, TITLES, Reading
from app.tools.trust.page import Page, Subject
from app.widgets import in_column, in_row

if TYPE_CHECKING:
    from engine.workflows.trust.slices import Answer

COMPUTE_TIP: Final = "Find this out about the slice that is seen."
STOP_TIP: Final = "Stop after this iteration; seeds that are done are kept."
SEEDS_TIP: Final = "How many seeds at most; fewer are made when the map has settled."
NOTHING_YET: Final = "Press Compute to find out."
UNDER_WAY: Final = "This is being computed."
MOST_SEEDS: Final = 64
SIZE: Final = (1160, 640)


class TrustWindow(QWidget):
    """Shows what is known about a run; ``reason`` says why a question cannot be asked.

    ``time`` says how long so many seeds take.
    """

    asked = Signal(str)  # the question's kind
    help_asked = Signal()

    def __init__(
        self,
        presenter: JobPresenter,
        link: LinkedView,
        reason: Callable[[str], str],
        time: Callable[[int], str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.presenter, self.reason, self.time = presenter, reason, time
        self.setWindowTitle("Where is it guessing?")
        self.pages = {kind: Page(kind, link) for kind in TITLES}
        self.tabs = QTabWidget()
        self.head, self.status = QLabel(), QLabel()
        self.bar = QProgressBar()
        self.seeds_label, self.seeds = QLabel("Seeds"), QSpinBox()
        self.help = QPushButton("Help")
        self.stop, self.compute = QPushButton("Stop"), QPushButton("Compute")
        self._said = ""  # how the last question ended
        self._describe()
        self._build()
        self._connect()
        self.resize(*SIZE)
        self.refresh()

    # -- building ---------------------------------------------------------------------------

    def _describe(self) -> None:
        for widget, name, tip in (
            (self.tabs, "Questions about the run", ""),
            (self.head, "Run and slice", "The current run of the list, and the slice seen."),
            (self.status, "What is computed", ""),
            (self.bar, "Progress of the question", "How much of it is done."),
            (self.seeds, "Seeds", SEEDS_TIP),
            (self.help, "Help on these maps", "How far to trust a result."),
            (self.stop, "Stop", STOP_TIP),
            (self.compute, "Compute", COMPUTE_TIP),
        ):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)
        self.head.setTextFormat(Qt.TextFormat.PlainText)
        self.head.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.status.setTextFormat(Qt.TextFormat.PlainText)
        self.status.setFont(tabular(self.status.font()))
        self.status.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.status.setWordWrap(True)
        self.bar.setRange(0, 1000)
        self.bar.setTextVisible(False)
        self.bar.setFixedSize(160, 8)
        self.seeds.setRange(2, MOST_SEEDS)
        self.seeds.setValue(SEEDS)
        self.seeds_label.setBuddy(self.seeds)
        self.compute.setDefault(True)

    def _build(self) -> None:
        for kind, page in self.pages.items():
            self.tabs.addTab(page, TITLES[kind])
        foot = in_row((self.status, 1), spacing=8)
        for widget in (self.bar, self.seeds_label, self.seeds, self.help, self.stop, self.compute):
            foot.addWidget(widget)
        in_column(self.head, (self.tabs, 1), foot, spacing=8, margins=16, parent=self)

    def _connect(self) -> None:
        self.tabs.currentChanged.connect(self._on_tab)
        self.seeds.valueChanged.connect(self.refresh)
        self.compute.clicked.connect(lambda: self.asked.emit(self.kind))
        self.stop.clicked.connect(self.presenter.cancel)
        self.help.clicked.connect(self.help_asked)
        self.presenter.state_changed.connect(self._on_state)
        self.presenter.stepped.connect(self._on_step)
        QShortcut(QKeySequence.StandardKey.Close, self).activated.connect(self.close)

    # -- what is shown ----------------------------------------------------------------------

    @property
    def kind(self) -> str:
        page = self.tabs.currentWidget()
        assert isinstance(page, Page)
        return page.kind

    def choose(self, kind: str) -> None:
        self.tabs.setCurrentWidget(self.pages[kind])

    def set_readings(self, readings: Mapping[str, Reading]) -> None:
        for kind, page in self.pages.items():
            page.set_reading(readings[kind])

    def show_subject(self, subject: Subject | None, answers: Mapping[str, Answer]) -> None:
        """Another run or slice, or another answer about it."""
        words = "" if subject is None else f"{subject.entry.name}, slice {subject.slice + 1}"
        if words != self.head.text():
            self.head.setText(words)
            self._said = ""
        for kind, page in self.pages.items():
            if subject is not None and kind in answers:
                page.show_answer(answers[kind], subject)
            else:
                asked = self.presenter.request if self.presenter.busy else None
                mine = (
                    asked is not None
                    and subject is not None
                    and (asked.kind, asked.run_id, asked.slice)
                    == (kind, subject.entry.run_id, subject.slice)
                )
                nothing = UNDER_WAY if mine else NOTHING_YET
                page.show_nothing(nothing if subject is not None else "")
        self.refresh()

    def show_end(self, ended: Ended) -> None:
        if ended.sentence:
            self._said = f"⚠ {ended.sentence}"
        elif ended.status == "cancelled":
            self._said = "Stopped: what is done is kept." if ended.result else "Stopped."
        else:
            self._said = "Done."
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        busy, reason = self.presenter.busy, self.reason(self.kind)
        self.compute.setEnabled(not reason)
        self.compute.setToolTip(reason or COMPUTE_TIP)
        running = self.presenter.state == "running"
        self.stop.setEnabled(running)
        self.stop.setToolTip(STOP_TIP if running else "Nothing is being computed.")
        spread = self.kind == SPREAD
        self.seeds.setVisible(spread)
        self.seeds_label.setVisible(spread)
        self.seeds.setEnabled(not busy)
        self.bar.setVisible(busy)
        if not busy:
            self._say(reason or self._said or (self.time(self.seeds.value()) if spread else ""))

    @Slot(int)
    def _on_tab(self, index: int) -> None:
        self._said = ""
        self.refresh()

    @Slot(str)
    def _on_state(self, state: str) -> None:
        if state == "running":
            self.bar.setValue(0)
            self._say("Reading the run …")
        elif state == "ending":
            self._say("Stopping after this iteration …")
        self.refresh()

    @Slot(object)
    def _on_step(self, step: Step) -> None:
        self.bar.setValue(round(1000 * step.fraction))
        if self.presenter.state == "running":
            self._say(step.words[:1].upper() + step.words[1:] + ".")

    def _say(self, words: str) -> None:
        self.status.setText(words)
