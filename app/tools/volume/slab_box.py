"""How thick the cuts are, and what is shown of what lies in them."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QSpinBox, QWidget

from app.forms.fields import CalmCombo
from app.theme import tabular
from app.tools.volume.space import ONE, Thick
from app.widgets import in_row
from engine.data.images.slab import Slab

WORDS: Final[dict[Slab | None, str]] = {
    None: "Thin cuts",
    Slab.MAXIMUM: "Maximum (MIP)",
    Slab.MEAN: "Mean",
    Slab.MINIMUM: "Minimum (MinIP)",
}
LIMITS_MM: Final = (1, 200)


class SlabBox(QWidget):
    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.how, self.mm = CalmCombo(), QSpinBox()
        self.how.setAccessibleName("Slab")
        self.how.setToolTip("Show one plane, or the maximum, mean or minimum over a slab of them.")
        self.how.setSizeAdjustPolicy(CalmCombo.SizeAdjustPolicy.AdjustToContents)
        for how, words in WORDS.items():
            self.how.addItem(words, how)
        self.mm.setRange(*LIMITS_MM)
        self.mm.setValue(round(ONE.mm))
        self.mm.setSuffix(" mm")
        self.mm.setAccessibleName("Thickness of the slab")
        self.mm.setToolTip("How thick the slab is around each cut.")
        self.mm.setKeyboardTracking(False)
        self.mm.setFont(tabular(self.mm.font()))
        in_row(self.how, self.mm, spacing=4, margins=0, parent=self)
        self.how.currentIndexChanged.connect(self._on_changed)
        self.mm.valueChanged.connect(self._on_changed)
        self._refresh()

    @property
    def value(self) -> Thick:
        return Thick(self.how.currentData(), float(self.mm.value()))

    def words(self) -> tuple[str, ...]:
        """What an image says of it: a slab looks like an image of one plane."""
        thick = self.value
        return () if thick.how is None else (f"{WORDS[thick.how]} over {thick.mm:.0f} mm",)

    def _refresh(self) -> None:
        self.mm.setEnabled(self.how.currentData() is not None)

    def _on_changed(self) -> None:
        self._refresh()
        self.changed.emit()
