"""The folder of inputs in the main window: what one needs of the other."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from app.batch.page import Page
from app.folder.model import FolderAsk, Now
from app.folder.presenter import FolderPresenter

if TYPE_CHECKING:
    from app.folder.view import FolderWindow
    from app.window import MainWindow

log = logging.getLogger("app")

AS_SET = "As set in the window"


class Folders(Page):
    """A folder worked through with one preset."""

    COMPUTING = "A folder is being worked through: wait, or stop it in Tools > Folder of inputs."
    THING = "folder"

    view: FolderWindow | None

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, FolderPresenter())

    def now(self) -> Now | None:
        """What the main window would run with; None while the methods are loading."""
        solver = self.window.left.solver
        if solver.model.choices is None:
            return None
        preset = dataclasses.replace(solver.model.current_preset(), name=AS_SET)
        asked = solver.value()
        return Now(preset, {name: asked[name] for name in ("prior", "seed", "device")})

    def show(self) -> None:
        super().show()
        if self.view is not None:
            self.view.panel.refresh()  # presets may have been saved meanwhile

    def make_view(self) -> FolderWindow:
        from app.folder.view import FolderWindow

        window = self.window
        view = FolderWindow(self.presenter, self.now, window)
        kept = window.settings.get("folders")
        view.panel.inputs.setText(kept.get("inputs", ""))
        view.panel.folder.setText(kept.get("results", ""))
        view.started.connect(self.start)
        window.ready.connect(view.panel.changed)
        return view

    @Slot(object)
    def start(self, asked: FolderAsk) -> None:
        if self.presenter.reason(asked):
            return
        self.window.settings.put("folders", "inputs", asked.inputs)
        self.window.settings.put("folders", "results", asked.folder)
        self.presenter.start(asked)
        log.info("A folder of inputs started.")
