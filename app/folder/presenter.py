"""Between the thread that works through a folder and its page."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject

from app.batch.model import Ended
from app.batch.presenter import BatchPresenter
from app.batch.stop import Stop
from app.runs.mailbox import Mailbox


def _folder(request: Any, stop: Stop, mailbox: Mailbox) -> Ended:
    from app.folder.work import run_folder

    return run_folder(request, stop, mailbox)


class FolderPresenter(BatchPresenter):
    """As for experiments, with reasons of its own."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent, _folder, "folder")

    def reason(self, request: Any) -> str:
        if self.busy:
            return "A folder is being worked through: wait, or stop it first."
        if self.blocked:
            return self.blocked
        if not request.inputs:
            return "Choose a folder of inputs."
        if not request.folder:
            return "Choose a folder for the results."
        if not request.formats:
            return "Tick at least one format."
        return "" if request.preset is not None else "The methods are still loading."
