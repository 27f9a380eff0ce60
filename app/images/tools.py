"""The tools of the left mouse button: what they are called, and their buttons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from app.icons import SIDE, icon
from app.images.display import LinkedView, Tool

TOOLS: Final = {
    Tool.WINDOW: ("Window", "drag to the side for the width, up to brighten."),
    Tool.PAN: ("Pan", "drag the image. (The middle button always does)"),
    Tool.ZOOM: ("Zoom", "drag down to enlarge. (The right button always does)"),
    Tool.RULER: ("Ruler", "drag a line: its length, and the profiles of all images in one plot."),
    Tool.ANGLE: ("Angle", "drag one leg, then click where the other one ends."),
    Tool.ELLIPSE: ("Ellipse", "drag a region: its statistics appear for every image."),
    Tool.RECTANGLE: ("Rectangle", "drag a region: its statistics appear for every image."),
    Tool.FREEHAND: ("Freehand", "draw around a region: its statistics appear for every image."),
    Tool.ARROW: ("Arrow", "drag to what it shall point at; name it in the list."),
}


class ButtonRow(QWidget):
    """Buttons with pictures; their names stand beside these where there is room."""

    def __init__(
        self,
        buttons: Iterable[QToolButton],
        named: Qt.ToolButtonStyle,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.named, self.labelled = named, True
        row = self._row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self._buttons = list(buttons)
        for button in self._buttons:
            button.setIconSize(QSize(SIDE, SIDE))
            button.setCheckable(True)
            button.setProperty("switch", True)
            row.addWidget(button)
        self.set_labelled(False)

    def set_labelled(self, on: bool) -> None:
        if on == self.labelled:
            return
        self.labelled = on
        for button in self._buttons:
            button.setToolButtonStyle(self.named if on else Qt.ToolButtonStyle.ToolButtonIconOnly)
            button.style().unpolish(button)  # the style sheet has a rule for pictures alone
            button.style().polish(button)
        self._row.invalidate()
        self.updateGeometry()  # or a layout around it would go on with the old width

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        on, self.labelled = self.labelled, True
        self.set_labelled(False)
        self.setMinimumWidth(self.sizeHint().width())  # names must not keep a window wide
        self.set_labelled(on)


class ToolButtons(ButtonRow):
    def __init__(self, link: LinkedView, parent: QWidget | None = None) -> None:
        self.link = link
        self.buttons = {tool: self._button(tool, *TOOLS[tool]) for tool in Tool}
        super().__init__(self.buttons.values(), Qt.ToolButtonStyle.ToolButtonTextBesideIcon, parent)
        self.setAccessibleName("Tools")
        group = QButtonGroup(self)
        for button in self.buttons.values():
            group.addButton(button)
        self.buttons[link.tool].setChecked(True)
        link.tool_changed.connect(self._show_tool)

    def _button(self, tool: Tool, name: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setIcon(icon(tool.value))
        button.setText(name)
        button.setAccessibleName(f"Tool: {name}")
        button.setToolTip(f"{name}: {tip}")
        button.clicked.connect(partial(self.link.set_tool, tool))
        return button

    def _show_tool(self, tool: Tool) -> None:
        self.buttons[tool].setChecked(True)


def fit_names(row: QHBoxLayout, width: int, rows: Sequence[ButtonRow]) -> None:
    """Take the names away that there is no room for: those of the first of ``rows`` first."""
    for one in rows:
        one.set_labelled(True)
    for one in rows:
        if _wanted(row) > width:
            one.set_labelled(False)


def _wanted(row: QHBoxLayout) -> int:
    row.invalidate()
    return row.sizeHint().width()
