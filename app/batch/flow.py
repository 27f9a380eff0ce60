"""The experiments in the main window: what one needs of the other."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, QStandardPaths, Slot

from app.batch.model import BatchRequest, Ended, Inputs, Offers, load_offers
from app.batch.presenter import BatchPresenter
from app.session.workspaces import RUNNING

if TYPE_CHECKING:
    from app.batch.view import ExperimentsWindow
    from app.window import MainWindow

log = logging.getLogger("app")

COMPUTING: Final = "An experiment is going on: wait for it, or cancel it in Tools > Experiments."


class Experiments(QObject):
    """One page per program, made when it is first asked for.

    Either runs or an experiment compute, never both: they would slow each other down, and times
    would mean nothing.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.window = window
        self.presenter = BatchPresenter(self)
        self.view: ExperimentsWindow | None = None
        self.presenter.state_changed.connect(self._on_state)
        self.presenter.ended.connect(self._on_ended)
        window.runs.state_changed.connect(self._on_runs)

    @property
    def busy(self) -> bool:
        return self.presenter.busy

    def show(self) -> None:
        if self.view is None:
            self.view = self._make_view()
        self.view.show()
        self.view.raise_()
        self.view.activateWindow()

    def request_close(self) -> None:
        """The windows go at once; an experiment first ends the iteration it is in."""
        if self.view is not None:
            self.view.close()
        if self.busy:
            self.window.hide()
        self.presenter.request_close()

    def _make_view(self) -> ExperimentsWindow:
        from app.batch.view import ExperimentsWindow

        window = self.window
        view = ExperimentsWindow(self.presenter, window)
        documents = QStandardPaths.StandardLocation.DocumentsLocation
        usual = Path(QStandardPaths.writableLocation(documents)) / "experiments"
        view.panel.folder.setText(window.settings.get("folders").get("experiments", str(usual)))
        view.started.connect(self.start)
        window.data.opened.connect(self._on_opened)
        self._offer_open(view, window.setup.data)
        window.tasks.start("Loading the experiments …", load_offers, self._on_offers)
        return view

    def _on_offers(self, offers: Offers) -> None:
        if self.view is not None:
            self.view.panel.set_offers(offers)

    @Slot(object)
    def start(self, request: BatchRequest) -> None:
        if self.presenter.reason(request):
            return
        self.window.settings.put("folders", "experiments", request.folder)
        self.presenter.start(request)
        log.info("Experiment %s started.", request.experiment)

    @Slot(object)
    def _on_opened(self, data: Any) -> None:
        if self.view is not None:
            self._offer_open(self.view, data)

    @staticmethod
    def _offer_open(view: ExperimentsWindow, data: Any) -> None:
        view.panel.inputs.set_open(Inputs((data.text,), data.options) if data else None)

    @Slot(str)
    def _on_state(self, state: str) -> None:
        self.window.left.solver.set_occupied(COMPUTING if self.busy else "")
        self.window.menus.refresh()

    @Slot(str)
    def _on_runs(self, state: str) -> None:
        self.presenter.set_blocked(RUNNING if self.window.runs.busy else "")

    @Slot(object)
    def _on_ended(self, ended: Ended) -> None:
        log.info("The experiment ended: %s.", ended.status)
        if ended.status == "failed":
            self.window.messages.error(ended.sentence, ended.details)
