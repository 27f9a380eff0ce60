"""Between the thread that computes a volume, or exports it, and its windows."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject

from app.background import BatchPresenter, Ended
from app.runs.mailbox import Mailbox
from engine.spec.control import RunControl


def _volume(request: Any, control: RunControl, mailbox: Mailbox) -> Ended:
    from app.tools.volume.work import run_volume

    return run_volume(request, control, mailbox)


def _export(request: Any, control: RunControl, mailbox: Mailbox) -> Ended:
    from app.tools.volume.exports import export_volume

    return export_volume(request, control, mailbox)


class VolumePresenter(BatchPresenter):
    GOING_ON = "A volume is being computed: wait, or stop it first."

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(_volume, "volume", parent)


class ExportPresenter(BatchPresenter):
    """Exports in a thread of its own: cuts can be looked at meanwhile."""

    GOING_ON = "An export is going on: wait, or cancel it first."

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(_export, "volume export", parent)
