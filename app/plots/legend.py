"""One line that says which run is which, for all plots under it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.runs.colours import Dash
from app.runs.swatch import swatch


class Legend(QWidget):
    """Swatches and names; clipped, not wrapped, when there are more than fit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(4)
        self._layout.addStretch()
        self._lines: list[tuple[str, str, Dash]] = []
        self.setAccessibleName("Legend")

    def show_lines(self, lines: list[tuple[str, str, Dash]]) -> None:
        """(name, colour, dash) of every line."""
        if lines == self._lines:
            return
        self._lines = lines
        while self._layout.count() > 1:
            item = self._layout.takeAt(0)
            if item is not None and (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        ratio = self.devicePixelRatioF()
        for place, (name, colour, dash) in enumerate(lines):
            mark, text = QLabel(self), QLabel(name, self)
            mark.setPixmap(swatch(colour, dash, max(ratio, 1.0)))
            mark.setAlignment(Qt.AlignmentFlag.AlignVCenter)
            text.setContentsMargins(0, 0, 12, 0)
            self._layout.insertWidget(2 * place, mark)
            self._layout.insertWidget(2 * place + 1, text)
        self.setAccessibleDescription(", ".join(name for name, _, _ in lines))

    def names(self) -> list[str]:
        return [name for name, _, _ in self._lines]
