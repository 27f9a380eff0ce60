"""The k-space mask as a picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QWidget

from app.forms.pictures import Picture, any_in


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
