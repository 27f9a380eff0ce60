"""What leaves the window: exports, pictures, what goes to the clipboard.

A pane's picture carries its marks; a patient's name that is masked there stays masked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QAbstractItemModel, QBuffer, QIODevice, QModelIndex, QObject, Qt, Slot
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QWidget

from app.context import AppContext
from app.export.plan import Shown
from app.images.display import LinkedView
from app.images.pane import ImagePane
from app.tasks import Done, Failed, Tasks
from app.widgets import ask_new_file
from engine.spec.errors import DualscopeError

if TYPE_CHECKING:
    from app.export.dialog import ExportDialog


def copy_image(image: QImage) -> None:
    QGuiApplication.clipboard().setImage(image)


def copy_pane(pane: ImagePane) -> None:
    copy_image(pane.picture())


def copy_widget(widget: QWidget) -> None:
    """A plot, or any other part of the window, as it looks."""
    copy_image(widget.grab().toImage())


def copy_table(model: QAbstractItemModel) -> None:
    """A table as text that spreadsheets take apart by themselves."""
    QGuiApplication.clipboard().setText(table_text(model))


def table_text(model: QAbstractItemModel) -> str:
    """Tab-separated, with the headings first."""
    columns = range(model.columnCount())
    across, shown = Qt.Orientation.Horizontal, Qt.ItemDataRole.DisplayRole
    lines = [[_cell(model.headerData(column, across, shown)) for column in columns]]
    for row in range(model.rowCount()):
        cells = [model.index(row, column, QModelIndex()) for column in columns]
        lines.append([_cell(model.data(cell, shown)) for cell in cells])
    return "\n".join("\t".join(line) for line in lines) + "\n"


def _cell(value: object) -> str:
    """One cell stays one cell: no tabs, no line breaks; no text that a spreadsheet would run."""
    text = " ".join(str(value).split()) if value is not None else ""
    return f"'{text}" if text[:1] in ("=", "@") else text


def png_bytes(image: QImage) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not image.save(buffer, "PNG"):  # type: ignore[call-overload]
        raise DualscopeError("The picture cannot be made: there is nothing to see.")
    return bytes(buffer.data().data())


def save_picture(
    image: QImage, path: Path, tasks: Tasks, done: Done, failed: Failed | None = None
) -> None:
    """Write a PNG, or a DICOM capture where the name says so, off the GUI thread.

    It is written beside and then renamed; ``done`` gets the path.
    """

    def work() -> Path:
        if path.suffix.lower() == ".dcm":
            from engine.export.dicom import write_secondary_capture

            title = f"Dualscope {image.text('Title')}".strip()
            write_secondary_capture(path, rgb_of(image), title=title, marks=None)
            return path
        from engine.files.atomic import write_bytes_atomic

        write_bytes_atomic(path, png_bytes(image))
        return path

    tasks.start(f"Saving {path.name}", work, done, failed)


def save_pane(
    pane: ImagePane, path: Path, tasks: Tasks, done: Done, failed: Failed | None = None
) -> None:
    save_picture(pane.picture(), path, tasks, done, failed)


def rgb_of(image: QImage) -> np.ndarray:
    image = image.convertToFormat(QImage.Format.Format_RGB888)
    lines = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1)
    return lines[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).copy()


NO_IMAGE = "There is no image yet: open data first."


class ExportController(QObject):
    """Part of the File and Edit menus' work; it reads what is shown and changes nothing of it."""

    def __init__(self, context: AppContext) -> None:
        super().__init__(context.window)
        self.context = context
        self.dialog: ExportDialog | None = None
        context.picture_source.connect(self.serve)
        self.serve(context.grid.link)

    @Slot(object)
    def serve(self, link: LinkedView) -> None:
        """Its panes offer to save and copy their pictures."""
        link.offers_pictures = True
        link.save_wanted.connect(self.save_picture_of)
        link.copy_wanted.connect(self.copy_image_of)

    # -- exporting --------------------------------------------------------------------------

    def shown(self) -> Shown:
        """What an export would be of."""
        context = self.context
        level = context.grid.link.window
        data = context.setup.data
        current = context.store.get(context.panes.current) if context.panes.current else None
        return Shown(
            current=current,
            visible=tuple(context.panes.shown()),
            slice=context.panes.slice,
            window=(level.centre, level.width),
            corner=context.grid.link.mark_corner,
            patient=data is None or bool(data.patient),
        )

    def export(self) -> None:
        if self.dialog is None:
            from app.export.dialog import ExportDialog

            self.dialog = ExportDialog(self.context.tasks, self.context.window)
            self.dialog.restore(self.context.settings.get("export") or {})
            self.dialog.finished.connect(self._remember)
            self.dialog.finished_export.connect(self._on_exported)
        self.dialog.show_for(self.shown())

    def refresh(self) -> None:
        """Runs, slice or window have changed."""
        if self.dialog is not None and self.dialog.isVisible():
            self.dialog.update_shown(self.shown())

    def _remember(self) -> None:
        if self.dialog is not None:
            self.context.settings.set("export", self.dialog.state())

    def _on_exported(self, outcome: Any) -> None:
        if outcome.failed:
            self.context.messages.error(outcome.words, outcome.details)
        else:
            self.context.messages.notice(outcome.words)

    # -- pictures ---------------------------------------------------------------------------

    def pane(self) -> ImagePane | None:
        """The image with the focus, else the current run's, else the first."""
        grid, panes = self.context.grid, self.context.panes
        everyone = [grid.pane(key) for key in grid]
        everyone += [grid.extra(key) for key in grid.extra_keys()]
        if grid.compare_pane is not None:
            everyone.append(grid.compare_pane)
        for pane in everyone:
            if pane.hasFocus():
                return pane
        if panes.current is not None and panes.current in grid:
            return grid.pane(panes.current)
        return everyone[0] if everyone else None

    def copy_image(self) -> None:
        self.copy_image_of(self.pane())

    def copy_image_of(self, pane: ImagePane | None) -> None:
        if pane is None:
            self.context.messages.notice(NO_IMAGE)
        else:
            copy_pane(pane)
            self.context.messages.notice(f"{pane.name} is on the clipboard.")

    def copy_curves(self) -> None:
        copy_widget(self.context.center.plots.body)
        self.context.messages.notice("The curves are on the clipboard.")

    def copy_table(self) -> None:
        copy_table(self.context.right.table.model)
        self.context.messages.notice("The table of runs is on the clipboard.")

    def save_picture(self) -> None:
        self.save_picture_of(self.pane())

    def save_picture_of(self, pane: ImagePane | None) -> None:
        if pane is None:
            self.context.messages.notice(NO_IMAGE)
            return

        def chosen(path: str) -> None:
            self.context.keep_folder("picture", str(Path(path).parent))
            save_pane(pane, Path(path), self.context.tasks, self._on_saved)

        kinds = "PNG pictures (*.png);;DICOM captures (*.dcm)"
        start = self.context.folder_for("picture")
        window = self.context.window
        ask_new_file(window, "Save the picture", start, kinds, "dualscope.png", chosen)

    def _on_saved(self, path: Path) -> None:
        self.context.messages.notice(f"{path.name} was written.")

    def close(self) -> None:
        if self.dialog is not None:
            self.dialog.cancel()
            self.dialog.close()
