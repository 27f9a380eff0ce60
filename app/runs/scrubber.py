"""Back to any iteration of a run: a slider over the images that were kept."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLabel, QSlider, QToolButton, QWidget

from app.runs.presenter import RunPresenter
from app.runs.store import RunEntry, RunStore
from app.theme import tabular
from app.widgets import in_row

NO_RUN = "Nothing to go back to: the iterations of a run appear here."


class _Slider(QSlider):
    """End means 'live', which the plain slider does not know."""

    end_pressed = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_End:
            self.end_pressed.emit()
            event.accept()
        else:
            super().keyPressEvent(event)


class Scrubber(QWidget):
    """Follows the newest iteration until touched; End, or the live button, follows again.

    ``chosen`` carries the run, the iteration, its noise level and its images ``[B, H, W]``;
    it is silent while live, when the panes show the frames themselves.
    """

    chosen = Signal(str, int, float, object)
    live_changed = Signal(bool)

    def __init__(
        self, store: RunStore, presenter: RunPresenter | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.store = store
        self._run_id: str | None = None
        self._live = True

        self.back = self._button("Previous kept iteration", Qt.ArrowType.LeftArrow)
        self.forth = self._button("Next kept iteration", Qt.ArrowType.RightArrow)
        self.liveButton = self._button("Follow the newest iteration", Qt.ArrowType.NoArrow)
        self.liveButton.setText("Live")
        self.liveButton.setCheckable(True)
        self.liveButton.setProperty("switch", True)
        self.slider = _Slider(Qt.Orientation.Horizontal, self)
        self.slider.setAccessibleName("Iteration shown")
        self.slider.setMinimumWidth(120)
        self.text = QLabel(self)
        self.text.setAccessibleName("Iteration and noise level")
        self.text.setFont(tabular(self.text.font()))
        widest = "k = 0000/0000  σ 0.00000"
        self.text.setMinimumWidth(self.text.fontMetrics().horizontalAdvance(widest))

        in_row(
            self.back,
            (self.slider, 1),
            self.forth,
            self.liveButton,
            self.text,
            spacing=8,
            margins=(8, 4, 8, 4),
            parent=self,
        )

        self.slider.valueChanged.connect(self._on_value)
        self.slider.sliderPressed.connect(self._on_touched)
        self.slider.end_pressed.connect(self.go_live)
        self.back.clicked.connect(lambda: self.step_by(-1))
        self.forth.clicked.connect(lambda: self.step_by(+1))
        self.liveButton.clicked.connect(self.go_live)
        store.grown.connect(self._on_grown)
        store.removed.connect(self._on_removed)
        if presenter is not None:
            presenter.finished.connect(self._refresh)
            presenter.failed.connect(self._refresh)
        self._refresh()

    def _button(self, name: str, arrow: Qt.ArrowType) -> QToolButton:
        button = QToolButton(self)
        button.setArrowType(arrow)
        button.setAccessibleName(name)
        button.setMinimumSize(24, 24)
        return button

    @property
    def live(self) -> bool:
        return self._live

    @property
    def run_id(self) -> str | None:
        return self._run_id

    def set_run(self, run_id: str | None) -> None:
        """The run whose iterations the slider spans; begins live."""
        self._run_id = run_id
        self._set_live(True)
        self._refresh()

    @Slot()
    def go_live(self) -> None:
        self._set_live(True)
        self._refresh()
        self._announce()

    def step_by(self, kept: int) -> None:
        """To the previous or next iteration of which there is an image."""
        entry = self._entry()
        ks = entry.snapshots.iterations() if entry else []
        if not ks:
            return
        now = self.slider.value()
        if kept > 0:
            target = next((k for k in ks if k > now), ks[-1])
        else:
            target = next((k for k in reversed(ks) if k < now), ks[0])
        self._set_live(False)
        self._set_slider(target)
        self._show(target)

    def _entry(self) -> RunEntry | None:
        return None if self._run_id is None else self.store.get(self._run_id)

    def _set_live(self, live: bool) -> None:
        if live != self._live:
            self._live = live
            self.live_changed.emit(live)
        self.liveButton.setChecked(live)

    def _set_slider(self, k: int) -> None:
        self.slider.blockSignals(True)
        self.slider.setValue(k)
        self.slider.blockSignals(False)

    @Slot()
    def _on_touched(self) -> None:
        self._set_live(False)

    @Slot(int)
    def _on_value(self, k: int) -> None:
        """By mouse or keys: the program itself moves the slider with its signals blocked."""
        self._set_live(False)
        self._show(k)

    @Slot(list)
    def _on_grown(self, run_ids: list[str]) -> None:
        if self._run_id in run_ids:
            self._refresh()

    @Slot(str)
    def _on_removed(self, run_id: str) -> None:
        if run_id == self._run_id:
            self.set_run(None)

    @Slot()
    def _refresh(self) -> None:
        entry = self._entry()
        newest = entry.snapshots.newest() if entry else None
        for widget in (self.slider, self.back, self.forth, self.liveButton):
            widget.setEnabled(newest is not None)
        self._explain(newest is not None)
        if entry is None or newest is None:
            self.text.setText("k = –  σ –")
            return
        self.slider.blockSignals(True)
        self.slider.setRange(entry.snapshots.first, self._total(entry))
        self.slider.blockSignals(False)
        if self._live:
            self._set_slider(newest)
            self._write(entry, newest)

    def _show(self, k: int) -> None:
        entry = self._entry()
        found = entry.snapshots.at(k) if entry else None
        if entry is None or found is None:
            return
        kept, sigma, images = found
        self._write(entry, kept)
        self.chosen.emit(entry.run_id, kept, sigma, images)

    def _announce(self) -> None:
        """Back to live: the panes get the newest image even when nothing runs any more."""
        entry = self._entry()
        newest = entry.snapshots.newest() if entry else None
        if newest is not None:
            self._show(newest)

    def _write(self, entry: RunEntry, k: int) -> None:
        found = entry.snapshots.at(k)
        if found is not None:
            self.text.setText(f"k = {found[0]}/{self._total(entry)}  σ {found[1]:.3g}")

    @staticmethod
    def _total(entry: RunEntry) -> int:
        newest = entry.snapshots.newest() or 1
        return max(newest, int(entry.history.last("K") or newest))

    def _explain(self, usable: bool) -> None:
        tips = {
            self.slider: "Show the image of an earlier iteration; End follows the newest again.",
            self.back: "Show the image of the iteration before.",
            self.forth: "Show the image of the next iteration.",
            self.liveButton: "Show the newest image and keep up with the run. (End)",
        }
        for widget, tip in tips.items():
            widget.setToolTip(tip if usable else NO_RUN)
