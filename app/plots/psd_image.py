"""Noise power as pictures: which directions and frequencies the measurement left empty."""

from __future__ import annotations

from typing import Any, Final

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QFont, QPalette
from PySide6.QtWidgets import QDialog, QWidget

from app.plots.curves import adopt_menu
from app.theme import SMALLEST_TEXT_PX
from app.widgets import in_column

LEVELS_DB: Final = (-40.0, 20.0)
TITLES: Final = {"residual": "before homogenization", "homogenized": "after homogenization"}


class PsdImages(pg.GraphicsLayoutWidget):
    """The spectrum before and after homogenization, in dB relative to the white target.

    The zero frequency is in the middle; 0 dB is just enough noise, dark is too little.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self.setBackground(None)
        self.setAccessibleName("Two-dimensional noise power, dB relative to the target")
        self.setToolTip(
            "Noise power over both frequencies, zero in the middle: 0 dB is what the denoiser "
            "expects, dark is missing."
        )
        colours = pg.colormap.get("viridis")
        self.images: dict[str, pg.ImageItem] = {}
        self.labels: dict[str, pg.LabelItem] = {}
        self.caption = self.addLabel("", row=0, col=0, colspan=3)
        for column, name in enumerate(TITLES):
            self.labels[name] = self.addLabel(TITLES[name], row=1, col=column)
            box = self.addViewBox(
                row=2, col=column, lockAspect=True, invertY=True, enableMenu=False
            )
            box.setMouseEnabled(False, False)
            item = pg.ImageItem(axisOrder="row-major", levels=LEVELS_DB)
            item.setLookupTable(colours.getLookupTable(nPts=256))
            box.addItem(item)
            self.images[name] = item
        self.bar = pg.ColorBarItem(
            values=LEVELS_DB, colorMap=colours, width=12, interactive=False, label="dB"
        )
        adopt_menu(self.bar, self)
        self.addItem(self.bar, row=2, col=2)
        for column in (0, 1):
            self.ci.layout.setColumnStretchFactor(column, 1)
            self.ci.layout.setColumnPreferredWidth(column, 240)  # whatever its title needs
        self.ci.layout.setColumnFixedWidth(2, 64)
        self._style()

    def sizeHint(self) -> QSize:
        return QSize(560, 320)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, 112)

    def show_frame(self, name: str, frame: Any) -> None:
        """``frame.psd_images`` of one run; a picture that is missing stays as it was."""
        for key, picture in frame.psd_images.items():
            if key in self.images:
                self.images[key].setImage(picture, autoLevels=False, levels=LEVELS_DB)
        self.caption.setText(f"{name}  k = {frame.k}")

    def _style(self) -> None:
        text = self.palette().color(QPalette.ColorRole.WindowText)
        font = QFont(self.font())
        font.setPixelSize(SMALLEST_TEXT_PX)
        for label in (self.caption, *self.labels.values()):
            label.setAttr("color", text.name())
            label.setAttr("size", f"{SMALLEST_TEXT_PX}px")
            label.setText(label.text)
        for side in ("left", "right"):  # the unit, the numbers
            axis = self.bar.getAxis(side)
            axis.setTickFont(font)
            axis.setTextPen(text)
            axis.setPen(text)
        self.resetCachedContent()  # the ground was painted once and kept

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "bar"):
            self._style()


class PsdWindow(QDialog):
    """The pictures in a window of their own, beside the run, never in its way."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Two-dimensional spectra")
        self.setModal(False)
        self.images = PsdImages(self)
        in_column(self.images, margins=8, parent=self)
