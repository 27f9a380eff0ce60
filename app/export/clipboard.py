"""What is on the screen, to the clipboard or to a picture file.

A pane's picture carries its marks; a patient's name that is masked there stays masked.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtCore import QAbstractItemModel, QBuffer, QIODevice, QModelIndex, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QWidget

from app.images.pane import ImagePane
from app.tasks import Done, Failed, Tasks
from engine.spec.errors import DualscopeError


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
            from engine.export.dicom_capture import write_secondary_capture

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
