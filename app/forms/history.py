"""Values with undo: what every form edits, free of widgets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from PySide6.QtCore import QObject, Signal


@dataclass
class _Step:
    """What one undo takes back: the values before and after, by name."""

    before: dict[str, Any]
    after: dict[str, Any]
    typing: str | None = None  # the field that more typing would be merged into


class Undoing(Protocol):
    def undo(self) -> object: ...

    def redo(self) -> object: ...


class UndoValues(QObject):
    """Named values with their defaults, undo and redo.

    Several forms may share one, so that one Undo serves them all in the order of the edits.
    Typing in one field is a single step until another field is edited or `seal` is called.
    ``leader`` is whom a form asks to undo, when a window has more to undo than its fields.
    """

    changed = Signal(object)  # the set of names whose values are now others

    def __init__(self, defaults: Mapping[str, Any], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._defaults = dict(defaults)
        self._values = dict(defaults)
        self._done: list[_Step] = []
        self._undone: list[_Step] = []
        self._joining: bool | None = None  # within `as_one`: whether a step has begun
        self.leader: Undoing | None = None

    def add(self, defaults: Mapping[str, Any]) -> None:
        """Take names on that are not known yet; known ones keep their value and default."""
        for name, value in defaults.items():
            if name not in self._defaults:
                self._defaults[name] = self._values[name] = value

    def rebase(self, defaults: Mapping[str, Any]) -> None:
        """Other defaults, as new data bring; the steps so far can no longer be undone."""
        self._defaults.update(defaults)
        self._done.clear()
        self._undone.clear()
        moved = {n for n, v in defaults.items() if not _same(self._values.get(n, self), v)}
        self._values.update(defaults)
        self.changed.emit(moved)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    @property
    def values(self) -> dict[str, Any]:
        return dict(self._values)

    def default(self, name: str) -> Any:
        return self._defaults[name]

    def differs(self, name: str) -> bool:
        return not _same(self._values[name], self._defaults[name])

    def set(self, name: str, value: Any, *, typing: bool = False) -> None:
        self._apply({name: value}, name if typing else None)

    def set_many(self, values: Mapping[str, Any]) -> None:
        """Several values as one step, as a preset does."""
        self._apply(dict(values), None)

    @contextmanager
    def as_one(self) -> Iterator[None]:
        """All that is set meanwhile, by whichever form, is one step."""
        self._joining = False
        try:
            yield
        finally:
            self._joining = None

    def seal(self) -> None:
        """The person left the field: what is typed next is a step of its own."""
        if self._done:
            self._done[-1].typing = None

    def reset(self, *names: str) -> None:
        """Back to the default: of all values when no name is given."""
        self.set_many({name: self._defaults[name] for name in names or self._defaults})

    @property
    def depth(self) -> int:
        """How many steps can be undone."""
        return len(self._done)

    @property
    def can_undo(self) -> bool:
        return bool(self._done)

    @property
    def can_redo(self) -> bool:
        return bool(self._undone)

    def ask_undo(self) -> None:
        """Undo in a form: what the person did last, be it elsewhere in the window."""
        (self.leader or self).undo()

    def ask_redo(self) -> None:
        (self.leader or self).redo()

    def undo(self) -> bool:
        if not self._done:
            return False
        step = self._done.pop()
        step.typing = None
        self._undone.append(step)
        self._put(step.before)
        return True

    def redo(self) -> bool:
        if not self._undone:
            return False
        step = self._undone.pop()
        self._done.append(step)
        self._put(step.after)
        return True

    def _apply(self, values: dict[str, Any], typing: str | None) -> None:
        after = {n: v for n, v in values.items() if not _same(self._values[n], v)}
        if not after:
            return
        before = {name: self._values[name] for name in after}
        last = self._done[-1] if self._done else None
        if self._joining and last is not None:
            last.before = before | last.before
            last.after |= after
        elif typing is not None and last is not None and last.typing == typing:
            last.after = after
            if _same(last.before[typing], after[typing]):  # typed back to where it began
                self._done.pop()
        else:
            self._done.append(_Step(before, after, typing))
        if self._joining is not None:
            self._joining = True
        self._undone.clear()
        self._put(after)

    def _put(self, values: Mapping[str, Any]) -> None:
        self._values.update(values)
        self.changed.emit(set(values))


def _same(a: Any, b: Any) -> bool:
    """Equal and of one kind: 1 and True are not the same setting."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)
