"""A map in colour over the grey image that it belongs to."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QGraphicsItem, QWidget

from app.images import colours
from app.images.display import LinkedView
from app.images.overlay import ColourBar
from app.images.pane import ImagePane
from app.images.text import value_text
from app.images.view import PaneView

DIMMED: Final = 0.6  # of the grey image under the map


def _see_through() -> np.ndarray:
    """RGBA from nothing at all to the brightest; small values let the image through."""
    rgb = colours.DIVERGING[len(colours.DIVERGING) // 2 :]
    alpha = 255 * np.linspace(0, 1, len(rgb)) ** 0.5
    return np.column_stack([rgb, alpha.round().astype(np.uint8)])


TABLE: Final = _see_through()


class OverlayView(PaneView):
    """The map lies between the image and the markers."""

    def make_image_item(self, parent: QGraphicsItem) -> pg.ImageItem:
        item = super().make_image_item(parent)
        item.setOpacity(DIMMED)
        self.map_item = super().make_image_item(parent)
        self.map_item.setLookupTable(TABLE)
        return item


class OverlayPane(ImagePane):
    """The image has the window of all others; the map its own scale and colour bar."""

    view: OverlayView

    def __init__(self, link: LinkedView, parent: QWidget | None = None) -> None:
        self.values: np.ndarray | None = None
        self.unit, self.full_scale = "", 1.0
        super().__init__(link, parent=parent)
        self.set_colour_bar(True)

    def make_view(self) -> PaneView:
        return OverlayView(self.link, self.window_model)

    def show_map(
        self,
        image: np.ndarray,
        values: np.ndarray,
        scale: tuple[float, str],
        pixel_mm: tuple[float, float],
        modality: str,
    ) -> None:
        """``values`` of the size of ``image``; ``scale`` is where the colours end, and the unit."""
        self.values, (self.full_scale, self.unit) = values, scale
        item = self.view.map_item
        item.setVisible(True)
        item.setImage(np.ascontiguousarray(values), levels=(0.0, self.full_scale))
        self.view.place(item, pixel_mm)
        self.set_image(image, pixel_mm, modality)

    def clear(self) -> None:
        self.values = None
        self.view.map_item.clear()
        self.view.map_item.setVisible(False)
        super().clear()

    def readout(self) -> str:
        found = self.value_at(self.link.cursor) if self.link.cursor is not None else None
        if found is None or self.values is None:
            return ""
        column, row = found[1]
        value = value_text(float(self.values[row, column]), "MR")
        return f"{value} {self.unit} over {value_text(found[0], self.modality)} @ ({column}, {row})"

    def _bar(self) -> ColourBar | None:
        table = np.ascontiguousarray(TABLE[:, :3])
        return ColourBar(table, "0", value_text(self.full_scale, "MR"), self.unit)
