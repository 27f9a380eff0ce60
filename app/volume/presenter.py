"""Between the thread that computes a volume, or exports it, and its windows."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject

from app.batch.model import Ended
from app.batch.presenter import BatchPresenter
from app.batch.stop import Stop
from app.runs.mailbox import Mailbox


def _volume(request: Any, stop: Stop, mailbox: Mailbox) -> Ended:
    from app.volume.work import run_volume

    return run_volume(request, stop, mailbox)


def _export(request: Any, stop: Stop, mailbox: Mailbox) -> Ended:
    from app.volume.exporting import export_volume

    return export_volume(request, stop, mailbox)


class VolumePresenter(BatchPresenter):
    """As for experiments, with reasons of its own."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent, _volume, "volume")

    def reason(self, request: Any) -> str:
        if self.busy:
            return "A volume is being computed: wait, or stop it first."
        return self.blocked or request.fault


class ExportPresenter(BatchPresenter):
    """Exports in a thread of its own: cuts can be looked at meanwhile."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent, _export, "volume export")

    def reason(self, request: Any) -> str:
        if self.busy:
            return "An export is going on: wait, or cancel it first."
        return request.fault
