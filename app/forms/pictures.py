"""Arrays as small pictures on black: the sinogram strip, the k-space mask, the preview."""

from __future__ import annotations

from collections.abc import Sequence

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


class MaskPicture(Picture):
    """Measured k-space in white: phase-encode lines from left to right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("k-space mask", "The mask appears here once data are open.", parent)
        self.sampled: NDArray[np.bool_] | None = None

    def sizeHint(self) -> QSize:
        return QSize(288, 72)

    def set_mask(self, sampled: NDArray[np.bool_] | None, words: str = "") -> None:
        """``(W,)`` lines or a whole ``(H, W)`` plane."""
        self.sampled = None if sampled is None else np.asarray(sampled, dtype=bool)
        self.describe(words or self.empty)
        self.update()

    def say(self, sentence: str) -> None:
        """Why there is no mask to show."""
        self.sampled = None
        self.empty = sentence
        self.describe(sentence)
        self.update()

    def paint_picture(self, painter: QPainter, area: QRect) -> bool:
        if self.sampled is None:
            return False
        ratio = self.devicePixelRatioF()
        columns = max(1, round(area.width() * ratio))
        if self.sampled.ndim == 1:
            plane = any_in(self.sampled, columns)[None, :]
        else:
            rows = max(1, round(area.height() * ratio))
            tall = np.stack([any_in(column, rows) for column in self.sampled.T], axis=1)
            plane = np.stack([any_in(row, columns) for row in tall])
        pixels = np.ascontiguousarray(plane.astype(np.uint8) * 235)
        height, width = pixels.shape
        image = QImage(pixels.data, width, height, width, QImage.Format.Format_Grayscale8)
        painter.drawImage(area, image)
        painter.setPen(Qt.GlobalColor.darkGray)
        painter.drawRect(area.adjusted(0, 0, -1, -1))
        return True


MARKS = 6  # height of the marks under the kept views


class SinogramStrip(Picture):
    """Views from left to right, detector from top to bottom; dropped views are dimmed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Sinogram", "The sinogram appears here once data are open.", parent)
        self.sinogram: NDArray | None = None  # [views, detectors]
        self.kept = np.zeros(0, dtype=bool)

    def sizeHint(self) -> QSize:
        return QSize(288, 88)

    def set_sinogram(self, sinogram: NDArray | None, kept: Sequence[int] | None = None) -> None:
        """``sinogram`` is ``[views, detectors]``; ``kept`` the numbers of the views in use."""
        usable = sinogram is not None and sinogram.ndim == 2 and sinogram.size > 0
        self.sinogram = sinogram if usable else None
        self.set_kept(kept)

    def set_kept(self, kept: Sequence[int] | None) -> None:
        """None keeps all views."""
        views = 0 if self.sinogram is None else len(self.sinogram)
        self.kept = np.ones(views, dtype=bool)
        if kept is not None:
            self.kept[:] = False
            numbers = np.asarray(kept, dtype=np.intp)
            self.kept[numbers[(numbers >= 0) & (numbers < views)]] = True
        self.describe(self.words())
        self.update()

    def words(self) -> str:
        if self.sinogram is None:
            return self.empty
        views, bins = self.sinogram.shape
        used = int(self.kept.sum())
        text = f"Sinogram of {views} views and {bins} detector bins"
        if used == views:
            return text + ": all views are used."
        return text + f": {used} views are used, the {views - used} dimmed ones are dropped."

    def paint_picture(self, painter: QPainter, area: QRect) -> bool:
        if self.sinogram is None:
            return False
        columns = max(1, round(area.width() * self.devicePixelRatioF()))
        kept = any_in(self.kept, columns)
        shown = self._shown_views(columns)
        image = gray(self.sinogram[shown].T, np.broadcast_to(~kept, (self._bins, columns)))
        painter.drawImage(area.adjusted(0, 0, 0, -MARKS), image)
        step = area.width() / columns
        for column in np.flatnonzero(kept):
            mark = QRect(int(column * step), area.bottom() - MARKS + 3, max(1, int(step)), MARKS)
            painter.fillRect(mark, KEPT_COLOUR)
        return True

    @property
    def _bins(self) -> int:
        return 0 if self.sinogram is None else int(self.sinogram.shape[1])

    def _shown_views(self, columns: int) -> NDArray[np.intp]:
        """One view per pixel column: a kept one, when there is one in it."""
        first, last = spread(self.kept.size, columns)
        following = np.where(self.kept, np.arange(self.kept.size), self.kept.size)
        following = np.minimum.accumulate(following[::-1])[::-1]  # the next kept view
        candidate = following[first]
        return np.where(candidate < last, candidate, first)
