"""Buttons to other layouts, and to images that are not in sight."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QButtonGroup, QLabel, QToolButton, QWidget

from app.icons import SIDE, icon
from app.images.grid import PaneGrid
from app.layouts.layouts import LAYOUTS, Layouts
from app.theme import GRID_PX, tabular
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


class Pager(QWidget):
    """'2 of 3' with an arrow to either side; hidden while all images are in sight."""

    def __init__(self, grid: PaneGrid, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.grid = grid
        self.words = QLabel()
        self.words.setFont(tabular(self.words.font()))
        self.words.setAccessibleName("Images in sight")
        self.words.setToolTip("Not all images fit side by side and stay large.")
        row = in_row(spacing=GRID_PX // 2, margins=(0, 0, GRID_PX, 0), parent=self)
        for name, step, keys in (("previous", -1, "Page Up"), ("next", 1, "Page Down")):
            button = QToolButton()
            button.setIcon(icon(name))
            button.setIconSize(QSize(SIDE, SIDE))
            button.setAutoRaise(True)
            button.setAccessibleName(f"The {name} images")
            button.setToolTip(f"Show the {name} images. ({keys})")
            button.clicked.connect(partial(grid.turn_page, step))
            row.addWidget(button)
        row.insertWidget(1, self.words)
        grid.pages_changed.connect(self._show)
        self._show()

    @Slot()
    def _show(self) -> None:
        pages = self.grid.pages()
        self.setVisible(len(pages) > 1)
        self.words.setText(f"{self.grid.page + 1} of {len(pages)}")
