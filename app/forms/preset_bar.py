"""Choosing, saving and deleting presets."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from app.forms.fields import CalmCombo
from app.forms.rows import SentenceLabel
from app.widgets import in_column, in_row
from engine.files.presets import LONGEST_NAME, Preset, PresetStore, checked_name
from engine.spec.errors import DualscopeError, RequestError

HELP = "Put the values of a preset into the fields; nothing runs."


class PresetBar(QWidget):
    """A list of presets with Save and Delete; the name is asked for in place.

    Parameters
    ----------
    current : gives the preset that Save would write; its name is replaced
    """

    chosen = Signal(object)  # Preset

    def __init__(
        self,
        store: PresetStore,
        current: Callable[[], Preset],
        modality: str = "CT",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.store, self.current, self.modality = store, current, modality
        self.presets: list[Preset] = []
        self.why_not = ""
        self.combo = CalmCombo()
        self.combo.setAccessibleName("Preset")
        self.save = QPushButton("Save…")
        self.save.setAccessibleName("Save preset")
        self.delete = QPushButton("Delete")
        self.delete.setAccessibleName("Delete preset")
        self.name = QLineEdit()
        self.name.setMaxLength(LONGEST_NAME)
        self.name.setPlaceholderText("name of the preset")
        self.name.setAccessibleName("Name of the preset")
        self.name.setToolTip("Under this name the values of all fields are kept.")
        self.keep = QPushButton("Keep")
        self.sentence = SentenceLabel()
        self._build()
        self.combo.activated.connect(self._on_activated)
        self.combo.currentIndexChanged.connect(lambda: self._show_delete())
        self.save.clicked.connect(lambda: self._ask(self.asking.isHidden()))
        self.delete.clicked.connect(self._on_delete)
        self.name.textEdited.connect(lambda: self._show_name())
        self.name.returnPressed.connect(self._on_keep)
        self.keep.clicked.connect(self._on_keep)
        self.refresh()

    def set_modality(self, modality: str) -> None:
        self.modality = modality
        self.refresh()

    def set_loading(self, reason: str) -> None:
        """Why no preset can be chosen yet; empty when it can."""
        self.combo.setEnabled(not reason)
        self.combo.setToolTip(reason or HELP)

    def set_reason(self, reason: str) -> None:
        """Why nothing can be saved now; empty when it can."""
        self.why_not = reason
        self.save.setEnabled(not reason)
        self.save.setToolTip(reason or "Keep the values of all fields under a name.")

    def refresh(self, select: str = "") -> None:
        """Read the folder again."""
        self.presets = self.store.presets(self.modality)
        self.combo.clear()
        self.combo.addItem("Presets")
        for preset in self.presets:
            self.combo.addItem(preset.name)
            words = preset.words or "Saved by you."
            self.combo.setItemData(self.combo.count() - 1, words, Qt.ItemDataRole.ToolTipRole)
        self.combo.setCurrentIndex(max(0, self.combo.findText(select)) if select else 0)
        self.sentence.say("\n".join(self.store.problems))
        self._show_delete()

    def _build(self) -> None:
        column = in_column(spacing=4, margins=0, parent=self)
        first = in_row((self.combo, 1), spacing=4)
        for button in (self.save, self.delete):  # the room is for the name of the preset
            button.setMaximumWidth(button.fontMetrics().horizontalAdvance(button.text()) + 20)
            first.addWidget(button)
        self.asking = QWidget()
        in_row((self.name, 1), self.keep, spacing=4, margins=0, parent=self.asking)
        self.asking.setVisible(False)
        self.combo.setToolTip(HELP)
        column.addLayout(first)
        column.addWidget(self.asking)
        column.addWidget(self.sentence)
        self.set_reason("")

    def _selected(self) -> Preset | None:
        index = self.combo.currentIndex() - 1
        return self.presets[index] if 0 <= index < len(self.presets) else None

    def _on_activated(self) -> None:
        preset = self._selected()
        if preset is not None:
            self.chosen.emit(preset)

    def _show_delete(self) -> None:
        preset = self._selected()
        usable = preset is not None and not preset.built_in
        self.delete.setEnabled(usable)
        if usable:
            self.delete.setToolTip("Delete the chosen preset; the fields keep their values.")
        else:
            why = "Choose a preset first." if preset is None else "It comes with the program."
            self.delete.setToolTip(why)

    def _ask(self, on: bool) -> None:
        self.asking.setVisible(on)
        if on:
            self.name.clear()
            self._show_name()
            self.name.setFocus()
        else:
            self.sentence.say("")
            self.save.setFocus()

    def _show_name(self) -> None:
        """Check the name as it is typed."""
        try:
            name = checked_name(self.name.text())
        except RequestError as error:
            self.keep.setEnabled(False)
            self.keep.setToolTip(str(error))
            self.sentence.say(f"⚠ {error}" if self.name.text() else "")
            return
        known = any(preset.name == name for preset in self.presets)
        self.keep.setText("Replace" if known else "Keep")
        self.keep.setEnabled(True)
        self.keep.setToolTip("Replace the preset of this name." if known else "Save it.")
        self.sentence.say("")

    def _on_keep(self) -> None:
        if not self.keep.isEnabled() or self.why_not:
            return
        name = self.name.text().strip()
        now = self.current()
        preset = Preset(name, self.modality, now.solver, now.settings, now.acquisition)
        try:
            self.store.save(preset)
        except DualscopeError as error:
            self.sentence.say(f"⚠ {error}")
            return
        self._ask(False)
        self.refresh(name)

    def _on_delete(self) -> None:
        preset = self._selected()
        if preset is None:
            return
        try:
            self.store.delete(preset)
        except DualscopeError as error:
            self.sentence.say(f"⚠ {error}")
            return
        self.refresh()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and not self.asking.isHidden():
            self._ask(False)
        else:
            super().keyPressEvent(event)
