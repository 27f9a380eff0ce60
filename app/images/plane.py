"""A pane for what is not the image itself: x, the dual u, x - z, the residual."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QWidget

from app.images import colours
from app.images.compare import SymmetricWindow, symmetric_auto
from app.images.display import LinkedView
from app.images.overlay import ColourBar
from app.images.pane import ImagePane
from app.images.text import value_text
from app.images.window_level import WindowLevel, WindowModel


class PlanePane(ImagePane):
    """Has a scale of its own, always with its colour bar; signed values diverge about zero.

    A residual lies in the space of the measurement, so it has a view of its own, too; the other
    planes move with the images they belong to.
    """

    def __init__(
        self, link: LinkedView | None, signed: bool, unit: str, parent: QWidget | None = None
    ) -> None:
        self.signed, self.unit = signed, unit
        model = SymmetricWindow() if signed else WindowModel()
        super().__init__(link, model, parent)
        if link is None:  # a residual has rays and angles, or frequencies: no mm
            self.link.set_source(1, False)
        model.setParent(self)
        self.set_colour_bar(True)

    def show_plane(
        self, values: np.ndarray, pixel_mm: tuple[float, float], modality: str, unit: str
    ) -> None:
        """Another frame; the scale follows the values until a person changes it."""
        self.unit = unit
        follow = self.image is None or self.window_model.window == self.auto_window()
        self.set_image(values, pixel_mm, modality)
        if follow and (window := self.auto_window()) is not None:
            self.window_model.set(window)

    def auto_window(self) -> WindowLevel | None:
        if self.image is None:
            return None
        automatic = symmetric_auto if self.signed else WindowLevel.auto
        return automatic(self.image, self.window_model.window.invert)

    def lookup_table(self) -> np.ndarray:
        if not self.signed:
            return super().lookup_table()
        return colours.DIVERGING[::-1] if self.window_model.window.invert else colours.DIVERGING

    def window_text(self) -> str:
        low, high = self.window_model.window.levels
        if self.signed:
            return f"± {value_text(high, 'MR')}"
        return f"{value_text(low, 'MR')} to {value_text(high, 'MR')}"

    def readout(self) -> str:
        found = self.value_at(self.link.cursor) if self.link.cursor is not None else None
        if found is None:
            return ""
        return f"{value_text(found[0], 'MR')} {self.unit} @ ({found[1][0]}, {found[1][1]})"

    def _bar(self) -> ColourBar | None:
        low, high = (value_text(level, "MR") for level in self.window_model.window.levels)
        return ColourBar(self.lookup_table(), low, high, self.unit)
