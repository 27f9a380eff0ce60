"""Arrays as small pictures on black: the sinogram strip, the k-space mask, the preview."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

ON_BLACK = QColor(200, 200, 200)  # words inside a picture, which is black in every theme
KEPT_COLOUR = QColor("#56B4E9")
DIMMED = 0.28


def gray(array: NDArray, dim: NDArray[np.bool_] | None = None) -> QImage:
    """An 8-bit picture from darkest to brightest; dimmed where ``dim`` is true."""
    values = np.nan_to_num(np.asarray(array, dtype=np.float32), posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    scaled = (values - low) * (255.0 / (high - low)) if high > low else values * 0.0
    if dim is not None:
        scaled = np.where(dim, DIMMED * scaled, scaled)
    pixels = np.ascontiguousarray(scaled.astype(np.uint8))
    height, width = pixels.shape
    image = QImage(pixels.data, width, height, width, QImage.Format.Format_Grayscale8)
    return image.copy()  # its own memory: the array goes away


def spread(count: int, pixels: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First and one-past-last of ``count`` things that each of ``pixels`` columns shows."""
    edges = np.arange(pixels + 1) * count / max(pixels, 1)
    first = np.floor(edges[:-1]).astype(np.intp)
    last = np.maximum(first + 1, np.ceil(edges[1:]).astype(np.intp))
    return first, np.minimum(last, count)


def any_in(flags: NDArray[np.bool_], pixels: int) -> NDArray[np.bool_]:
    """Per pixel, whether any flag that falls into it is set: thin lines must not vanish."""
    total = np.concatenate(([0], np.cumsum(flags)))
    first, last = spread(flags.size, pixels)
    return np.asarray(total[last] > total[first])


class Picture(QWidget):
    """A black rectangle with an image in it, or a sentence that says what to do."""

    def __init__(self, name: str, empty: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.empty = empty
        self.setAccessibleName(name)
        self.describe(empty)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def describe(self, words: str) -> None:
        self.setAccessibleDescription(words)
        self.setToolTip(words)

    def sizeHint(self) -> QSize:
        return QSize(288, 96)

    def minimumSizeHint(self) -> QSize:
        return QSize(96, 64)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), Qt.GlobalColor.black)
        if not self.paint_picture(painter, self.rect()):
            painter.setPen(ON_BLACK)
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(8, 8, -8, -8), int(flags), self.empty)

    def paint_picture(self, painter: QPainter, area: QRect) -> bool:
        """Paint and say whether there was anything."""
        return False


class ArrayPicture(Picture):
    """An image in its own shape, as large as fits."""

    def __init__(self, name: str, empty: str, parent: QWidget | None = None) -> None:
        super().__init__(name, empty, parent)
        self.image: QImage | None = None

    def sizeHint(self) -> QSize:
        return QSize(256, 256)

    def set_array(self, array: NDArray | None, words: str = "") -> None:
        self.image = None if array is None or array.size == 0 else gray(array)
        self.describe(words or self.empty)
        self.update()

    def paint_picture(self, painter: QPainter, area: QRect) -> bool:
        if self.image is None:
            return False
        size = self.image.size().scaled(area.size(), Qt.AspectRatioMode.KeepAspectRatio)
        target = QRect(0, 0, size.width(), size.height())
        target.moveCenter(area.center())
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawImage(target, self.image)
        return True
