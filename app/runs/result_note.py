"""What is to be said about a result: metrics inside the body, verdicts, and what to do next."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QWidget

from app.runs.store import RunStore
from app.widgets import in_column, in_row
from engine.spec.numbers import regions_in_words


class ResultNote(QWidget):
    """Metrics inside the body and verdicts; hidden while there are none.

    ``compare_requested`` carries the run whose prior is doubted: the same scan without it.
    """

    compare_requested = Signal(str)
    why_requested = Signal(str)

    def __init__(self, store: RunStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.store = store
        self._run_id: str | None = None
        self.sentences = QLabel(self)
        self.sentences.setTextFormat(Qt.TextFormat.PlainText)
        self.sentences.setWordWrap(True)
        self.sentences.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.sentences.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        self.compareButton = QPushButton(self)
        self.compareButton.setAccessibleName("Compare with a method without this prior")
        self.compareButton.setToolTip(
            "Reconstruct the same scan with a method that knows no anatomy, side by side with "
            "this run."
        )
        self.compareButton.clicked.connect(self._on_clicked)
        self.whyButton = QPushButton("Where is it guessing?", self)
        self.whyButton.setAccessibleName("Why: where this run is guessing")
        self.whyButton.setToolTip("See which parts of the image were measured and which supplied.")
        self.whyButton.clicked.connect(self._on_why)
        layout = in_column(self.sentences, spacing=4, margins=0, parent=self)
        buttons = in_row(self.whyButton, self.compareButton, None, spacing=8)
        layout.addLayout(buttons)
        store.updated.connect(self._on_changed)
        store.removed.connect(self._on_changed)
        self.hide()

    def set_run(self, run_id: str | None) -> None:
        self._run_id = run_id
        self._show()

    def _show(self) -> None:
        entry = self.store.get(self._run_id) if self._run_id else None
        said = []
        if entry is not None and not entry.running:
            said = [*regions_in_words(entry.metrics), *entry.verdicts.values()]
        self.setVisible(bool(said))
        if entry is None or not said:
            return
        self.sentences.setText("\n".join([f"{entry.name}:", *said]))
        self.sentences.setAccessibleName(f"Result of {entry.name}")
        self.compareButton.setVisible(bool(entry.compare_with))
        self.compareButton.setText(f"Run {entry.compare_with.upper()} to compare")

    @Slot(str)
    def _on_changed(self, run_id: str) -> None:
        if run_id == self._run_id:
            self._show()

    @Slot()
    def _on_why(self) -> None:
        if self._run_id is not None:
            self.why_requested.emit(self._run_id)

    @Slot()
    def _on_clicked(self) -> None:
        if self._run_id is not None:
            self.compare_requested.emit(self._run_id)
