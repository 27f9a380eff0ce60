"""The line profile of every pane in one plot, each in its run's colour and dashes."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QPalette, QPen
from PySide6.QtWidgets import QWidget

from app.images.inspector import PaneProfile
from app.images.text import unit_of
from app.plots.curves import adopt_menu
from app.theme import run_style


class ProfilePlot(pg.PlotWidget):
    """One curve per pane, made once and given new numbers afterwards."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Line profile")
        self.setToolTip("Shows the values along the line drawn on the images.")
        self.setMinimumSize(200, 120)
        item = self.getPlotItem()
        adopt_menu(item, self)
        item.setMenuEnabled(False)
        item.hideButtons()
        item.setLabel("bottom", "distance (mm)")
        item.showGrid(x=True, y=True, alpha=0.2)
        self._curves: dict[str, pg.PlotDataItem] = {}
        self._apply_palette()

    @property
    def curves(self) -> dict[str, pg.PlotDataItem]:
        return self._curves

    def set_profiles(self, profiles: Sequence[PaneProfile]) -> None:
        names = {profile.name for profile in profiles}
        for name in [name for name in self._curves if name not in names]:
            self.removeItem(self._curves.pop(name))
        for profile in profiles:
            curve = self._curves.get(profile.name)
            if curve is None:
                curve = self.plot(name=profile.name, connect="finite")
                self._curves[profile.name] = curve
            style = profile.style or run_style(profile.name)
            pen = QPen(QColor(style.colour), 1)
            pen.setCosmetic(True)
            if style.dash:
                pen.setDashPattern(list(style.dash))
            curve.setPen(pen)
            curve.setData(profile.distance_mm, profile.values)
        if profiles:
            self.getPlotItem().setLabel("left", unit_of(profiles[0].modality))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_curves"):
            self._apply_palette()

    def _apply_palette(self) -> None:
        palette = self.palette()
        text = palette.color(QPalette.ColorRole.Text)
        self.setBackground(None)
        self.resetCachedContent()  # the ground was painted once and kept
        for name in ("bottom", "left"):
            axis = self.getPlotItem().getAxis(name)
            axis.setPen(palette.color(QPalette.ColorRole.Mid))
            axis.setTextPen(text)
            font = self.font()
            font.setPixelSize(11)
            axis.setTickFont(font)
            axis.label.setFont(font)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
