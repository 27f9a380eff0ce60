"""The experiments in the main window: what one needs of the other."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QStandardPaths, Slot

from app.batch.model import BatchRequest, Inputs, Offers, load_offers
from app.batch.page import Page
from app.batch.presenter import BatchPresenter

if TYPE_CHECKING:
    from app.batch.view import ExperimentsWindow
    from app.window import MainWindow

log = logging.getLogger("app")


class Experiments(Page):
    """The experiments of the paper."""

    COMPUTING = "An experiment is going on: wait for it, or cancel it in Tools > Experiments."
    THING = "experiment"

    view: ExperimentsWindow | None

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, BatchPresenter())

    def make_view(self) -> ExperimentsWindow:
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
