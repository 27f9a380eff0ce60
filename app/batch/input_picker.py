"""Which slices an experiment is made on."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QFileDialog

from app.batch.model import Inputs
from app.forms.fields import CalmCombo

PHANTOMS, OPEN, CHOSEN, FILES, FOLDER = "phantoms", "open", "chosen", "files", "folder"
TITLES: Final = {FILES: "Files for the experiment", FOLDER: "Folder for the experiment"}
NO_DATA: Final = "Nothing is open in the main window."


class InputPicker(CalmCombo):
    """Phantoms, what the main window shows, or files and folders from a dialog."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.open_data: Inputs | None = None
        self.chosen = Inputs()
        self._last = PHANTOMS
        self.setAccessibleName("Inputs")
        self.setToolTip("What the slices are taken from; the scans are simulated from them.")
        self.addItem("Phantoms, all different", PHANTOMS)
        self.addItem("The open data", OPEN)
        self.addItem("Files…", FILES)
        self.addItem("Folder…", FOLDER)
        self.activated.connect(self._on_activated)
        self.set_open(None)

    def value(self) -> Inputs:
        if self._last == OPEN and self.open_data is not None:
            return self.open_data
        return self.chosen if self._last == CHOSEN else Inputs()

    def set_open(self, data: Inputs | None) -> None:
        """What the main window shows now."""
        self.open_data = data
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        item = model.item(self.findData(OPEN))
        item.setEnabled(data is not None)
        item.setToolTip("" if data is not None else NO_DATA)
        if data is None and self._last == OPEN:
            self._select(PHANTOMS)

    @Slot()
    def _on_activated(self) -> None:
        key = self.currentData()
        if key not in TITLES:
            self._select(key)
            return
        self.setCurrentIndex(self.findData(self._last))  # until the dialog has an answer
        dialog = QFileDialog(self.window(), TITLES[key])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        many, one = QFileDialog.FileMode.ExistingFiles, QFileDialog.FileMode.Directory
        dialog.setFileMode(many if key == FILES else one)
        dialog.filesSelected.connect(self.take_files)
        dialog.open()

    @Slot(list)
    def take_files(self, paths: list[str]) -> None:
        """The answer of the dialog."""
        if not paths:
            return
        self.chosen = Inputs(tuple(str(Path(path).absolute()) for path in paths))
        words = Path(paths[0]).name if len(paths) == 1 else f"{len(paths)} files"
        if (known := self.findData(CHOSEN)) >= 0:
            self.removeItem(known)
        self.insertItem(self.findData(FILES), words, CHOSEN)
        self.setItemData(
            self.findData(CHOSEN), "\n".join(self.chosen.texts), Qt.ItemDataRole.ToolTipRole
        )
        self._select(CHOSEN)

    def _select(self, key: str) -> None:
        self._last = key
        self.setCurrentIndex(self.findData(key))
        self.changed.emit()
