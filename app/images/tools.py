"""The tools of the left mouse button: what they are called, and their buttons."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QToolButton, QWidget

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


class ToolButtons(QWidget):
    """Their names stand beneath the icons where there is room for them."""

    def __init__(self, link: LinkedView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.link = link
        self.setAccessibleName("Tools")
        self.buttons = {tool: self._button(tool, *TOOLS[tool]) for tool in Tool}
        group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        for button in self.buttons.values():
            group.addButton(button)
            row.addWidget(button)
        self.labelled = True
        self.labelled_width = row.sizeHint().width()
        self.set_labelled(False)
        link.tool_changed.connect(lambda tool: self.buttons[tool].setChecked(True))

    def _button(self, tool: Tool, name: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setIcon(icon(tool.value))
        button.setIconSize(QSize(SIDE, SIDE))
        button.setText(name)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
        button.setCheckable(True)
        button.setProperty("switch", True)
        button.setChecked(tool is self.link.tool)
        button.setAccessibleName(f"Tool: {name}")
        button.setToolTip(f"{name}: {tip}")
        button.clicked.connect(partial(self.link.set_tool, tool))
        return button

    def set_labelled(self, on: bool) -> None:
        if on != self.labelled:
            self.labelled = on
            styles = Qt.ToolButtonStyle
            style = styles.ToolButtonTextUnderIcon if on else styles.ToolButtonIconOnly
            for button in self.buttons.values():
                button.setToolButtonStyle(style)
