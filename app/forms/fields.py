"""One editor per kind of value; each says what was put in and shows what it is told."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QMenu,
    QSizePolicy,
    QWidget,
)

from app.forms.labels import AUTOMATIC, Wrong, choice_of, read, text_of, unit_of
from app.theme import tabular
from app.widgets import in_row
from engine.spec.settings import Settings, value_type

WRONG_COLOUR = "#D55E00"
LONGEST_NUMBER = 24  # characters: no setting needs more, and huge integers stay out


class TextLine(QLineEdit):
    """A line edit whose undo is the form's, and that frames itself when its text is wrong."""

    undo_pressed = Signal()
    redo_pressed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.wrong = False
        self.setFont(tabular(self.font()))
        # the row makes the menu: its undo is the form's, and it can reset the field
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)

    def make_menu(self) -> QMenu:
        """Cut, copy and paste, without the line's own undo."""
        menu = self.createStandardContextMenu()
        for action in menu.actions()[:3]:
            menu.removeAction(action)
        return menu

    def set_wrong(self, wrong: bool) -> None:
        self.wrong = wrong
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Undo):
            self.undo_pressed.emit()
        elif event.matches(QKeySequence.StandardKey.Redo):
            self.redo_pressed.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.wrong:
            painter = QPainter(self)
            painter.setPen(QPen(QColor(WRONG_COLOUR), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))


class CalmCombo(QComboBox):
    """A combo box that a passing wheel does not change: it scrolls the panel instead."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)

    def showPopup(self) -> None:
        """Wide enough for its words, however narrow the panel is."""
        view = self.view()
        view.setMinimumWidth(max(self.width(), view.sizeHintForColumn(0) + 24))
        super().showPopup()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        undo, redo = QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo
        if event.matches(undo) or event.matches(redo):
            event.ignore()  # for the form; the list would search for the letter
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class FieldEditor(QWidget):
    """Base: `edited` carries the new value (or Wrong), `left` says the person moved on."""

    edited = Signal(object, bool)  # value, typed letter by letter
    left = Signal()
    undo_pressed = Signal()
    redo_pressed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.row = in_row(spacing=4, margins=0, parent=self)

    @property
    def control(self) -> QWidget:
        """What takes the keyboard."""
        raise NotImplementedError

    def show_value(self, value: Any) -> None:
        raise NotImplementedError

    def set_wrong(self, wrong: bool) -> None:
        """Mark the editor; combo and check boxes cannot hold wrong text."""

    def set_placeholder(self, text: str) -> None:
        """What an empty field means."""


class LineField(FieldEditor):
    """Numbers and words, checked with every letter."""

    def __init__(self, cls: type[Settings], name: str, unit: str) -> None:
        super().__init__()
        self.cls, self.name = cls, name
        kind, optional = value_type(cls, name)
        self.line = TextLine()
        self.line.setMinimumWidth(64)
        if kind in (int, float):
            self.line.setMaxLength(LONGEST_NUMBER)
            self.line.setAlignment(Qt.AlignmentFlag.AlignRight)
        if optional:
            self.line.setPlaceholderText(AUTOMATIC)
        self.row.addWidget(self.line, 1)
        self.unit = QLabel(unit_of(unit), self)
        self.unit.setVisible(bool(unit))
        self.row.addWidget(self.unit)
        self.line.textEdited.connect(lambda text: self.edited.emit(read(cls, name, text), True))
        self.line.editingFinished.connect(self.left)
        self.line.undo_pressed.connect(self.undo_pressed)
        self.line.redo_pressed.connect(self.redo_pressed)
        self.setFocusProxy(self.line)

    @property
    def control(self) -> QWidget:
        return self.line

    def show_value(self, value: Any) -> None:
        # while typing, '1.50' must not jump to '1.5' under the fingers
        if read(self.cls, self.name, self.line.text()) == value and not (
            value is None and self.line.text()
        ):
            return
        self.line.setText(value.text if isinstance(value, Wrong) else text_of(value))
        self.line.setCursorPosition(len(self.line.text()) if self.line.hasFocus() else 0)

    def set_wrong(self, wrong: bool) -> None:
        self.line.set_wrong(wrong)

    def set_placeholder(self, text: str) -> None:
        self.line.setPlaceholderText(text)


class FlagField(FieldEditor):
    def __init__(self) -> None:
        super().__init__()
        self.box = QCheckBox()
        self.row.addWidget(self.box)
        self.row.addStretch(1)
        self.box.toggled.connect(self._on_toggled)
        self.setFocusProxy(self.box)

    @property
    def control(self) -> QWidget:
        return self.box

    def show_value(self, value: Any) -> None:
        self.box.blockSignals(True)
        self.box.setChecked(bool(value))
        self.box.setText("on" if value else "off")
        self.box.blockSignals(False)

    def _on_toggled(self, on: bool) -> None:
        self.edited.emit(on, False)


class ChoiceField(FieldEditor):
    """A list of values with their words; optional ones begin with 'automatic' (None)."""

    def __init__(self, choices: list[tuple[Any, str]], optional: bool) -> None:
        super().__init__()
        self.combo = CalmCombo()
        self.has_blank = False
        for value, words in choices:
            self.combo.addItem(words, value)
        if optional:
            self.set_placeholder(AUTOMATIC)
        self.combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.row.addWidget(self.combo, 1)
        self.combo.activated.connect(lambda: self.edited.emit(self.combo.currentData(), False))
        self.setFocusProxy(self.combo)

    @property
    def control(self) -> QWidget:
        return self.combo

    def show_value(self, value: Any) -> None:
        self.combo.setCurrentIndex(self.combo.findData(value))

    def set_placeholder(self, text: str) -> None:
        """Name the empty choice; no text takes it away."""
        if not self.has_blank and text:
            self.combo.insertItem(0, text, None)
        elif self.has_blank and not text:
            self.combo.removeItem(0)
        elif text:
            self.combo.setItemText(0, text)
        self.has_blank = bool(text)


def make_editor(cls: type[Settings], name: str, choices: tuple[str, ...], unit: str) -> FieldEditor:
    """The editor that fits a field of a settings class."""
    kind, optional = value_type(cls, name)
    if choices:
        return ChoiceField([(value, choice_of(value)) for value in choices], optional)
    if kind is bool:
        return ChoiceField([(True, "yes"), (False, "no")], True) if optional else FlagField()
    return LineField(cls, name, unit)


def is_undo_override(event: QEvent) -> bool:
    """Whether a shortcut the window also has is meant for the form with the focus."""
    return event.type() == QEvent.Type.ShortcutOverride and (
        event.matches(QKeySequence.StandardKey.Undo)  # type: ignore[attr-defined]
        or event.matches(QKeySequence.StandardKey.Redo)  # type: ignore[attr-defined]
    )
