"""The list of window presets, standing on the one in use."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.forms.fields import CalmCombo
from app.images.window import PRESETS, WindowLevel, WindowModel


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
