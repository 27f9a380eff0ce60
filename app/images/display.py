"""What linked panes share: zoom, pan, turn, slice, crosshair. No widgets here.

Positions are in mm from the centre of the image, x along a row, y along a column, before any
turn: two panes that show the same field with other pixels stay on the same anatomy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QTransform

from app.images.measure import Measurements
from app.images.window_level import DEFAULT_CT, PRESETS, Preset, WindowLevel, WindowModel
from engine.spec.marks import CORNERS

__all__ = [
    "DEFAULT_CT",
    "PRESETS",
    "LinkedView",
    "Orientation",
    "Preset",
    "Tool",
    "ViewState",
    "WindowLevel",
    "WindowModel",
]

Point = tuple[float, float]

ZOOM_LIMITS: Final = (0.1, 50.0)
ZOOM_STEP: Final = 1.25  # of one key press or one notch of the wheel
MARGIN: Final = 0.98  # the fitted image leaves a hair of black around itself


class Tool(Enum):
    """What the left button does."""

    WINDOW = "window"
    PAN = "pan"
    ZOOM = "zoom"
    RULER = "ruler"
    ANGLE = "angle"
    ELLIPSE = "ellipse"
    RECTANGLE = "rectangle"
    FREEHAND = "freehand"
    ARROW = "arrow"


@dataclass(frozen=True)
class Orientation:
    """A turn of the picture by quarters, with or without mirroring: screen = M image."""

    xx: int = 1
    xy: int = 0
    yx: int = 0
    yy: int = 1

    def to_screen(self, x: float, y: float) -> Point:
        return self.xx * x + self.xy * y, self.yx * x + self.yy * y

    def to_image(self, x: float, y: float) -> Point:
        # the inverse of such a matrix is its transpose
        return self.xx * x + self.yx * y, self.xy * x + self.yy * y

    def rotated(self, clockwise: bool) -> Orientation:
        if clockwise:  # screen y points down: right becomes down
            return Orientation(-self.yx, -self.yy, self.xx, self.xy)
        return Orientation(self.yx, self.yy, -self.xx, -self.xy)

    def flipped_horizontally(self) -> Orientation:
        return Orientation(-self.xx, -self.xy, self.yx, self.yy)

    def flipped_vertically(self) -> Orientation:
        return Orientation(self.xx, self.xy, -self.yx, -self.yy)

    @property
    def mirrored(self) -> bool:
        return self.xx * self.yy - self.xy * self.yx < 0

    @property
    def degrees(self) -> int:
        """Clockwise turn, after the mirroring if there is one."""
        return {(1, 0): 0, (0, 1): 90, (-1, 0): 180, (0, -1): 270}[
            (-self.xx, -self.yx) if self.mirrored else (self.xx, self.yx)
        ]


@dataclass(frozen=True)
class ViewState:
    """``zoom`` 1 fits the field into the pane; ``centre`` is what the pane's middle shows."""

    zoom: float = 1.0
    centre: Point = (0.0, 0.0)
    orientation: Orientation = Orientation()
    slice: int = 0
    crosshair: Point | None = None

    def pixels_per_mm(self, pane: tuple[float, float], field: tuple[float, float]) -> float:
        """Screen pixels to a mm in a pane of ``pane`` pixels over a field of ``field`` mm."""
        width, height = (abs(v) for v in self.orientation.to_screen(*field))
        if min(width, height, *pane) <= 0:
            return 1.0
        return self.zoom * MARGIN * min(pane[0] / width, pane[1] / height)

    def transform(self, pane: tuple[float, float], field: tuple[float, float]) -> QTransform:
        """From mm of the image to pixels of the pane."""
        scale = self.pixels_per_mm(pane, field)
        m = self.orientation
        shown = m.to_screen(*self.centre)
        return QTransform(
            scale * m.xx,
            scale * m.yx,
            scale * m.xy,
            scale * m.yy,
            pane[0] / 2 - scale * shown[0],
            pane[1] / 2 - scale * shown[1],
        )


class LinkedView(QObject):
    """The one state that a group of panes shows; every pane writes to it and listens to it."""

    view_changed = Signal()  # zoom, pan or turn
    slice_changed = Signal(int)
    crosshair_changed = Signal()
    cursor_changed = Signal()
    tool_changed = Signal(object)
    save_wanted = Signal(object)  # the picture of this pane
    copy_wanted = Signal(object)
    mark_corner_changed = Signal(str)
    notice = Signal(str)  # something a person should read, such as why a key did nothing

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state = ViewState()
        self.window_model = WindowModel(parent=self)
        self.measurements = Measurements(self)
        self.slice_count = 1
        self.cursor: Point | None = None
        self.tool = Tool.WINDOW
        self.smooth = True  # between pixels; else each is a sharp square
        self.reading_step = 1  # towards the next InstanceNumber; slices are kept by their place
        self.spacing_known = True  # else a mm stands for a pixel, and none is written
        self.mark_corner = CORNERS[0]  # of saved pictures
        self.offers_pictures = False  # whether somebody saves and copies them
        self.offered: list[tuple[str, str, Callable[[], object]]] = []  # of the menu: words, icon
        self._fields: dict[int, tuple[float, float]] = {}

    @property
    def window(self) -> WindowLevel:
        return self.window_model.window

    @property
    def field(self) -> tuple[float, float]:
        """What zoom 1 fits, in mm: the widest and the highest of the images shown."""
        if not self._fields:
            return 1.0, 1.0
        return max(f[0] for f in self._fields.values()), max(f[1] for f in self._fields.values())

    def set_field(self, owner: int, field: tuple[float, float] | None) -> None:
        """A pane tells the extent of its image, or that it shows none."""
        before = self.field
        if field is None:
            self._fields.pop(owner, None)
        else:
            self._fields[owner] = field
        if self.field != before:
            self.view_changed.emit()

    def _set_view(self, state: ViewState) -> None:
        if state != self.state:
            self.state = state
            self.view_changed.emit()

    def set_zoom(self, zoom: float, anchor: Point | None = None) -> None:
        """Zoom, keeping ``anchor`` (mm) where it is on the screen."""
        zoom = min(max(zoom, ZOOM_LIMITS[0]), ZOOM_LIMITS[1])
        centre = self.state.centre
        if anchor is not None:
            part = 1 - self.state.zoom / zoom
            centre = (
                centre[0] + part * (anchor[0] - centre[0]),
                centre[1] + part * (anchor[1] - centre[1]),
            )
        self._set_view(replace(self.state, zoom=zoom, centre=centre))

    def zoom_by(self, steps: float, anchor: Point | None = None) -> None:
        self.set_zoom(self.state.zoom * ZOOM_STEP**steps, anchor)

    def set_centre(self, centre: Point) -> None:
        half = self.field[0] / 2, self.field[1] / 2  # some of the image always stays in sight
        self._set_view(
            replace(
                self.state,
                centre=(
                    min(max(centre[0], -half[0]), half[0]),
                    min(max(centre[1], -half[1]), half[1]),
                ),
            )
        )

    def fit(self) -> None:
        self._set_view(replace(self.state, zoom=1.0, centre=(0.0, 0.0)))

    def reset(self) -> None:
        """Fitted, upright, no crosshair."""
        self.set_crosshair(None)
        self._set_view(replace(self.state, zoom=1.0, centre=(0.0, 0.0), orientation=Orientation()))

    def rotate(self, clockwise: bool) -> None:
        self.set_orientation(self.state.orientation.rotated(clockwise))

    def flip_horizontally(self) -> None:
        self.set_orientation(self.state.orientation.flipped_horizontally())

    def flip_vertically(self) -> None:
        self.set_orientation(self.state.orientation.flipped_vertically())

    def set_orientation(self, orientation: Orientation) -> None:
        self._set_view(replace(self.state, orientation=orientation))

    def set_slice_count(self, count: int) -> None:
        self.slice_count = max(count, 1)
        self.set_slice(self.state.slice)
        self.view_changed.emit()

    def set_slice(self, number: int) -> None:
        number = min(max(number, 0), self.slice_count - 1)
        if number != self.state.slice:
            self.state = replace(self.state, slice=number)
            self.measurements.set_slice(number)
            self.slice_changed.emit(number)

    def step_slice(self, steps: int) -> None:
        """Onwards in the order of InstanceNumber, as the wheel of every viewer goes."""
        self.set_slice(self.state.slice + steps * self.reading_step)

    def to_end(self, last: bool) -> None:
        """The first or the last slice in that order."""
        self.set_slice(self.slice_count - 1 if last == (self.reading_step > 0) else 0)

    def set_source(self, reading_step: int, spacing_known: bool) -> None:
        """What the open data say of the order of their slices and of the size of a pixel."""
        self.reading_step, self.spacing_known = reading_step, spacing_known
        self.view_changed.emit()

    def set_mark_corner(self, corner: str) -> None:
        """Where the marks of saved pictures stand: they can be moved, never left out."""
        if corner in CORNERS and corner != self.mark_corner:
            self.mark_corner = corner
            self.mark_corner_changed.emit(corner)

    def set_smooth(self, smooth: bool) -> None:
        if smooth != self.smooth:
            self.smooth = smooth
            self.view_changed.emit()

    def toggle_smooth(self) -> None:
        self.set_smooth(not self.smooth)

    def set_crosshair(self, position: Point | None) -> None:
        if position != self.state.crosshair:
            self.state = replace(self.state, crosshair=position)
            self.crosshair_changed.emit()

    def set_cursor(self, position: Point | None) -> None:
        if position != self.cursor:
            self.cursor = position
            self.cursor_changed.emit()

    def set_tool(self, tool: Tool) -> None:
        if tool is not self.tool:
            self.tool = tool
            self.tool_changed.emit(tool)
