"""A line to find words with; the window that has it does the finding."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QLabel, QLineEdit, QToolButton, QWidget

from app.widgets import in_row


class FindBar(QWidget):
    """Enter for the next place, Shift+Enter for the one before; Ctrl+F puts the cursor here."""

    wanted = Signal(str, bool)  # words, whether backwards
    typed = Signal(str)

    def __init__(self, what: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.line = QLineEdit(self)
        self.line.setPlaceholderText(f"Find in {what}")
        self.line.setAccessibleName(f"Find in {what}")
        self.line.setToolTip("Type words; Enter goes to the next place, Shift+Enter back. (Ctrl+F)")
        self.line.setClearButtonEnabled(True)
        self.line.setMinimumWidth(160)
        self.previous = self._button("▲", "Previous place", True)
        self.next = self._button("▼", "Next place", False)
        self.told = QLabel(self)
        self.told.setAccessibleName("Result of the search")
        self.told.setMinimumWidth(self.told.fontMetrics().horizontalAdvance("not found") + 4)
        in_row(
            (self.line, 1), self.previous, self.next, self.told, spacing=4, margins=0, parent=self
        )
        self.line.textChanged.connect(self._on_text)
        shortcut = QShortcut(QKeySequence.StandardKey.Find, self)
        shortcut.setContext(Qt.ShortcutContext.WindowShortcut)
        shortcut.activated.connect(self.take_focus)
        self._on_text("")

    def take_focus(self) -> None:
        self.line.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.line.selectAll()

    def say(self, words: str) -> None:
        self.told.setText(words)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._ask(bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        elif event.key() == Qt.Key.Key_Escape and self.line.text():
            self.line.clear()
        else:
            super().keyPressEvent(event)

    def _button(self, sign: str, name: str, backwards: bool) -> QToolButton:
        button = QToolButton(self)
        button.setText(sign)
        button.setAutoRaise(True)
        button.setAccessibleName(name)
        button.clicked.connect(lambda: self._ask(backwards))
        return button

    def _ask(self, backwards: bool) -> None:
        if self.line.text():
            self.wanted.emit(self.line.text(), backwards)

    def _on_text(self, text: str) -> None:
        self.say("")
        for button, way in ((self.previous, "before"), (self.next, "after")):
            button.setEnabled(bool(text))
            tip = f"Go to the place {way} this one." if text else "Type the words to find first."
            button.setToolTip(tip)
        self.typed.emit(text)
