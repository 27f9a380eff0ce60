"""What a key does to an image; also the table the Help menu shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import numpy as np
from PySide6.QtCore import Qt

from app.images.display import LinkedView
from app.images.window_level import AUTO, MR_RANGES, PRESETS, WindowLevel, WindowModel


class Help(NamedTuple):
    keys: str
    does: str


KEY_HELP: Final[tuple[Help, ...]] = (
    *(
        Help(str(number), f"Window: {preset.name} ({preset.centre:g}/{preset.width:g} HU)")
        for number, preset in enumerate(PRESETS[:9], 1)
    ),
    Help("1 / 2 / 3", "Window of MR: auto 1–99 %, full range, brain"),
    Help("0", "Window: range of this image without its tails"),
    Help("W", "Window: back to that of the file"),
    Help("+ / -", "Zoom in, zoom out"),
    Help("=", "Fit the image into the pane"),
    Help("A", "Actual size: one pixel of the screen for one of the image"),
    Help("P", "Sharp pixels, or smooth between them"),
    Help("Space", "Reset zoom, position, turn and crosshair"),
    Help("I", "Invert black and white"),
    Help("R / L", "Turn clockwise, counter-clockwise"),
    Help("H / V", "Mirror left-right, top-bottom"),
    Help("Up / Down", "Previous, next slice in the order of InstanceNumber"),
    Help("Home / End", "First, last slice"),
    Help("M", "Measure with the chosen tool, in the middle or at the crosshair"),
    Help("Shift+arrows / Ctrl+arrows", "Move, stretch the selected measurement"),
    Help("F / Shift+F", "Flicker A and B: by hand, twice a second"),
    Help("D", "Difference of A and B"),
    Help("S", "Swipe between A and B"),
    Help("Delete", "Remove the region and the line"),
    Help("Esc", "Leave the comparison or the measuring tool; hide the crosshair"),
)
MOUSE_HELP: Final[tuple[Help, ...]] = (
    Help("Left drag", "Window: up brightens, down darkens, right widens"),
    Help("Middle drag", "Move the image"),
    Help("Right drag", "Zoom: down enlarges"),
    Help("Wheel", "Slices: towards you goes on"),
    Help("Ctrl+Wheel", "Zoom at the pointer"),
    Help("Shift+Move", "Crosshair in every pane"),
    Help("Double-click", "One pane alone, and back"),
    Help("Ctrl+Double-click", "Reset the window"),
)

_Key = Qt.Key


class Owner(Protocol):
    """What the keys need of a pane."""

    image: np.ndarray | None
    modality: str

    def auto_window(self) -> WindowLevel | None: ...

    def reset_window(self) -> None: ...

    def one_to_one(self) -> None: ...


class KeyActions:
    """Turns key presses into changes of the shared view; the pane supplies its own windows."""

    def __init__(self, link: LinkedView, window_model: WindowModel, owner: Owner) -> None:
        self._link = link
        self._window = window_model
        self._owner = owner
        self.has_presets = True  # not of differences, nor of what is no image
        self._actions: dict[int, Callable[[], None]] = {
            _Key.Key_0: self._apply_auto,
            _Key.Key_W: owner.reset_window,
            _Key.Key_A: owner.one_to_one,
            _Key.Key_P: link.toggle_smooth,
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
            _Key.Key_Home: lambda: link.to_end(False),
            _Key.Key_End: lambda: link.to_end(True),
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
        is_ct = self._owner.modality == "CT"
        if self.has_presets and is_ct:
            self._window.apply_preset(PRESETS[number])
        elif self.has_presets and number < len(MR_RANGES):
            self._window.choose(list(MR_RANGES)[number], self._owner.image)
        else:
            self._link.notice.emit(
                "This key's window is in HU and this image is not; press 0 for its own range."
            )

    def _apply_auto(self) -> None:
        window = self._owner.auto_window()
        if window is not None:
            self._window.set(window, AUTO)
