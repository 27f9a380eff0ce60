"""The sinogram with the views that are kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from app.forms.pictures import KEPT_COLOUR, Picture, any_in, gray, spread

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
