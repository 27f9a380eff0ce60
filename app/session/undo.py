"""One Undo for the fields and for the table of runs, in the order things were done."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QUndoStack

from app.forms.history import UndoValues


class Undo(QObject):
    """Remembers which of the two took each step, and asks that one to take it back.

    ``stack`` is for what is no field. It is a child of this, so that its last signal, sent as
    it goes, finds no listener any more.
    """

    changed = Signal()

    def __init__(self, history: UndoValues, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.history, self.stack = history, QUndoStack(self)
        self._done: list[UndoValues | QUndoStack] = []
        self._undone: list[UndoValues | QUndoStack] = []
        self._depths = (history.depth, 0)
        self._acting = False
        history.leader = self
        history.changed.connect(self._look)
        self.stack.indexChanged.connect(self._look)

    @property
    def can_undo(self) -> bool:
        return bool(self._done)

    @property
    def can_redo(self) -> bool:
        return bool(self._undone)

    @Slot()
    def undo(self) -> None:
        if self._done:
            self._move(self._done, self._undone).undo()
            self._settle()

    @Slot()
    def redo(self) -> None:
        if self._undone:
            self._move(self._undone, self._done).redo()
            self._settle()

    def _move(
        self, source: list[UndoValues | QUndoStack], target: list[UndoValues | QUndoStack]
    ) -> UndoValues | QUndoStack:
        one = source.pop()
        target.append(one)
        self._acting = True
        return one

    def _settle(self) -> None:
        self._acting = False
        self._depths = (self.history.depth, self.stack.index())
        self.changed.emit()

    def _forget_last(self, one: UndoValues | QUndoStack) -> None:
        places = [place for place, other in enumerate(self._done) if other is one]
        if places:
            del self._done[places[-1]]

    @Slot()
    def _look(self) -> None:
        """A new step of one of the two: what was undone before cannot be redone any more."""
        if self._acting:
            return
        before, self._depths = self._depths, (self.history.depth, self.stack.index())
        both: tuple[UndoValues | QUndoStack, ...] = (self.history, self.stack)
        for one, was, now in zip(both, before, self._depths, strict=True):
            if now < was:  # new data began a new history, or typing went back to its start
                for _ in range(was - now):
                    self._forget_last(one)
                self._undone = [other for other in self._undone if other is not one]
            elif now > was:
                self._done.append(one)
                self._undone.clear()
        self.changed.emit()
