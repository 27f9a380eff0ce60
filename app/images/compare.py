"""Two images against each other: their difference, a flicker between them, a swipe over them."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsLineItem, QGraphicsRectItem, QWidget

from app.images import colours
from app.images.display import LinkedView
from app.images.mouse import Drag
from app.images.pane import ImagePane
from app.images.text import unit_of, value_text
from app.images.view import PaneView, pixel_at
from app.images.window_level import WindowLevel, WindowModel

FLICKER_MS: Final = 500  # twice a second
TAIL: Final = 0.001  # of the differences: few are large, and those are what is looked for
DIFFERENCE_HU: Final = 200.0  # fixed, so that two difference maps can be compared
DIVIDER_STEP: Final = 0.05


class SymmetricWindow(WindowModel):
    """A window about zero: what a difference is seen through."""

    def set(self, window: WindowLevel, name: str = "") -> None:
        low, high = window.levels
        half = (high - low) / 2
        super().set(WindowLevel.from_range(-half, half, window.invert), name)

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


REACH_PX: Final = 8


class SwipeView(PaneView):
    """Image A left of the divider, B right of it; or only one of them."""

    divider_moved = Signal(float)

    def __init__(
        self, link: LinkedView, window_model: WindowModel, parent: QWidget | None = None
    ) -> None:
        super().__init__(link, window_model, parent)
        self.divider = 0.5  # part of the pane's width
        self.pixel_mm_b: tuple[float, float] = (1.0, 1.0)
        self._edge = 1.0  # where B begins: the divider, or an end of the pane
        # A under B under the markers: B's clip must not hide the crosshair and the region
        self._under = _group(self.scene(), -2)
        self.image_item.setParentItem(self._under)
        self._clip = QGraphicsRectItem()
        self._clip.setPen(QPen(Qt.PenStyle.NoPen))
        self._clip.setFlag(QGraphicsItem.GraphicsItemFlag.ItemClipsChildrenToShape)
        self._clip.setZValue(-1)
        self.scene().addItem(self._clip)
        self._background = QGraphicsRectItem(self._clip)  # where B has no pixels, A must not show
        self._background.setPen(QPen(Qt.PenStyle.NoPen))
        self._background.setBrush(QColor(0, 0, 0))
        self._over = QGraphicsRectItem(self._clip)
        self._over.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents)
        self.item_b = self.make_image_item(self._over)
        self._rule = QGraphicsLineItem()
        self._rule.setPen(QPen(QColor("#e8e8e8"), 1))
        self.scene().addItem(self._rule)
        self.apply_view()

    @property
    def swiping(self) -> bool:
        return self._rule.isVisible()

    def set_b(self, image: np.ndarray, pixel_mm: tuple[float, float]) -> None:
        """``image`` without NaN, for display."""
        self.item_b.setVisible(True)
        self.item_b.setImage(image, autoLevels=False)
        self.pixel_mm_b = pixel_mm
        self.place(self.item_b, pixel_mm)

    def show_swipe(self) -> None:
        self._rule.setVisible(True)
        self._edge = self.divider
        self._place_divider()

    def show_only(self, a: bool) -> None:
        self._rule.setVisible(False)
        self._edge = 1.0 if a else 0.0
        self._place_divider()

    def set_divider(self, part: float) -> None:
        self.divider = min(max(part, 0.0), 1.0)
        if self.swiping:
            self.show_swipe()
        self.divider_moved.emit(self.divider)

    def shows_b(self, point: tuple[float, float]) -> bool:
        """Whether B is what is seen at ``point`` mm."""
        return self.mm_to_screen().map(QPointF(*point)).x() >= self._edge * self.pane_size[0]

    def pixel_of_b(self, point: tuple[float, float]) -> tuple[int, int] | None:
        return pixel_at(self.item_b.image, self.pixel_mm_b, point)

    def _place_divider(self) -> None:
        width, height = self.pane_size
        x = self._edge * width
        self._clip.setRect(QRectF(x, 0, width - x, height))
        self._background.setRect(QRectF(0, 0, width, height))
        self._rule.setLine(QLineF(x, 0, x, height))

    def apply_view(self) -> None:
        super().apply_view()
        if hasattr(self, "_rule"):  # called once while the base is being built
            for canvas in (self._under, self._over):
                canvas.setTransform(self.mm_to_screen())
            self._place_divider()

    def _near_divider(self, position: QPointF) -> bool:
        return self.swiping and abs(position.x() - self.divider * self.pane_size[0]) <= REACH_PX

    def take_hold(self, position: QPointF) -> Drag | None:
        if not self._near_divider(position):
            return None
        return lambda now: self.set_divider(now.x() / self.pane_size[0])

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if self._near_divider(event.position()):
            self.viewport().setCursor(Qt.CursorShape.SplitHCursor)
        elif not self.mouse_actions.dragging:
            self._show_tool(self.link.tool)


def _group(scene: object, z: float) -> QGraphicsRectItem:
    item = QGraphicsRectItem()
    item.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents)
    item.setZValue(z)
    scene.addItem(item)  # type: ignore[attr-defined]
    return item
