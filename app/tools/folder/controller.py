"""The folder of inputs in the main window: what one needs of the other."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.background import Ended, JobPresenter, JobRequest, Mailbox, Table
from app.context import AppContext
from app.tools.folder.panel import CurrentSettings, FolderPanel
from app.tools.page import Page
from app.tools.table_window import TableWindow
from engine.spec.control import RunControl

log = logging.getLogger("app")

AS_SET = "As set in the window"


def _folder(asked: JobRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    from app.tools.folder.job import run_folder

    return run_folder(asked.request, control, mailbox)


class Folders(Page):
    """A folder worked through with one preset."""

    COMPUTING = "A folder is being worked through: wait, or stop it in Tools > Folder of inputs."
    GOING_ON = "A folder is being worked through: wait, or stop it first."
    THING = "folder"

    view: FolderWindow | None

    def __init__(self, context: AppContext) -> None:
        super().__init__(context, _folder)

    def now(self) -> CurrentSettings | None:
        """What the main window would run with; None while the methods are loading."""
        solver = self.context.left.solver
        if solver.model.choices is None:
            return None
        preset = dataclasses.replace(solver.model.current_preset(), name=AS_SET)
        asked = solver.value()
        return CurrentSettings(preset, {name: asked[name] for name in ("prior", "seed", "device")})

    def show(self) -> None:
        super().show()
        if self.view is not None:
            self.view.panel.refresh()  # presets may have been saved meanwhile

    def make_view(self) -> FolderWindow:
        view = FolderWindow(self.presenter, self.now, self.context.window)
        kept = self.context.settings.get("folders")
        view.panel.inputs.setText(kept.get("inputs", ""))
        view.panel.folder.setText(kept.get("results", ""))
        view.started.connect(self.start)
        self.context.ready.connect(view.panel.changed)
        return view

    @Slot(object)
    def start(self, asked: JobRequest) -> None:
        if self.presenter.reason(asked):
            return
        self.context.keep_folder("inputs", str(asked.request.folder))
        self.context.keep_folder("results", asked.folder)
        self.presenter.start(asked)
        log.info("A folder of inputs started.")


class FolderWindow(TableWindow):
    """Every input is a row; a double-click or Enter shows its files."""

    TITLE = "Folder of inputs"
    THING = "folder"
    EMPTY = "Every input becomes a row here, with what came of it."
    START_TIP = "Reconstruct every input that is not done yet."
    CANCEL_TIP = "Stop after this iteration; Start goes on from there."
    TABLE_TIP = "Double-click a row, or press Enter, to see its files."
    READING = "Looking for inputs …"
    CANCELLED = "Stopped: what is done is kept, and Start goes on from there."
    SIZE = (1120, 560)

    panel: FolderPanel

    def __init__(
        self,
        presenter: JobPresenter,
        now: Callable[[], CurrentSettings | None],
        parent: QWidget | None = None,
    ) -> None:
        self._now = now
        super().__init__(presenter, parent)
        self.cancel.setText("Stop")
        self.cancel.setAccessibleName("Stop")
        self.table.activated.connect(self._on_activated)
        self.table.horizontalHeader().setStretchLastSection(True)  # the reasons are long

    def make_panel(self) -> FolderPanel:
        return FolderPanel(self._now)

    @Slot(object)
    def _on_table(self, table: Table) -> None:
        few = len(self.model.table.rows) < len(table.rows)
        super()._on_table(table)
        if few:
            self._fit_columns()

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        table = self.model.table
        if table.folders and table.folders[index.row()]:
            QDesktopServices.openUrl(QUrl.fromLocalFile(table.folders[index.row()]))
        else:
            self._say("This input has no results to show.")
