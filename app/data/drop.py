"""Files and folders dropped anywhere on a window."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, QObject, Qt
from PySide6.QtGui import QDropEvent, QWindow
from PySide6.QtWidgets import QWidget

DRAGS = (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop)
# The native window comes with the first of these, and may be replaced later.
NATIVE = (QEvent.Type.WinIdChange, QEvent.Type.Show)


class DropFilter(QObject):
    """Calls ``dropped`` with the paths of local files; other drags go on as before.

    It listens at the native window too: text fields would otherwise take a dropped file as
    text, and the images would swallow it.
    """

    def __init__(self, window: QWidget, dropped: Callable[[list[str]], object]) -> None:
        super().__init__(window)
        self.window, self.dropped = window, dropped
        self._native: QWindow | None = None
        window.setAcceptDrops(True)
        window.installEventFilter(self)
        self._listen()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind in DRAGS and isinstance(event, QDropEvent):
            return self._on_drag(event)
        if kind in NATIVE and watched is self.window:
            self._listen()
        return False

    def _on_drag(self, event: QDropEvent) -> bool:
        paths = local_paths(event.mimeData())
        if not paths:
            return False
        event.setDropAction(Qt.DropAction.CopyAction)  # never 'move': the files stay
        event.accept()
        if event.type() == QEvent.Type.Drop:
            self.dropped(paths)
        return True

    def _listen(self) -> None:
        native = self.window.windowHandle()
        if native is not None and native is not self._native:
            native.installEventFilter(self)
        self._native = native


def local_paths(mime: QMimeData) -> list[str]:
    """Of files and folders on this machine; nothing when one is not."""
    urls = mime.urls() if mime.hasUrls() else []
    paths = [url.toLocalFile() for url in urls if url.isLocalFile()]
    return [path for path in paths if path] if len(paths) == len(urls) else []
