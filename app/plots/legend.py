"""Says which run is which, for all plots under it."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from app.layouts import empty_layout
from app.runs.colours import Dash
from app.runs.swatch import swatch


class Legend(QWidget):
    """Swatches and names, ``per_row`` in a line; clipped, not wrapped, when too wide."""

    def __init__(self, parent: QWidget | None = None, per_row: int = 99) -> None:
        super().__init__(parent)
        self.per_row = per_row
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setHorizontalSpacing(4)
        self._layout.setVerticalSpacing(0)
        self._layout.setColumnStretch(2 * per_row, 1)
        # many names must not make the window wider
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._lines: list[tuple[str, str, Dash]] = []
        self.setAccessibleName("Legend")

    def show_lines(self, lines: list[tuple[str, str, Dash]]) -> None:
        """(name, colour, dash) of every line."""
        if lines == self._lines:
            return
        self._lines = lines
        empty_layout(self._layout)
        ratio = self.devicePixelRatioF()
        for number, (name, colour, dash) in enumerate(lines):
            row, column = divmod(number, self.per_row)
            mark, text = QLabel(self), QLabel(name, self)
            mark.setPixmap(swatch(colour, dash, max(ratio, 1.0)))
            text.setContentsMargins(0, 0, 12, 0)
            self._layout.addWidget(mark, row, 2 * column)
            self._layout.addWidget(text, row, 2 * column + 1)
        self.setAccessibleDescription(", ".join(name for name, _, _ in lines))

    def names(self) -> list[str]:
        return [name for name, _, _ in self._lines]
