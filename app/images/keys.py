"""What a key does to an image; also the table the Help menu shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from PySide6.QtCore import Qt

from app.images.display import LinkedView
from app.images.window_level import PRESETS, WindowLevel, WindowModel


class Help(NamedTuple):
    keys: str
    does: str


KEY_HELP: Final[tuple[Help, ...]] = (
    *(
        Help(str(number), f"Window: {preset.name} ({preset.centre:g}/{preset.width:g} HU)")
        for number, preset in enumerate(PRESETS[:9], 1)
    ),
    Help("0", "Window: range of this image"),
    Help("+ / -", "Zoom in, zoom out"),
    Help("=", "Fit the image into the pane"),
    Help("Space", "Reset zoom, position, turn and crosshair"),
    Help("I", "Invert black and white"),
    Help("R / L", "Turn clockwise, counter-clockwise"),
    Help("H / V", "Mirror left-right, top-bottom"),
    Help("Up / Down", "Previous, next slice"),
    Help("Home / End", "First, last slice"),
    Help("F / Shift+F", "Flicker A and B: by hand, twice a second"),
    Help("D", "Difference of A and B"),
    Help("S", "Swipe between A and B"),
    Help("Delete", "Remove the region and the line"),
    Help("Esc", "Leave the comparison or the measuring tool; hide the crosshair"),
)
MOUSE_HELP: Final[tuple[Help, ...]] = (
    Help("Left drag", "Window: right widens, down lowers the centre"),
    Help("Middle drag", "Move the image"),
    Help("Right drag", "Zoom: down enlarges"),
    Help("Wheel", "Slices"),
    Help("Ctrl+Wheel", "Zoom at the pointer"),
    Help("Shift+Move", "Crosshair in every pane"),
    Help("Double-click", "One pane alone, and back"),
    Help("Ctrl+Double-click", "Reset the window"),
)

_Key = Qt.Key


class KeyActions:
    """Turns key presses into changes of the shared view; the pane supplies its auto window."""

    def __init__(
        self, link: LinkedView, window_model: WindowModel, auto: Callable[[], WindowLevel | None]
    ) -> None:
        self._link = link
        self._window = window_model
        self._auto = auto
        self.has_presets = True  # presets are in HU: none for MR and for differences
        self._actions: dict[int, Callable[[], None]] = {
            _Key.Key_0: self._apply_auto,
            _Key.Key_Plus: lambda: link.zoom_by(1),
            _Key.Key_Minus: lambda: link.zoom_by(-1),
            _Key.Key_Equal: link.fit,
            _Key.Key_Space: link.reset,
            _Key.Key_I: window_model.toggle_invert,
            _Key.Key_R: lambda: link.rotate(True),
            _Key.Key_L: lambda: link.rotate(False),
            _Key.Key_H: link.flip_horizontally,
            _Key.Key_V: link.flip_vertically,
            _Key.Key_Up: lambda: link.step_slice(-1),
            _Key.Key_Down: lambda: link.step_slice(1),
            _Key.Key_Home: lambda: link.set_slice(0),
            _Key.Key_End: lambda: link.set_slice(link.slice_count - 1),
        }

    def press(self, key: int, modifiers: Qt.KeyboardModifier) -> bool:
        """Whether the key meant something here."""
        # Ctrl+R, Alt+V and their like belong to menus; Shift is how + is typed
        if modifiers & (
            Qt.KeyboardModifier.ControlModifier
            | Qt.KeyboardModifier.AltModifier
            | Qt.KeyboardModifier.MetaModifier
        ):
            return False
        if _Key.Key_1 <= key <= _Key.Key_9:
            self._apply_preset(key - _Key.Key_1)
            return True
        action = self._actions.get(key)
        if action is not None:
            action()
        return action is not None

    def _apply_preset(self, number: int) -> None:
        if self.has_presets:
            self._window.apply_preset(PRESETS[number])
        else:
            self._link.notice.emit(
                "Window presets are in HU and this image is not; press 0 for its own range."
            )

    def _apply_auto(self) -> None:
        window = self._auto()
        if window is not None:
            self._window.set(window)
