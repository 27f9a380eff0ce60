"""The solver: method, its settings, prior, device, seed, presets, and the buttons to run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.forms.choices import Choices
from app.forms.fields import CalmCombo
from app.forms.form import SettingsForm
from app.forms.history import UndoValues
from app.forms.labels import rules_of
from app.forms.plain import PlainChoice
from app.forms.preset_bar import PresetBar
from app.forms.prior_picker import PriorPicker
from app.forms.rows import SentenceLabel
from app.forms.solver_model import BOTH, RunSettings, SolverModel
from app.widgets import in_column, in_row
from engine.files.presets import Preset, PresetStore


class SolverPanel(QWidget):
    """Asks how to reconstruct; Run and Run both only emit what was asked for."""

    edited = Signal()
    run_requested = Signal(dict)  # solver, settings, preset, prior, seed, device: as in Job
    run_both_requested = Signal(list)  # the same, for DC-PnPDP and for DiffPIR
    acquisition_wanted = Signal(dict)  # a preset's acquisition, for the acquisition panel

    def __init__(
        self,
        history: UndoValues | None = None,
        store: PresetStore | None = None,
        acquisition: Callable[[], dict[str, Any]] = dict,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.model = SolverModel(history, acquisition, self)
        self.history = self.model.history
        self.blocked, self.running, self.occupied = "Open data first.", False, ""
        self.may_overrule = False  # what blocks is a check of the data
        self.form: SettingsForm | None = None
        self.method_box = _box("Method", "How the image is made from the measurement.")
        self.method_box.addItem("loading…")
        self.device_box = _box("Device", "Where to compute; auto takes the fastest there is.")
        self.device_box.addItem("auto", "auto")
        self.prior_picker = PriorPicker()
        self.prior_picker.show_name("auto")
        self.plain = PlainChoice(self.model)
        self.run_form = SettingsForm(RunSettings, ("seed",), history=self.history)
        self.presets = PresetBar(store or PresetStore(), self.model.current_preset)
        self.run = QPushButton("Run")
        self.more = QToolButton()  # its menu is the window's
        self.more.setAccessibleName("Run on more slices")
        self.more.setToolTip("Run on this slice, on a range, or on the whole stack.")
        self.both = QPushButton("Run both")
        self.both.setAccessibleName("Run DC-PnPDP and DiffPIR")
        self.anyway = QPushButton("Run anyway")
        self.anyway.setToolTip(
            "Run these data although a check calls them unfit; the record says so."
        )
        self.why = SentenceLabel()
        self._build()
        self._connect()
        self._show_buttons()

    # -- what it is told ----------------------------------------------------------------------

    def set_choices(self, choices: Choices) -> None:
        """The engine has loaded: offer what it has."""
        self.model.take(choices)
        self.device_box.clear()
        for name in choices.devices:
            self.device_box.addItem(name, name)
        self.device_box.setCurrentIndex(self.device_box.findData(self.history["device"]))
        self.set_modality(self.model.modality)

    def set_modality(self, modality: str) -> None:
        """'CT' or 'MR'."""
        self.presets.set_modality(modality)
        self.model.set_modality(modality)
        choices = self.model.choices
        if choices is None:
            return
        self.method_box.clear()
        for method in self.model.methods():
            self.method_box.addItem(method.label, method.name)
            last = self.method_box.count() - 1
            self.method_box.setItemData(last, method.help, Qt.ItemDataRole.ToolTipRole)
        self.prior_picker.set_names(choices.priors[modality], modality)
        self._show_method()
        self.plain.refresh()

    def set_scan(self, views: int, pixel_mm: float | None) -> None:
        """The paper's rho rule depends on both."""
        self.model.views, self.model.pixel_mm = views, pixel_mm

    def set_blocked(self, reason: str, may_overrule: bool = False) -> None:
        """Why no run can start (no data, a wrong acquisition); empty when it can."""
        self.blocked, self.may_overrule = reason, may_overrule
        self._show_buttons()

    def set_running(self, running: bool) -> None:
        self.running = running
        self._show_buttons()

    def set_occupied(self, reason: str) -> None:
        """What else computes, so that no run can start; empty when nothing does."""
        self.occupied = reason
        self._show_buttons()

    # -- what it holds ------------------------------------------------------------------------

    def value(self) -> dict[str, Any]:
        """Everything of a Job but the input and its acquisition."""
        return self.model.value()

    def problem(self, overruled: bool = False) -> str:
        """Why Run ('Run anyway' if the checks are overruled) is disabled; empty when it is not."""
        if self.model.choices is None:
            return "The methods are still loading."
        if self.running:
            return "A run is going on: wait, finish or cancel it first."
        blocked = "" if overruled and self.may_overrule else self.blocked
        if self.occupied or blocked:
            return self.occupied or blocked
        forms = [form for form in (self.form, self.run_form) if form is not None]
        return next((form.problem() for form in forms if not form.valid), "")

    def apply_preset(self, preset: Preset) -> None:
        said = self.model.apply_preset(preset)
        self.presets.sentence.say(f"⚠ {said}" if said else "")

    # -- inside -------------------------------------------------------------------------------

    def _build(self) -> None:
        self.expert = QWidget()  # what a clinician does not see
        inner = in_column(spacing=8, margins=0, parent=self.expert)
        top, bottom = QGridLayout(), QGridLayout()
        _add_line(top, 0, "Method", self.method_box)
        _add_line(bottom, 0, "Prior", self.prior_picker)
        _add_line(bottom, 1, "Device", self.device_box)
        self.place = QVBoxLayout()  # of the form of the chosen method
        self.footer = QWidget()  # a window may take it out, to keep it in sight
        footer = in_column(spacing=4, margins=0, parent=self.footer)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        run = in_row((self.run, 1), self.more, spacing=0)
        buttons.addLayout(run, 1)
        buttons.addWidget(self.both, 1)
        footer.addLayout(buttons)
        footer.addWidget(self.why)
        footer.addWidget(self.anyway)
        inner.addWidget(self.presets)
        inner.addLayout(top)
        inner.addLayout(self.place)
        inner.addLayout(bottom)
        inner.addWidget(self.run_form)
        in_column(self.plain, self.expert, self.footer, None, spacing=8, margins=0, parent=self)
        self.set_expert(True)

    def set_expert(self, on: bool) -> None:
        """All fields, or the same in plain words."""
        self.expert.setVisible(on)
        self.both.setVisible(on)
        self.plain.setVisible(not on)

    def _connect(self) -> None:
        self.history.changed.connect(self._on_changed)
        self.run_form.edited.connect(self._on_edited)
        for name, box in (("method", self.method_box), ("device", self.device_box)):
            box.activated.connect(lambda _, n=name, b=box: self.history.set(n, b.currentData()))
        self.prior_picker.chosen.connect(lambda name: self.history.set("prior", name))
        self.presets.chosen.connect(self.apply_preset)
        self.model.acquisition_wanted.connect(self.acquisition_wanted)
        self.run.clicked.connect(lambda: self.run_requested.emit(self.model.value()))
        self.anyway.clicked.connect(
            lambda: self.run_requested.emit(self.model.value() | {"ignore_checks": True})
        )
        self.both.clicked.connect(
            lambda: self.run_both_requested.emit(self.model.values_for_both())
        )

    def _on_changed(self, names: set[str]) -> None:
        if self.model.choices is None:
            return
        if "method" in names:
            self._show_method()
        if "prior" in names:
            self.prior_picker.show_name(self.history["prior"])
        if "device" in names:
            self.device_box.setCurrentIndex(self.device_box.findData(self.history["device"]))
        shown = {*self.run_form.rows, *(self.form.rows if self.form else ())}
        mine = self.model.setting_names() | {"method", "prior", "device"}
        if (names & mine) - shown:  # the forms report their own, after they have checked it
            self._on_edited()

    def _on_edited(self) -> None:
        self._show_buttons()
        self.edited.emit()

    def _show_method(self) -> None:
        """Replace the form; the values stay in the history, so common ones carry over."""
        method = self.model.method()
        if method is None:
            return
        self.method_box.setCurrentIndex(self.method_box.findData(method.name))
        was_open = self.form is not None and self.form.more.isChecked()
        if self.form is not None:
            self.form.detach()
            self.place.removeWidget(self.form)
            self.form.hide()
            self.form.deleteLater()
        cls = method.settings_class
        self.form = SettingsForm(
            cls, cls.shown_first, rules_of(cls), then=cls.shown_next, history=self.history
        )
        self.form.more.setChecked(was_open or self.form.more.isChecked())
        self.form.edited.connect(self._on_edited)
        self.place.addWidget(self.form)
        without = "" if method.needs_prior else f"{method.label} works without a prior."
        self.prior_picker.set_reason(without)
        self._show_buttons()

    def _show_buttons(self) -> None:
        problem = self.problem()
        self.run.setEnabled(not problem)
        self.run.setToolTip(problem or "Reconstruct with these settings.")
        faults = [self.model.fault_of(name) for name in BOTH]
        both = problem or next((fault for fault in faults if fault), "")
        self.both.setEnabled(not both)
        self.both.setToolTip(
            both or "Run DC-PnPDP and DiffPIR side by side: same data, seed and NFE."
        )
        self.why.say("" if self.running else problem)
        self.anyway.setVisible(bool(problem) and not self.problem(overruled=True))
        self.presets.set_loading(problem if self.model.choices is None else "")
        unsound = self.form is None or not self.form.valid
        self.presets.set_reason((self.form.problem() if self.form else problem) if unsound else "")


def _box(name: str, tooltip: str) -> CalmCombo:
    box = CalmCombo()
    box.setAccessibleName(name)
    box.setToolTip(tooltip)
    return box


def _add_line(grid: QGridLayout, row: int, words: str, control: QWidget) -> None:
    label = QLabel(words)
    label.setBuddy(control)
    label.setMinimumWidth(64)
    grid.setHorizontalSpacing(8)
    grid.setColumnStretch(1, 1)
    grid.addWidget(label, row, 0)
    grid.addWidget(control, row, 1)
