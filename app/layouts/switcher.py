"""The layouts as buttons, for the corner of the menu bar."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QButtonGroup, QToolButton, QWidget

from app.icons import SIDE, icon
from app.layouts.layouts import LAYOUTS, Layouts
from app.theme import GRID_PX
from app.widgets import in_row


class Switcher(QWidget):
    def __init__(self, layouts: Layouts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Layouts")
        self.buttons: dict[str, QToolButton] = {}
        group = QButtonGroup(self)
        row = in_row(spacing=GRID_PX // 2, margins=(GRID_PX, 0, GRID_PX, 0), parent=self)
        for name, layout in LAYOUTS.items():
            button = QToolButton()
            button.setIcon(icon(f"layout-{name}"))
            button.setIconSize(QSize(SIDE, SIDE))
            button.setText(layout.label)
            button.setAccessibleName(f"Layout: {layout.label}")
            button.setToolTip(f"{layout.tip} ({layout.keys})")
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            button.setCheckable(True)
            button.setProperty("switch", True)
            button.setProperty("low", True)
            button.clicked.connect(partial(layouts.choose, name))
            group.addButton(button)
            row.addWidget(button)
            self.buttons[name] = button
        layouts.changed.connect(self._show)
        self._show(layouts.name)

    @Slot(str)
    def _show(self, name: str) -> None:
        self.buttons[name].setChecked(True)
