"""What the mouse does to an image: the set that users of OHIF have in their hands.

Left drag windows (or what the tool says), middle pans, right zooms, a right click opens the
menu, the wheel turns slices, Ctrl+wheel zooms, Shift+move sets the crosshair. A drag is a
function of where the mouse is now against where it was pressed, so no event that gets lost
changes the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QWheelEvent

from app.images.display import LinkedView, Tool
from app.images.measure import Drawing, Kind
from app.images.window_level import WindowModel

Drag = Callable[[QPointF], None]

ZOOM_PIXELS: Final = 100  # dragging so far down doubles the zoom
REACH_PX: Final = 8  # how near the mouse must be to a corner to take hold of it
SMALLEST_PX: Final = 3  # a shorter stroke is a click, not a region
WHEEL_NOTCH: Final = 120  # eighths of a degree

_Button = Qt.MouseButton


class Surface(Protocol):
    """What the mouse needs of a pane."""

    link: LinkedView
    window_model: WindowModel

    def to_mm(self, position: QPointF) -> tuple[float, float]: ...

    def pixels_per_mm(self) -> float: ...

    def take_hold(self, position: QPointF) -> Drag | None: ...

    def ask_menu(self, position: QPointF) -> None: ...


class MouseActions:
    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._drag: Drag | None = None
        self._follow: Drag | None = None  # what the mouse does while no button is down
        self._button = _Button.NoButton
        self._start, self._moved = QPointF(), False
        self._wheel = 0

    @property
    def dragging(self) -> bool:
        return self._drag is not None

    def press(self, button: Qt.MouseButton, position: QPointF) -> None:
        if self._drag is not None:  # a second button changes nothing until the first is up
            return
        if self._follow is not None:  # a click ends what followed the mouse
            self._follow(position)
            self.cancel()
            return
        begin = {
            _Button.LeftButton: self._begin_left,
            _Button.MiddleButton: self._begin_pan,
            _Button.RightButton: self._begin_zoom,
        }.get(button)
        if begin is not None:
            self._button, self._start, self._moved = button, position, False
            self._drag = begin(position)

    def move(self, position: QPointF, modifiers: Qt.KeyboardModifier) -> None:
        link = self._surface.link
        self._moved |= _far(self._start, position)
        if (moving := self._drag or self._follow) is not None:
            moving(position)
        elif modifiers & Qt.KeyboardModifier.ShiftModifier:
            link.set_crosshair(self._surface.to_mm(position))
        link.set_cursor(self._surface.to_mm(position))

    def release(self, button: Qt.MouseButton, position: QPointF) -> None:
        if self._drag is not None and button == self._button:
            self._drag(position)
            self._drag, self._button = None, _Button.NoButton
            if self._follow is None:
                self._surface.link.measurements.settle()
            if button == _Button.RightButton and not (self._moved or _far(self._start, position)):
                self._surface.ask_menu(position)

    def cancel(self) -> None:
        """Nothing is dragged any more; what was drawn stays."""
        self._drag = self._follow = None
        self._button = _Button.NoButton
        self._surface.link.measurements.settle()

    def wheel(self, event: QWheelEvent) -> None:
        # Alt turns the wheel sideways on some systems; touchpads send parts of a notch
        delta = event.angleDelta().y() or event.angleDelta().x()
        link = self._surface.link
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            link.zoom_by(delta / WHEEL_NOTCH, self._surface.to_mm(event.position()))
            return
        self._wheel += delta
        notches = math.trunc(self._wheel / WHEEL_NOTCH)
        self._wheel -= notches * WHEEL_NOTCH
        if notches:
            link.step_slice(-notches)  # towards the user: the next slice

    def _begin_left(self, start: QPointF) -> Drag:
        held = self._surface.take_hold(start)
        if held is not None:
            return held
        match self._surface.link.tool:
            case Tool.WINDOW:
                return self._begin_window(start)
            case Tool.PAN:
                return self._begin_pan(start)
            case Tool.ZOOM:
                return self._begin_zoom(start)
            case tool:
                return self._begin_drawing(start, Kind(tool.value))

    def _begin_window(self, start: QPointF) -> Drag:
        model = self._surface.window_model
        window = model.window

        def drag(now: QPointF) -> None:
            if now != start:
                model.set(window.dragged(now.x() - start.x(), now.y() - start.y()))

        return drag

    def _begin_pan(self, start: QPointF) -> Drag:
        link = self._surface.link
        centre = link.state.centre
        scale = self._surface.pixels_per_mm()
        turn = link.state.orientation

        def drag(now: QPointF) -> None:
            dx, dy = turn.to_image(now.x() - start.x(), now.y() - start.y())
            link.set_centre((centre[0] - dx / scale, centre[1] - dy / scale))

        return drag

    def _begin_zoom(self, start: QPointF) -> Drag:
        link = self._surface.link
        zoom = link.state.zoom
        anchor = self._surface.to_mm(start)

        def drag(now: QPointF) -> None:
            if self._moved or _far(start, now):  # else it is a click
                link.set_zoom(zoom * 2 ** ((now.y() - start.y()) / ZOOM_PIXELS), anchor)

        return drag

    def _begin_drawing(self, start: QPointF, kind: Kind) -> Drag:
        surface, drawn = self._surface, self._surface.link.measurements
        first = surface.to_mm(start)
        for old in sorted(drawn.shown(), key=lambda one: one.number != drawn.selected):
            reach, inside = REACH_PX / surface.pixels_per_mm(), old.number == drawn.selected
            if (held := old.grabbed(first, reach, inside)) is not None:
                drawn.select(old.number)
                return self._pulled(start, held)
        drawn.select(None)
        one = drawn.new(kind, (first, first))
        outline = [first]

        def draw(now: QPointF) -> None:
            if not (self._moved or _far(start, now)):
                return
            here = surface.to_mm(now)
            if kind is Kind.FREEHAND and math.dist(here, outline[-1]) > 0:
                outline.append(here)
            points = tuple(outline) if kind is Kind.FREEHAND else (first, here)
            drawn.put(replace(one, points=points))
            if kind is Kind.ANGLE:
                self._follow = partial(self._second_leg, one.number)

        return draw

    def _pulled(self, start: QPointF, held: Drawing) -> Drag:
        surface = self._surface

        def pull(now: QPointF) -> None:
            if self._moved or _far(start, now):  # a click only selects
                self._moved = True
                surface.link.measurements.put(held(surface.to_mm(now)))

        return pull

    def _second_leg(self, number: int, now: QPointF) -> None:
        """After the first leg of an angle is drawn, the second one follows the mouse."""
        drawn = self._surface.link.measurements
        one = drawn.get(number)
        if one is not None:
            drawn.put(replace(one, points=(*one.points[:2], self._surface.to_mm(now))))


def _far(start: QPointF, now: QPointF) -> bool:
    return max(abs(now.x() - start.x()), abs(now.y() - start.y())) >= SMALLEST_PX
