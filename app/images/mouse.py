"""What the mouse does to an image: the set that users of OHIF have in their hands.

Left drag windows (or what the tool says), middle pans, right zooms, the wheel turns
slices, Ctrl+wheel zooms, Shift+move sets the crosshair. A drag is a function of where the mouse
is now against where it was pressed, so no event that gets lost changes the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QWheelEvent

from app.images.display import LinkedView, Tool
from app.images.measure import Line, Region, Shape
from app.images.window_level import WindowModel

Drag = Callable[[QPointF], None]

ZOOM_PIXELS: Final = 100  # dragging so far down doubles the zoom
REACH_PX: Final = 8  # how near the mouse must be to a corner to take hold of it
SMALLEST_PX: Final = 3  # a shorter stroke is a click, not a region
WHEEL_NOTCH: Final = 120  # eighths of a degree

_Button = Qt.MouseButton
_SHAPES: Final = {Tool.RECTANGLE: Shape.RECTANGLE, Tool.ELLIPSE: Shape.ELLIPSE}


class Surface(Protocol):
    """What the mouse needs of a pane."""

    link: LinkedView
    window_model: WindowModel

    def to_mm(self, position: QPointF) -> tuple[float, float]: ...

    def pixels_per_mm(self) -> float: ...

    def take_hold(self, position: QPointF) -> Drag | None: ...


class MouseActions:
    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._drag: Drag | None = None
        self._button = _Button.NoButton
        self._wheel = 0

    @property
    def dragging(self) -> bool:
        return self._drag is not None

    def press(self, button: Qt.MouseButton, position: QPointF) -> None:
        if self._drag is not None:  # a second button changes nothing until the first is up
            return
        begin = {
            _Button.LeftButton: self._begin_left,
            _Button.MiddleButton: self._begin_pan,
            _Button.RightButton: self._begin_zoom,
        }.get(button)
        if begin is not None:
            self._button = button
            self._drag = begin(position)

    def move(self, position: QPointF, modifiers: Qt.KeyboardModifier) -> None:
        link = self._surface.link
        if self._drag is not None:
            self._drag(position)
        elif modifiers & Qt.KeyboardModifier.ShiftModifier:
            link.set_crosshair(self._surface.to_mm(position))
        link.set_cursor(self._surface.to_mm(position))

    def release(self, button: Qt.MouseButton, position: QPointF) -> None:
        if self._drag is not None and button == self._button:
            self._drag(position)
            self.cancel()

    def cancel(self) -> None:
        self._drag = None
        self._button = _Button.NoButton

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
        tool = self._surface.link.tool
        if tool in _SHAPES:
            return self._begin_region(start, _SHAPES[tool])
        return self._begin_line(start) if tool is Tool.LINE else self._begin_window(start)

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
            link.set_zoom(zoom * 2 ** ((now.y() - start.y()) / ZOOM_PIXELS), anchor)

        return drag

    def _begin_region(self, start: QPointF, shape: Shape) -> Drag:
        surface, measurements = self._surface, self._surface.link.measurements
        first = surface.to_mm(start)
        region = measurements.region
        if region is not None:
            corner = region.grabbed_at(first, REACH_PX / surface.pixels_per_mm())
            if corner is not None:
                return lambda now: measurements.set_region(
                    Region(corner.shape, corner.start, surface.to_mm(now))
                )
            if region.holds(first):

                def carry(now: QPointF) -> None:
                    x, y = surface.to_mm(now)
                    measurements.set_region(region.moved(x - first[0], y - first[1]))

                return carry

        def draw(now: QPointF) -> None:
            if _far(start, now):
                measurements.set_region(Region(shape, first, surface.to_mm(now)))

        return draw

    def _begin_line(self, start: QPointF) -> Drag:
        surface, measurements = self._surface, self._surface.link.measurements
        first = surface.to_mm(start)
        line, reach = measurements.line, REACH_PX / surface.pixels_per_mm()
        if line is not None:  # take hold of the end that is near
            for near, other in ((line.start, line.end), (line.end, line.start)):
                if math.dist(first, near) <= reach:
                    first = other
                    break

        def draw(now: QPointF) -> None:
            if _far(start, now):
                measurements.set_line(Line(first, surface.to_mm(now)))

        return draw


def _far(start: QPointF, now: QPointF) -> bool:
    return max(abs(now.x() - start.x()), abs(now.y() - start.y())) >= SMALLEST_PX
