"""The window a person looks through: centre, width, presets, and its shared model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.forms.fields import CalmCombo
from engine.spec.numbers import beyond_bodies

NARROWEST: Final = 1.0 + 1e-6  # DICOM's linear VOI divides by width - 1
TAIL: Final = 0.001  # of the pixels at either end, ignored by the automatic window
DRAG_PIXELS: Final = 200  # dragging so far to the right doubles the width


@dataclass(frozen=True)
class WindowLevel:
    """Centre and width as DICOM's linear VOI function defines them (PS3.3 C.11.2.1.2.1)."""

    centre: float
    width: float
    invert: bool = False

    @property
    def levels(self) -> tuple[float, float]:
        """The values shown black and white: y = (x - (c - 0.5)) / (w - 1) + 0.5 is 0 and 1."""
        half = (max(self.width, NARROWEST) - 1) / 2
        return self.centre - 0.5 - half, self.centre - 0.5 + half

    @classmethod
    def from_range(cls, low: float, high: float, invert: bool = False) -> WindowLevel:
        """The window that shows ``low`` black and ``high`` white."""
        return cls((low + high) / 2 + 0.5, max(high - low, NARROWEST - 1) + 1, invert)

    @classmethod
    def auto(cls, image: np.ndarray, invert: bool = False) -> WindowLevel:
        """The range of the image without its tails: MR has no absolute scale."""
        values = image[np.isfinite(image)]
        if not values.size:
            return cls.from_range(0.0, 1.0, invert)
        low, high = np.quantile(values, [TAIL, 1 - TAIL])
        return cls.from_range(float(low), float(high), invert)

    def dragged(self, right: float, down: float) -> WindowLevel:
        """After a drag of so many pixels: right widens, down lowers the centre.

        The step is a fixed part of the width at the start of the drag, so that narrow windows
        and MR's small numbers are as easy to set as a lung window.
        """
        low, high = self.levels
        step = (high - low) / DRAG_PIXELS
        span = max(high - low + right * step, (high - low) / 100)
        middle = (low + high) / 2 - down * step
        return self.from_range(middle - span / 2, middle + span / 2, self.invert)


class Preset(NamedTuple):
    name: str
    centre: float  # HU
    width: float  # HU

    @property
    def window(self) -> WindowLevel:
        return WindowLevel(self.centre, self.width)


# the first nine answer to the keys 1-9; the first five are where OHIF has them
PRESETS: Final[tuple[Preset, ...]] = (
    Preset("Abdomen", 50, 400),
    Preset("Lung", -600, 1500),
    Preset("Liver", 30, 150),
    Preset("Bone", 400, 1800),
    Preset("Brain", 40, 80),
    Preset("Mediastinum", 50, 350),
    Preset("Angio", 200, 600),
    Preset("Paper LACT", 0, 1600),  # [-800, 800] HU
    Preset("Paper SVCT", 162.5, 675),  # [-175, 500] HU
    Preset("Stroke", 40, 40),
    Preset("Subdural", 75, 200),
    Preset("Head & neck", 40, 375),
    Preset("Temporal bones", 600, 2800),
    Preset("Spine soft tissue", 50, 250),
)
DEFAULT_CT: Final = PRESETS[7].window


class WindowModel(QObject):
    """One window shared by every pane that shows the same kind of values."""

    changed = Signal(object)  # WindowLevel

    def __init__(self, window: WindowLevel = DEFAULT_CT, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window = window
        self._default: WindowLevel | None = None
        self._modality: str | None = None

    @property
    def window(self) -> WindowLevel:
        return self._window

    def set(self, window: WindowLevel) -> None:
        if window != self._window:
            self._window = window
            self.changed.emit(window)

    def set_default(self, window: WindowLevel | None) -> None:
        """What a reset goes back to: the file's own window, when it has one."""
        self._default = window

    def forget(self) -> None:
        """Other data: their first image chooses again."""
        self._modality = None

    def restore(self, modality: str, window: WindowLevel) -> None:
        """A window of an earlier session: no first image chooses another."""
        self._modality = modality
        self.set(window)

    def meet(self, modality: str, image: np.ndarray) -> None:
        """The first image of a modality chooses the window; later ones never touch it."""
        if modality != self._modality:
            self._modality = modality
            self.reset(modality, image)

    def reset(self, modality: str, image: np.ndarray) -> None:
        """Back to the file's window; else the fixed one for CT, the range of the image for MR.

        CT values that no body has (micro-CT) get the range of the image, too.
        """
        if self._default is not None:
            self.set(self._default)
        elif modality == "CT" and not beyond_bodies(image):
            self.set(DEFAULT_CT)
        else:
            self.set(WindowLevel.auto(image))

    def apply_preset(self, preset: Preset) -> None:
        self.set(replace(preset.window, invert=self._window.invert))

    def preset_name(self) -> str | None:
        """The preset now in use, for the menu's tick."""
        for preset in PRESETS:
            if (preset.centre, preset.width) == (self._window.centre, self._window.width):
                return preset.name
        return None

    def toggle_invert(self) -> None:
        self.set(replace(self._window, invert=not self._window.invert))


class WindowBox(CalmCombo):
    """Presets are in HU: for MR there are none."""

    def __init__(self, model: WindowModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.window_model = model
        self.setAccessibleName("Window preset")
        for preset in PRESETS:
            self.addItem(f"{preset.name}  {preset.centre:g}/{preset.width:g}")
        self.addItem("own window")
        self.setMinimumContentsLength(14)
        self.setMinimumWidth(104)  # it gives way first in a narrow window
        self.set_modality("CT")
        self.activated.connect(self._on_preset)
        model.changed.connect(self.show_window)
        self.show_window(model.window)

    def set_modality(self, modality: str) -> None:
        is_ct = modality == "CT"
        self.setEnabled(is_ct)
        self.setToolTip(
            "Choose which HU are black and white. (keys 1 to 9)"
            if is_ct
            else "Presets are in HU and this is MR: drag on the image, or press 0."
        )

    @Slot(int)
    def _on_preset(self, index: int) -> None:
        if index < len(PRESETS):
            self.window_model.apply_preset(PRESETS[index])
        else:
            self.show_window(self.window_model.window)

    @Slot(object)
    def show_window(self, window: WindowLevel) -> None:
        name = self.window_model.preset_name()
        names = [preset.name for preset in PRESETS]
        self.setCurrentIndex(names.index(name) if name in names else len(PRESETS))
