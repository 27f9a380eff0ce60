"""A window that computes by itself, beside the runs: made when it is first asked for."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from PySide6.QtCore import QObject, Slot

from app.background import Ended, JobPresenter, Work
from app.context import AppContext

log = logging.getLogger("app")


class Page(QObject):
    """One window of its kind per program.

    ``COMPUTING`` is what everything else says while this computes, ``GOING_ON`` what it says
    itself.
    """

    COMPUTING: ClassVar[str] = ""
    GOING_ON: ClassVar[str] = ""
    THING: ClassVar[str] = ""

    def __init__(self, context: AppContext, work: Work) -> None:
        super().__init__(context.window)
        self.context = context
        self.presenter = self.make_presenter(work)
        self.view: Any = None
        context.share(self.presenter, self.COMPUTING)
        self.presenter.ended.connect(self._on_ended)

    def make_presenter(self, work: Work) -> JobPresenter:
        return JobPresenter(work, self.THING, self.GOING_ON, self)

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

    def close(self) -> None:
        """The windows go at once; what computes first ends the iteration it is in."""
        if self.view is not None:
            self.view.close()

    @Slot(object)
    def _on_ended(self, ended: Ended) -> None:
        log.info("The %s ended: %s.", self.THING, ended.status)
        if ended.status == "failed":
            self.context.messages.error(ended.sentence, ended.details)
