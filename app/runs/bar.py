"""The bar under the images while a run goes: where it is, how long, and its buttons."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QKeySequence, QResizeEvent
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QSizePolicy, QWidget

from app.background import JobPresenter, Step
from app.runs.presenter import RunPresenter
from app.runs.progress import Progress
from app.theme import GRID_PX, tabular
from app.widgets import in_row, plain_tip

IDLE: Final = "Nothing is running."
TIPS: Final = {
    "pause": "Hold the image at this iteration, and go on from it later.",
    "step": "Compute one more iteration of the image, then wait.",
    "finish": "Stop after this iteration and keep its image as the result.",
    "cancel": "Stop after this iteration; the image so far stays in the runs as cancelled.",
}
# button -> states in which it acts
ACTS: Final = {
    "pause": ("preparing", "running", "paused"),
    "step": ("running", "paused"),
    "finish": ("running", "paused"),
    "cancel": ("preparing", "running", "paused"),
}
REASONS: Final = {
    "idle": IDLE,
    "preparing": "The run is being prepared: there is no image yet.",
    "ending": "The run ends after the step it is in.",
}
KEYS: Final = {"pause": "Ctrl+P", "step": "Ctrl+.", "finish": "Ctrl+Return", "cancel": "Ctrl+Esc"}
WIDEST_TIMES: Final = "data 0000 ms  SH 0.0 ms  denoise 0000 ms"


class RunBar(QWidget):
    def __init__(self, presenter: RunPresenter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.presenter = presenter
        self.status = self._label("What is running")
        self.status.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._other = self._running = ""
        self._job: JobPresenter | None = None  # what else computes, with a progress of its own
        self.left = self._label("Time left")
        self.times = self._label("Time per step")
        self.times.setToolTip(
            "Milliseconds per iteration: data step, spectral homogenization, denoiser."
        )
        self.bar = QProgressBar(self)
        self.bar.setRange(0, 1000)
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(8)
        self.bar.setMinimumWidth(80)
        self.bar.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.bar.setAccessibleName("Progress of the run")
        self.bar.setToolTip("How much of the run is done.")
        self.buttons = {
            "pause": self._button("Pause", presenter.toggle_pause),
            "step": self._button("Step", presenter.step),
            "finish": self._button("Finish && keep", presenter.finish),
            "cancel": self._button("Cancel", self._cancel),
        }
        for name, button in self.buttons.items():
            button.setShortcut(QKeySequence(KEYS[name]))
            button.setAccessibleName(button.text().replace("&&", "and"))
        for label, widest in ((self.left, "00 min left"), (self.times, WIDEST_TIMES)):
            label.setMinimumWidth(label.fontMetrics().horizontalAdvance(widest))
        # The widest word it will show: the neighbours must not move when it changes.
        metrics = self.buttons["pause"].fontMetrics()
        self.buttons["pause"].setMinimumWidth(metrics.horizontalAdvance("Resume") + 32)

        layout = in_row(
            (self.status, 1),
            (self.bar, 1),
            self.left,
            self.times,
            spacing=8,
            margins=(8, 4, 8, 4),
            parent=self,
        )
        for button in self.buttons.values():
            layout.addWidget(button)

        presenter.progress.connect(self.show_progress)
        presenter.state_changed.connect(self.show_state)
        self.show_state(presenter.state)

    def _label(self, name: str) -> QLabel:
        label = QLabel(self)
        label.setAccessibleName(name)
        label.setFont(tabular(label.font()))
        label.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        return label

    def _button(self, text: str, act: object) -> QPushButton:
        button = QPushButton(text, self)
        button.clicked.connect(act)
        return button

    def minimumSizeHint(self) -> QSize:
        """The times give way before a button leaves the screen."""
        smallest = super().minimumSizeHint()
        if self.times.isVisible():
            smallest.setWidth(smallest.width() - self.times.minimumWidth() - GRID_PX)
        return smallest

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        rest = self.minimumSizeHint().width()
        room = self.width() - rest
        self.times.setVisible(room >= self.times.minimumWidth() + GRID_PX)

    @Slot(str)
    def set_other(self, words: str) -> None:
        """What else is being done; told while no run is going."""
        self._other = words
        if self.presenter.state == "idle" and self._job is None:
            self._say(words or IDLE)

    def follow(self, job: JobPresenter) -> None:
        """Show the progress of a job beside the runs, too, and let Cancel stop it."""
        job.stepped.connect(self._on_step)
        job.state_changed.connect(partial(self._on_job, job))

    def _on_job(self, job: JobPresenter, state: str) -> None:
        self._job = job if job.busy else None
        self.show_state(self.presenter.state)
        if self._job is not None:
            ending = state == "ending"
            self._say("Ending …" if ending else f"The {job.worker.name} is being prepared …")
            self.bar.setEnabled(True)
            self.buttons["cancel"].setEnabled(not ending)
            self.buttons["cancel"].setToolTip(f"Stop; what is finished stays. ({KEYS['cancel']})")

    @Slot(object)
    def _on_step(self, step: Step) -> None:
        if self._job is not None and self._job.state == "running":
            self._say(step.words)
            self.bar.setValue(round(1000 * step.fraction))
            self.left.setText(left_text(step.seconds_left))

    @Slot()
    def _cancel(self) -> None:
        (self._job or self.presenter).cancel()

    def _say(self, words: str) -> None:
        if words != self.status.toolTip():
            self.status.setToolTip(plain_tip(words))
            self.status.setText(words)

    @Slot(object)
    def show_progress(self, progress: Progress) -> None:
        state, self._running = self.presenter.state, progress.text
        self._say(f"Paused: {progress.text}" if state == "paused" else progress.text)
        self.bar.setValue(round(1000 * progress.fraction))
        if state not in ("ending", "paused"):  # a step that ends late tells no time any more
            self.left.setText(left_text(progress.seconds_left))
        self.times.setText(times_text(progress.ms))

    @Slot(str)
    def show_state(self, state: str) -> None:
        if state in ("idle", "preparing"):
            self._running = ""
            self._say((self._other or IDLE) if state == "idle" else "Preparing the run …")
            self.left.clear()
            self.times.clear()
            self.bar.setValue(0)
        elif state == "ending":
            self.left.setText("ending …")
        elif state == "paused":
            self._say(f"Paused: {self._running}" if self._running else "Paused.")
            self.left.setText("paused")
        elif self._running:
            self._say(self._running)
            self.left.clear()
        self.bar.setEnabled(state != "idle")
        for name, button in self.buttons.items():
            acts = state in ACTS[name]
            button.setEnabled(acts)
            tip = TIPS[name] if acts else REASONS.get(state, TIPS[name])
            button.setToolTip(f"{tip} ({KEYS[name]})")
        pause = self.buttons["pause"]
        pause.setText("Resume" if state == "paused" else "Pause")
        pause.setAccessibleName(pause.text())
        pause.setShortcut(QKeySequence(KEYS["pause"]))  # setText takes it away
        if state == "paused":
            pause.setToolTip(f"Go on from this iteration. ({KEYS['pause']})")


def left_text(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 1:
        return "< 1 s left"
    if seconds < 90:
        return f"{seconds:.0f} s left"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min left"
    return f"{seconds / 3600:.1f} h left"


def times_text(ms: dict[str, float]) -> str:
    """'data 38 ms  SH 1 ms  denoise 94 ms'."""
    names = (("data", "data"), ("sh", "SH"), ("denoiser", "denoise"))
    return "  ".join(f"{label} {_ms(ms[part])} ms" for part, label in names if part in ms)


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
