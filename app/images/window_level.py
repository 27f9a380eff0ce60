"""The window a person looks through: centre, width, presets, and its shared model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.forms.fields import CalmCombo
from engine.spec.numbers import beyond_bodies

NARROWEST: Final = 1.0 + 1e-6  # DICOM's linear VOI divides by width - 1
TAIL: Final = 0.01  # of the pixels at either end, ignored by the automatic window
HEAD: Final = 0.1  # of the brightest: a head is brighter than this, air darker
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
    def auto(cls, image: np.ndarray, invert: bool = False, tail: float = TAIL) -> WindowLevel:
        """The range of the image without its tails: MR has no absolute scale."""
        values = image[np.isfinite(image)]
        if not values.size:
            return cls.from_range(0.0, 1.0, invert)
        low, high = np.quantile(values, [tail, 1 - tail])
        return cls.from_range(float(low), float(high), invert)

    @classmethod
    def full(cls, image: np.ndarray, invert: bool = False) -> WindowLevel:
        """From the darkest pixel to the brightest."""
        return cls.auto(image, invert, 0.0)

    @classmethod
    def brain(cls, image: np.ndarray, invert: bool = False) -> WindowLevel:
        """For MR of a head: what its inner half holds, so that fat outside the skull is white."""
        values = np.where(np.isfinite(image), image, 0)
        head = values > HEAD * np.quantile(values, 1 - TAIL)
        if not head.any():
            return cls.auto(image, invert)
        inner = []
        for axis in (1, 0):
            first, last = np.flatnonzero(head.any(axis=axis))[[0, -1]]
            quarter = (last + 1 - first) // 4
            inner.append(slice(first + quarter, last + 1 - quarter))
        return cls.auto(values[inner[0], inner[1]], invert)

    def dragged(self, right: float, down: float) -> WindowLevel:
        """After a drag of so many pixels: right widens, down raises the centre, which darkens.

        The step is a fixed part of the width at the start of the drag, so that narrow windows
        and MR's small numbers are as easy to set as a lung window.
        """
        low, high = self.levels
        step = (high - low) / DRAG_PIXELS
        span = max(high - low + right * step, (high - low) / 100)
        middle = (low + high) / 2 + down * step
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
AUTO, FULL, BRAIN = "Auto 1–99 %", "Full range", "Brain"
OF_FILE, BY_HAND = "Window of the file", "Set by hand"
Of = Callable[[np.ndarray, bool], WindowLevel]
RANGES: Final[dict[str, Of]] = {AUTO: WindowLevel.auto, FULL: WindowLevel.full}
MR_RANGES: Final[dict[str, Of]] = {**RANGES, BRAIN: WindowLevel.brain}  # the keys 1, 2 and 3


class WindowModel(QObject):
    """One window shared by every pane that shows the same kind of values."""

    changed = Signal(object)  # WindowLevel
    offer_changed = Signal()  # other windows can be chosen by name

    def __init__(self, window: WindowLevel = DEFAULT_CT, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window = window
        self._default: WindowLevel | None = None
        self._modality: str | None = None
        self.name = self._name_of(window)  # BY_HAND when it is nobody's

    @property
    def window(self) -> WindowLevel:
        return self._window

    @property
    def default(self) -> WindowLevel | None:
        """The file's own window, when it has one."""
        return self._default

    @property
    def modality(self) -> str:
        return self._modality or "CT"

    def set(self, window: WindowLevel, name: str = "") -> None:
        """``name`` says which of the offered windows it is, where its numbers do not."""
        name = name or self._name_of(window)
        if (window, name) != (self._window, self.name):
            self._window, self.name = window, name
            self.changed.emit(window)

    def _name_of(self, window: WindowLevel) -> str:
        numbers = (window.centre, window.width)
        if self._default is not None and numbers == (self._default.centre, self._default.width):
            return OF_FILE
        known = (preset.name for preset in PRESETS if numbers == (preset.centre, preset.width))
        return next(known, BY_HAND) if self.modality == "CT" else BY_HAND

    def set_default(self, window: WindowLevel | None) -> None:
        """What a reset goes back to: the file's own window, when it has one."""
        self._default = window
        self.offer_changed.emit()

    def forget(self) -> None:
        """Other data: their first image chooses again."""
        self._modality = None

    def restore(self, modality: str, window: WindowLevel) -> None:
        """A window of an earlier session: no first image chooses another."""
        self._modality = modality
        self.offer_changed.emit()
        self.set(window)

    def meet(self, modality: str, image: np.ndarray) -> None:
        """The first image of a modality chooses the window; later ones never touch it."""
        if modality != self._modality:
            self._modality = modality
            self.offer_changed.emit()
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
            self.set(WindowLevel.auto(image), AUTO)

    def offer(self) -> list[str]:
        """The windows that can be chosen by name, in the order of a menu."""
        fixed = [preset.name for preset in PRESETS] if self.modality == "CT" else []
        ranges = RANGES if self.modality == "CT" else MR_RANGES
        return [*([OF_FILE] if self._default is not None else []), *fixed, *ranges]

    def choose(self, name: str, image: np.ndarray | None) -> None:
        """One of `offer`; a range is that of ``image``, and needs one."""
        invert = self._window.invert
        if name == OF_FILE and self._default is not None:
            self.set(replace(self._default, invert=invert))
            return
        for preset in PRESETS if self.modality == "CT" else ():
            if preset.name == name:
                self.apply_preset(preset)
                return
        if name in MR_RANGES and image is not None:
            self.set(MR_RANGES[name](image, invert), name)

    def apply_preset(self, preset: Preset) -> None:
        self.set(replace(preset.window, invert=self._window.invert))

    def toggle_invert(self) -> None:
        self.set(replace(self._window, invert=not self._window.invert), self.name)


class WindowBox(CalmCombo):
    """The named windows; the last line stands for one that was set by hand."""

    def __init__(
        self,
        model: WindowModel,
        image: Callable[[], np.ndarray | None] = lambda: None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.window_model, self._image = model, image
        self.setAccessibleName("Window preset")
        self.setMinimumContentsLength(14)
        self.setMinimumWidth(104)  # it gives way first in a narrow window
        self.activated.connect(self._on_chosen)
        model.changed.connect(self.show_window)
        model.offer_changed.connect(self._fill)
        self._fill()

    @Slot()
    def _fill(self) -> None:
        self.clear()
        for name in self.window_model.offer():
            self.addItem(self.words(name), name)
        self.addItem(BY_HAND, BY_HAND)
        self.setToolTip(
            "Choose which HU are black and white. (keys 1 to 9; 0: auto; W: that of the file)"
            if self.window_model.modality == "CT"
            else "MR has no fixed scale: choose a range of this image. (keys 1 to 3; 0: auto)"
        )
        self.show_window(self.window_model.window)

    def words(self, name: str) -> str:
        return window_words(self.window_model, name)

    @Slot(int)
    def _on_chosen(self, index: int) -> None:
        self.window_model.choose(self.itemData(index), self._image())
        self.show_window(self.window_model.window)

    @Slot(object)
    def show_window(self, window: WindowLevel) -> None:
        self.setCurrentIndex(max(self.findData(self.window_model.name), -1))


def window_words(model: WindowModel, name: str) -> str:
    """A window's name with its centre and width, where these are fixed."""
    fixed = {preset.name: preset.window for preset in PRESETS} if model.modality == "CT" else {}
    level = model.default if name == OF_FILE else fixed.get(name)
    return name if level is None else f"{name}  {level.centre:g}/{level.width:g}"
