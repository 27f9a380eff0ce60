"""Files and folders dropped anywhere on a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, Qt
from PySide6.QtGui import QDropEvent, QWindow
from PySide6.QtWidgets import QWidget

from engine.data.readers.dicom.magic import is_dicom
from engine.spec.errors import RequestError

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


ONE = "Drop one file, one folder, or the DICOM files of one folder."
# Files that only describe or complete the one beside them.
COMPANIONS = {".json": None, ".hdr": (".cfl",), ".raw": (".mhd", ".nhdr"), ".bin": (".mhd",)}
DICOM_NAMES = (".dcm", ".dicom", ".ima")


def input_of(paths: Sequence[str]) -> str:
    """The file or folder to open; a RequestError says why there is none."""
    files = [Path(path) for path in paths]
    main = [file for file in files if not _completes(file, files)]
    if len(main) == 1:
        return str(main[0])
    if any(file.is_dir() for file in files):
        raise RequestError(f"{len(files)} things were dropped, a folder among them. {ONE}")
    folders = {file.parent for file in files}
    if len(folders) > 1:
        raise RequestError(f"{len(files)} files of {len(folders)} folders were dropped. {ONE}")
    if not all(is_dicom(file) or file.suffix.lower() in DICOM_NAMES for file in files):
        raise RequestError(f"{len(files)} files were dropped and not all are DICOM. {ONE}")
    return str(folders.pop())


def _completes(file: Path, files: Sequence[Path]) -> bool:
    """Whether another of the files has the same name and is what this one belongs to."""
    suffix = file.suffix.lower()
    if suffix not in COMPANIONS:
        return False
    wanted = COMPANIONS[suffix]
    return any(
        other != file
        and other.with_suffix("") == file.with_suffix("")
        and (wanted is None or other.suffix.lower() in wanted)
        for other in files
    )
