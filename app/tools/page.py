"""A page of the main window that computes by itself: made when it is first asked for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

from PySide6.QtCore import QObject, Slot

from app.background import BatchPresenter, Ended
from app.session.workspaces import RUNNING

if TYPE_CHECKING:
    from app.window import MainWindow

log = logging.getLogger("app")


class Page(QObject):
    """One window of its kind per program.

    Either runs or one of the pages compute, never two of them: they would slow each other down,
    and times would mean nothing. ``COMPUTING`` is what the others say meanwhile.
    """

    COMPUTING: ClassVar[str] = ""
    THING: ClassVar[str] = ""

    def __init__(self, window: MainWindow, presenter: BatchPresenter) -> None:
        super().__init__(window)
        self.window, self.presenter = window, presenter
        presenter.setParent(self)
        self.view: Any = None
        self.presenter.state_changed.connect(self._on_state)
        self.presenter.ended.connect(self._on_ended)
        window.runs.state_changed.connect(self._on_runs)

    @property
    def busy(self) -> bool:
        return self.presenter.busy

    def show(self) -> None:
        if self.view is None:
            self.view = self.make_view()
        self.view.show()
        self.view.raise_()
        self.view.activateWindow()

    def make_view(self) -> Any:
        raise NotImplementedError

    def request_close(self) -> None:
        """The windows go at once; what computes first ends the iteration it is in."""
        if self.view is not None:
            self.view.close()
        if self.busy:
            self.window.hide()
        self.presenter.request_close()

    @Slot(str)
    def _on_state(self, state: str) -> None:
        occupied = self.COMPUTING if self.busy else ""
        self.window.left.solver.set_occupied(occupied)
        for page in self.window.pages:
            if page is not self:
                page.presenter.set_blocked(occupied)
        self.window.menus.refresh()

    @Slot(str)
    def _on_runs(self, state: str) -> None:
        self.presenter.set_blocked(RUNNING if self.window.runs.busy else "")

    @Slot(object)
    def _on_ended(self, ended: Ended) -> None:
        log.info("The %s ended: %s.", self.THING, ended.status)
        if ended.status == "failed":
            self.window.messages.error(ended.sentence, ended.details)
