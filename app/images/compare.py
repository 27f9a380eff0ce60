"""Two images against each other: their difference, a flicker between them, a swipe over them."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QKeyEvent, Qt
from PySide6.QtWidgets import QWidget

from app.images import colours
from app.images.display import LinkedView
from app.images.pane import ImagePane
from app.images.swipe import SwipeView
from app.images.text import unit_of, value_text
from app.images.view import PaneView
from app.images.window import TAIL, WindowLevel, WindowModel

FLICKER_MS: Final = 500  # twice a second
DIFFERENCE_HU: Final = 200.0  # fixed, so that two difference maps can be compared
DIVIDER_STEP: Final = 0.05


class SymmetricWindow(WindowModel):
    """A window about zero: what a difference is seen through."""

    def set(self, window: WindowLevel) -> None:
        low, high = window.levels
        half = (high - low) / 2
        super().set(WindowLevel.from_range(-half, half, window.invert))

    def reset(self, modality: str, image: np.ndarray) -> None:
        if modality == "CT":
            self.set(WindowLevel.from_range(-DIFFERENCE_HU, DIFFERENCE_HU))
        else:
            self.set(symmetric_auto(image))


def symmetric_auto(image: np.ndarray, invert: bool = False) -> WindowLevel:
    """About zero, as far as the differences reach without their tail."""
    values = np.abs(image[np.isfinite(image)])
    half = float(np.quantile(values, 1 - TAIL)) if values.size else 1.0
    return WindowLevel.from_range(-half, half, invert)


class _Sources:
    """The two panes looked at; kept up to date while they are set."""

    def __init__(self, owner: ComparePane) -> None:
        self._owner = owner
        self.a: ImagePane | None = None
        self.b: ImagePane | None = None

    def set(self, a: ImagePane | None, b: ImagePane | None) -> None:
        for pane in {self.a, self.b}:
            if pane is not None:
                pane.image_changed.disconnect(self._owner.update_images)
        self.a, self.b = a, b
        for pane in {a, b}:
            if pane is not None:
                pane.image_changed.connect(self._owner.update_images)


class ComparePane(ImagePane):
    """A pane that shows two others; subclasses say how."""

    def __init__(
        self,
        link: LinkedView,
        window_model: WindowModel | None = None,
        parent: QWidget | None = None,
    ) -> None:
        self.sources = _Sources(self)
        super().__init__(link, window_model, parent)
        self.set_empty_text("Nothing to compare yet: both panes need an image.")

    def set_sources(self, a: ImagePane | None, b: ImagePane | None) -> None:
        self.sources.set(a, b)
        if a is not None:
            self.annotations.placement = a.annotations.placement
            self.annotations.patient = a.annotations.patient
        self.update_images()

    def images(self) -> tuple[np.ndarray, np.ndarray] | None:
        a, b = self.sources.a, self.sources.b
        if a is None or b is None or a.image is None or b.image is None:
            return None
        return a.image, b.image

    def update_images(self) -> None:
        raise NotImplementedError

    def names(self) -> tuple[str, str]:
        a, b = self.sources.a, self.sources.b
        return a.name if a is not None else "", b.name if b is not None else ""

    def detach(self) -> None:
        self.set_sources(None, None)
        super().detach()


class DifferencePane(ComparePane):
    """A - B with a scale, a colour map and a colour bar of its own."""

    def __init__(self, link: LinkedView, parent: QWidget | None = None) -> None:
        self._scale = SymmetricWindow()
        super().__init__(link, self._scale, parent)
        self._scale.setParent(self)
        self.set_colour_bar(True)
        self.set_run_lines("Difference")

    def update_images(self) -> None:
        pair, source = self.images(), self.sources.a
        if pair is None or source is None:
            self.clear()
        elif pair[0].shape != pair[1].shape:
            self.set_empty_text("No difference: the two images differ in size.")
            self.clear()
        else:
            self.set_image(pair[0] - pair[1], source.view.pixel_mm, source.modality)
        self.set_caption("{} − {}".format(*self.names()))

    def auto_window(self) -> WindowLevel | None:
        if self.image is None:
            return None
        return symmetric_auto(self.image, self.window_model.window.invert)

    def lookup_table(self) -> np.ndarray:
        table = colours.DIVERGING
        return table[::-1] if self.window_model.window.invert else table

    def window_text(self) -> str:
        high = self.window_model.window.levels[1]
        return f"± {value_text(high, self.modality)} {unit_of(self.modality)}"


class BlendPane(ComparePane):
    """A and B in one place: in turn (flicker), or side by side at a divider (swipe)."""

    shown_changed = Signal(bool)  # whether A is shown, while flickering

    view: SwipeView

    def __init__(self, link: LinkedView, parent: QWidget | None = None) -> None:
        self.image_b: np.ndarray | None = None
        self.swiping = False
        self.showing_a = True
        super().__init__(link, parent=parent)
        self.timer = QTimer(self)
        self.timer.setInterval(FLICKER_MS)
        self.timer.timeout.connect(self.toggle)
        self.view.divider_moved.connect(self.refresh_overlay)

    def make_view(self) -> PaneView:
        return SwipeView(self.link, self.window_model)

    def set_swiping(self, swiping: bool) -> None:
        """True: divider; False: flicker."""
        self.swiping = swiping
        self.set_run_lines("Swipe" if swiping else "Flicker")
        if swiping:
            self.set_running(False)
        self._show()

    def set_running(self, running: bool) -> None:
        """Flicker by itself, twice a second, or only by key."""
        if running:
            self.timer.start()
        else:
            self.timer.stop()

    def toggle(self) -> None:
        self.showing_a = not self.showing_a
        self._show()
        self.shown_changed.emit(self.showing_a)

    def set_divider(self, part: float) -> None:
        self.view.set_divider(part)

    def update_images(self) -> None:
        pair, a, b = self.images(), self.sources.a, self.sources.b
        if pair is None or a is None or b is None:
            self.image_b = None
            self.clear()
            self.view.item_b.setVisible(False)
        else:
            self.image_b = pair[1]
            self.view.set_b(b.view.image_item.image, b.view.pixel_mm)
            self.set_image(pair[0], a.view.pixel_mm, a.modality)
        self._show()

    def _show(self) -> None:
        a, b = self.names()
        if self.swiping:
            self.view.show_swipe()
            self.set_caption(f"{a} | {b}")
        else:
            self.view.show_only(self.showing_a)
            self.set_caption(f"A: {a}" if self.showing_a else f"B: {b}")
        source = self.sources.a if self.showing_a else self.sources.b
        self.set_run_style(None if self.swiping or source is None else source.run_style)
        self.refresh_overlay()

    def _apply_window(self, window: WindowLevel) -> None:
        self.view.item_b.setLookupTable(self.lookup_table())
        self.view.item_b.setLevels(window.levels)
        super()._apply_window(window)

    def value_at(self, point: tuple[float, float]) -> tuple[float, tuple[int, int]] | None:
        if self.image_b is None or not self.view.shows_b(point):
            return super().value_at(point)
        pixel = self.view.pixel_of_b(point)
        return (float(self.image_b[pixel[1], pixel[0]]), pixel) if pixel is not None else None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        if self.swiping and steps:
            self.set_divider(self.view.divider + steps * DIVIDER_STEP)
        else:
            super().keyPressEvent(event)

    def detach(self) -> None:
        self.set_running(False)
        super().detach()
