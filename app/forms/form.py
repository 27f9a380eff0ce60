"""A form made from any settings class: it edits, checks and reports, and starts nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QToolButton, QWidget

from app.forms.fields import is_undo_override
from app.forms.history import UndoValues
from app.forms.labels import Check, blank_of, find_faults, label_of
from app.forms.rows import FieldRow, SentenceLabel
from app.widgets import in_column
from engine.spec.settings import Rule, Settings, value_type


class SettingsForm(QWidget):
    """Editors for the fields of a settings class.

    A disabled field keeps its text but counts as its default.

    Parameters
    ----------
    basic : names shown first, in this order; the rest is behind 'More'
    then : names that lead the rest
    rules : by field name, when and why it is disabled
    hidden : names that are not shown at all and stay at their default
    required : names that may not stay empty
    history : shared with other forms when one undo should serve them all
    """

    edited = Signal()
    valid_changed = Signal(bool)

    def __init__(
        self,
        cls: type[Settings],
        basic: Iterable[str] = (),
        rules: Mapping[str, Rule] | None = None,
        *,
        then: Iterable[str] = (),
        hidden: Iterable[str] = (),
        required: Iterable[str] = (),
        history: UndoValues | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.cls, self.rules = cls, dict(rules or {})
        self.check: Check | None = None
        self.locks: dict[str, str] = {}  # reasons that the values do not decide
        self.blank: dict[str, str] = {}  # fields that may be left out, and what that means
        self._moved: tuple[str, ...] = ()  # fields whose default is not the class's
        self.required = tuple(required)
        fields = {f.name: f for f in dataclasses.fields(cls) if f.name not in set(hidden)}
        self.history = history if history is not None else UndoValues({}, self)
        self.history.add({f.name: f.default for f in fields.values()})
        self.rows = {name: FieldRow(cls, name, field.metadata) for name, field in fields.items()}
        self._recent: list[str] = []
        self._few: frozenset[str] | None = None
        self._faults: dict[str, str] = {}
        self._valid = True
        self._build([n for n in basic if n in self.rows], [n for n in then if n in self.rows])
        for name, row in self.rows.items():
            self._connect(name, row)
        for name in self.required:
            self.rows[name].editor.set_placeholder("needed")
        self.history.changed.connect(self._on_changed)
        self._show(set(self.rows))

    # -- what it holds ------------------------------------------------------------------------

    def value(self) -> dict[str, Any]:
        """What was asked for: the values that differ from the defaults. May be wrong."""
        reasons = self._reasons()
        return {
            name: self.history[name]
            for name in self.rows
            if self.history.differs(name) and not reasons.get(name)
        }

    def settings(self) -> Settings:
        """The complete settings; raises RequestError while the form is invalid."""
        return self.cls.from_dict(self._defaults() | self.value())

    def set_values(self, values: Mapping[str, Any], *, rest_to_default: bool = False) -> None:
        """Take known names over, as one step that can be undone."""
        known = {name: value for name, value in values.items() if name in self.rows}
        if rest_to_default:
            known = {name: self.history.default(name) for name in self.rows} | known
        self.history.set_many(known)

    def reset(self, *names: str) -> None:
        self.history.reset(*(names or tuple(self.rows)))

    @property
    def valid(self) -> bool:
        return self._valid

    @property
    def faults(self) -> dict[str, str]:
        return dict(self._faults)

    def problem(self) -> str:
        """Why the form is invalid, in a sentence; empty when it is not."""
        if self._faults:
            return next(iter(self._faults.values()))
        missing = self._missing()
        return f"“{label_of(missing[0])}” is needed." if missing else ""

    # -- what the owner may say about it ------------------------------------------------------

    def set_context(
        self,
        *,
        blank: Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None,
        locks: Mapping[str, str] | None = None,
        check: Check | None = None,
    ) -> None:
        """What new data mean for the form, all at once; edits so far cannot be undone any more.

        Parameters
        ----------
        blank : fields that begin empty, and what that means, instead of their default
        defaults : other defaults than the class has
        locks : fields that circumstances disable, with the reason of each
        check : a further check of the asked-for values: raises RequestError
        """
        blank = dict(blank or {})
        own = {f.name: f.default for f in dataclasses.fields(self.cls)}
        back = [name for name in (*self.blank, *self._moved) if name not in blank]
        for name in {*blank, *self.blank}:
            self.rows[name].editor.set_placeholder(blank.get(name, self._own_placeholder(name)))
        self.blank, self.locks, self.check = blank, dict(locks or {}), check
        self._moved = tuple(defaults or ())
        self.history.rebase({n: own[n] for n in back} | dict.fromkeys(blank) | dict(defaults or {}))
        self._show(set(self.rows))

    def show_only(self, names: Iterable[str] | None) -> None:
        """These rows alone; None shows all as usual. What the others hold stays and counts."""
        self._few = None if names is None else frozenset(names)
        for name, row in self.rows.items():
            row.setVisible(self._few is None or name in self._few)
        self.more.setVisible(self._few is None and bool(self._folded))
        self._on_more(self.more.isChecked())

    def refresh(self) -> None:
        """Check again: something the check depends on has changed."""
        self._show(set())

    def detach(self) -> None:
        """Stop following a shared history: the form is about to go."""
        self.history.changed.disconnect(self._on_changed)

    # -- inside -------------------------------------------------------------------------------

    def _build(self, basic: list[str], then: list[str]) -> None:
        outer = in_column(spacing=8, margins=0, parent=self)
        for name in basic:
            outer.addWidget(self.rows[name])
        self.note = SentenceLabel()  # a fault that belongs to no single field
        rest = then + [name for name in self.rows if name not in (*basic, *then)]
        self.more = QToolButton()
        self.more.setCheckable(True)
        self.more.setAutoRaise(True)
        self.more.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.more.setToolTip("Show the settings that are rarely changed.")
        self.fold = QWidget()
        inner = in_column(spacing=8, margins=0, parent=self.fold)
        for name in rest:
            inner.addWidget(self.rows[name])
        outer.addWidget(self.note)
        outer.addWidget(self.more)
        outer.addWidget(self.fold)
        self._folded = rest if basic else []
        self.more.setVisible(bool(self._folded))
        self.more.toggled.connect(self._on_more)
        self.more.setChecked(not basic)
        self._on_more(not basic)

    def _connect(self, name: str, row: FieldRow) -> None:
        row.editor.edited.connect(lambda value, typed: self._on_edited(name, value, typed))
        row.editor.left.connect(self.history.seal)
        row.editor.undo_pressed.connect(self.history.ask_undo)
        row.editor.redo_pressed.connect(self.history.ask_redo)
        row.reset_asked.connect(lambda which: self.reset(which))

    def _on_edited(self, name: str, value: Any, typed: bool) -> None:
        self.history.set(name, value, typing=typed)

    def _on_changed(self, names: set[str]) -> None:
        mine = [name for name in self.rows if name in names]
        if not mine:
            return
        self._recent = mine + [name for name in self._recent if name not in mine]
        self._show(set(mine))
        self.edited.emit()

    def _on_more(self, on: bool) -> None:
        self.fold.setVisible(on and self._few is None)
        self.more.setArrowType(Qt.ArrowType.DownArrow if on else Qt.ArrowType.RightArrow)

    def _own_placeholder(self, name: str) -> str:
        """What an empty field means without anything that the data say."""
        _, optional = value_type(self.cls, name)
        return blank_of(name) if optional else ""

    def _defaults(self) -> dict[str, Any]:
        """Of the class, except where the history has another default that is a value."""
        own = {name: self.history.default(name) for name in self.rows}
        return {name: value for name, value in own.items() if name not in self.blank}

    def _reasons(self) -> dict[str, str]:
        values = {name: self.history[name] for name in self.rows}
        changed = {name for name in self.rows if self.history.differs(name)}
        rules = {name: rule for name, rule in self.rules.items() if name in self.rows}
        reasons = {name: rule(values, changed) for name, rule in rules.items()}
        return reasons | self.locks

    def _missing(self) -> list[str]:
        reasons = self._reasons()
        return [n for n in self.required if self.history[n] is None and not reasons.get(n)]

    def _show(self, names: set[str]) -> None:
        reasons, asked = self._reasons(), self.value()
        self._faults = find_faults(self.cls, self._defaults() | asked, self._recent)
        if not self._faults and self.check is not None:
            self._faults = find_faults(self.cls, asked, self._recent, self.check)
        for name, row in self.rows.items():
            if name in names:
                default = self.history.default(name)
                row.show_value(self.history[name], default, self.history.differs(name))
            row.show_reason(reasons.get(name, ""))
            row.show_fault(self._faults.get(name, ""))
        note = next((s for n, s in self._faults.items() if n not in self.rows), "")
        self.note.say(f"⚠ {note}" if note else "")
        self._show_fold()
        valid = not self._faults and not self._missing()
        if valid != self._valid:
            self._valid = valid
            self.valid_changed.emit(valid)

    def _show_fold(self) -> None:
        if any(name in self._faults for name in self._folded):
            self.more.setChecked(True)
        changed = sum(self.history.differs(name) for name in self._folded)
        self.more.setText(f"More ({changed} changed)" if changed else "More")

    def event(self, event: QEvent) -> bool:
        if is_undo_override(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Undo):
            self.history.ask_undo()
        elif event.matches(QKeySequence.StandardKey.Redo):
            self.history.ask_redo()
        else:
            super().keyPressEvent(event)


class AcquisitionPanel(QWidget):
    """A form and pictures of what it asks for; `edited` after every change, valid or not."""

    edited = Signal()
    valid_changed = Signal(bool)

    def __init__(self, form: SettingsForm, *above: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form = form
        in_column(*above, form, None, spacing=8, margins=0, parent=self)
        form.edited.connect(self._on_edited)
        form.valid_changed.connect(self.valid_changed)
        self._refresh()

    @property
    def valid(self) -> bool:
        return self.form.valid

    def value(self) -> dict[str, Any]:
        """The ``acquisition`` of a Job: only what was asked for."""
        return self.form.value()

    def set_values(self, values: dict[str, Any]) -> None:
        self.form.set_values(values, rest_to_default=True)

    def _on_edited(self) -> None:
        self._refresh()
        self.edited.emit()

    def _refresh(self) -> None:
        """Show what is asked for, where the fields that the pictures need are right."""
        raise NotImplementedError
