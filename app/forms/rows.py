"""One line of a form: label, editor, and the sentence under it when the value is wrong."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QContextMenuEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QMenu, QSizePolicy, QWidget

from app.forms.fields import FieldEditor, TextLine, make_editor
from app.forms.labels import AUTOMATIC, blank_of, choice_of, label_of, text_of, unit_of
from engine.spec.settings import Settings

WIDEST = "counter-clockwise"  # of all choices: all editors of a form are as wide as this one


class SentenceLabel(QLabel):
    """Wrapping words that take the height they need, or no room at all when empty."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        self.setVisible(False)

    def say(self, sentence: str) -> None:
        self.setText(sentence)
        self.setVisible(bool(sentence))


class FieldRow(QWidget):
    """Shows one field; decides nothing."""

    reset_asked = Signal(str)

    def __init__(self, cls: type[Settings], name: str, metadata: Any) -> None:
        super().__init__()
        self.name, self.help = name, metadata["help"]
        self.unit = metadata["unit"]
        self.editor: FieldEditor = make_editor(cls, name, metadata["choices"], self.unit)
        self.label = QLabel(label_of(name))
        self.label.setWordWrap(True)
        self.label.setBuddy(self.editor.control)
        self.label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        self.editor.setFixedWidth(self.fontMetrics().horizontalAdvance(WIDEST) + 40)
        if blank_of(name) != AUTOMATIC:
            self.editor.set_placeholder(blank_of(name))
        self.sentence = SentenceLabel()
        self.sentence.setObjectName("fault")
        self.default_text = ""
        self.reason = ""
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(0, 1)
        grid.addWidget(self.label, 0, 0)
        grid.addWidget(self.editor, 0, 1)
        grid.addWidget(self.sentence, 1, 0, 1, 2)
        unit = f", {unit_of(self.unit)}" if self.unit else ""
        self.editor.control.setAccessibleName(label_of(name) + unit)
        self._describe()

    def show_value(self, value: Any, default: Any, changed: bool) -> None:
        self.editor.show_value(value)
        font = self.label.font()
        if font.bold() != changed:
            font.setBold(changed)  # what differs from the default is seen at a glance
            self.label.setFont(font)
        known = choice_of(default) if isinstance(default, str) else text_of(default)
        self.default_text = (
            f"{known} {unit_of(self.unit)}".strip() if known else blank_of(self.name)
        )
        self._describe()

    def show_fault(self, sentence: str) -> None:
        self.sentence.say(f"⚠ {sentence}" if sentence else "")
        self.editor.set_wrong(bool(sentence))
        self._describe()

    def show_reason(self, reason: str) -> None:
        """Why the field cannot be edited; empty when it can."""
        self.reason = reason
        self.editor.setEnabled(not reason)
        self.label.setEnabled(not reason)
        self._describe()

    def _describe(self) -> None:
        text = self.reason or self.help
        if self.default_text and not self.reason:
            text = f"{text} Default: {self.default_text}."
        fault = self.sentence.text()
        self.setToolTip(text)  # its children have none of their own, so they show this one
        self.editor.control.setAccessibleDescription(f"{fault} {text}".strip())

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        control = self.editor.control
        menu = control.make_menu() if isinstance(control, TextLine) else QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        action = QAction(f"Reset to the default ({self.default_text})", menu)
        action.setEnabled(self.label.font().bold() and not self.reason)
        action.triggered.connect(lambda: self.reset_asked.emit(self.name))
        menu.addSeparator()
        menu.addAction(action)
        menu.popup(event.globalPos())
