"""The middle of the window: tools, images with messages over their edge, curves, scrubber."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QAction, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QSplitter,
    QToolButton,
    QWidget,
)

from app.forms.fields import CalmCombo
from app.icons import icon
from app.images.grid import CompareMode, PaneGrid
from app.images.tools import ButtonRow, ToolButtons, fit_names
from app.images.window_level import WindowBox
from app.layouts.switcher import Pager
from app.plots.panel import PlotPanel
from app.runs.presenter import RunPresenter
from app.runs.scrubber import Scrubber
from app.runs.store import RunStore
from app.session.panes import PLANES
from app.theme import GRID_PX
from app.widgets import EmptyState, in_column, in_row

PLOT_PX, THIN_PLOT_PX = 184, 112
MESSAGE_PX = 800  # a longer line is hard to read
ELSEWHERE = "The images are in a window of their own."
BACK = "Bring them back"


class Center(QWidget):
    """``messages`` lie over the upper edge of the images: no image moves when one comes."""

    back_wanted = Signal()  # the images, from their own window

    def __init__(
        self, store: RunStore, runs: RunPresenter, messages: QWidget, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName("Images and curves")
        self.messages = messages
        self.grid = PaneGrid()
        self.bar = ViewBar(self.grid)
        self.plots = PlotPanel(store, runs)
        self.scrubber = Scrubber(store, runs)
        self.images = QWidget()
        inside = in_column(spacing=0, margins=0, parent=self.images)
        above = in_row((self.bar, 1), spacing=0, margins=0)
        self.pager = Pager(self.grid)
        above.addWidget(self.pager, 0, Qt.AlignmentFlag.AlignTop)
        inside.addLayout(above)
        inside.addWidget(self.grid, 1)
        self.elsewhere = EmptyState(ELSEWHERE, BACK, parent=self)
        self.elsewhere.buttons[BACK].clicked.connect(self.back_wanted)
        self.elsewhere.hide()
        place = QWidget()
        self._place = in_column(self.elsewhere, self.images, margins=0, parent=place)
        self.split = QSplitter(Qt.Orientation.Vertical)
        self.split.setChildrenCollapsible(False)
        self.split.addWidget(place)
        self.split.addWidget(self.plots)
        self.split.setStretchFactor(0, 1)
        self.split.setStretchFactor(1, 0)
        self.split.setSizes([640, PLOT_PX])
        in_column((self.split, 1), self.scrubber, spacing=0, margins=0, parent=self)
        messages.setParent(self)
        messages.hide()
        for watched in (messages, self.grid, self.split):
            watched.installEventFilter(self)
        self.plots.folded_changed.connect(self._spread)
        self.plots.thin_changed.connect(self._spread)

    @Slot()
    def _spread(self) -> None:
        """A folded panel keeps only its head; unfolded it gets its usual height."""
        folded, head = self.plots.folded, self.plots.header.sizeHint().height()
        height = head if folded else (THIN_PLOT_PX if self.plots.thin else PLOT_PX)
        self.plots.setMaximumHeight(head if folded else 16777215)
        self.split.setSizes([max(sum(self.split.sizes()) - height, 1), height])

    def release_images(self) -> QWidget:
        """The tools and images, for another window; a word stands in their place."""
        self.elsewhere.show()
        return self.images

    def take_images(self) -> None:
        """Back from the other window."""
        self.elsewhere.hide()
        self._place.addWidget(self.images)
        self.images.show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in MOVES:
            self._place_messages()
        return super().eventFilter(watched, event)

    def _place_messages(self) -> None:
        if self.messages.isHidden():
            return
        area: QWidget = self.grid if self.isAncestorOf(self.grid) else self.split
        corner = area.mapTo(self, QPoint(0, 0))
        width = min(area.width() - 2 * GRID_PX, MESSAGE_PX)
        height = self.messages.heightForWidth(width)
        left = corner.x() + (area.width() - width) // 2
        self.messages.setGeometry(left, corner.y() + GRID_PX, width, height)
        self.messages.raise_()


MOVES: Final = (
    QEvent.Type.Resize,
    QEvent.Type.Move,
    QEvent.Type.Show,
    QEvent.Type.LayoutRequest,
)
MODES: Final = {
    CompareMode.DIFFERENCE: ("Difference", "Show A − B with a scale of its own. (D)"),
    CompareMode.FLICKER: ("Flicker", "Show A and B in turn in one place. (F)"),
    CompareMode.SWIPE: ("Swipe", "Show A left and B right of a line to drag. (S)"),
}


class ViewBar(QWidget):
    planes_chosen = Signal(set)

    def __init__(self, grid: PaneGrid, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Image tools")
        self.grid, self.link = grid, grid.link
        self.tool_buttons = ToolButtons(self.link)
        self.tools = self.tool_buttons.buttons
        self.window_box = WindowBox(self.link.window_model, grid.image)
        self.plane_button = QToolButton()
        self.plane_button.setIcon(icon("planes"))
        self.plane_button.setText("Intermediates")
        self.plane_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.plane_button.setAccessibleName("Other planes of the current run")
        self.plane_button.setToolTip(
            "Show x, the dual u, x − z or the residual of the current run beside its image."
        )
        self.plane_menu = QMenu(self.plane_button)
        self.plane_actions = {name: self._plane_action(name, PLANES[name]) for name in PLANES}
        self.plane_button.setMenu(self.plane_menu)
        self.modes = {mode: self._mode_button(mode) for mode in MODES}
        style = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        self.plane_row = ButtonRow([self.plane_button], style)
        self.plane_button.setCheckable(False)
        self.mode_buttons = ButtonRow(self.modes.values(), style)
        self.a, self.b = self._source("A"), self._source("B")
        self._build()
        grid.compare_changed.connect(self._show_mode)
        grid.panes_changed.connect(self.show_sources)
        self.show_sources()

    def _plane_action(self, name: str, words: str) -> QAction:
        action = self.plane_menu.addAction(words)
        action.setCheckable(True)
        action.toggled.connect(self._on_planes)
        action.setData(name)
        return action

    def _mode_button(self, mode: CompareMode) -> QToolButton:
        name, tip = MODES[mode]
        button = QToolButton()
        button.setIcon(icon(mode.value))
        button.setText(name)
        button.setAccessibleName(name)
        button.setToolTip(tip)
        button.clicked.connect(partial(self._on_mode, mode))
        return button

    def _source(self, name: str) -> CalmCombo:
        box = CalmCombo()
        box.setAccessibleName(f"Image {name} of the comparison")
        box.setToolTip(f"Which image is {name} in the difference, the flicker and the swipe.")
        box.activated.connect(self._on_sources)
        return box

    def _build(self) -> None:
        column = in_column(spacing=4, margins=(8, 4, 8, 4), parent=self)
        row = self.row = QHBoxLayout()
        row.setSpacing(4)
        column.addLayout(row)
        row.addWidget(self.tool_buttons)
        row.addWidget(_line())
        row.addWidget(self.window_box)
        row.addWidget(_line())
        row.addWidget(self.plane_row)
        row.addStretch(1)
        row.addWidget(self.mode_buttons)
        self.sources = QWidget()  # a line of its own: a narrow window has no room for it above
        pair = in_row(None, spacing=4, margins=0, parent=self.sources)
        for words, box in (("A", self.a), ("B", self.b)):
            pair.addWidget(QLabel(words))
            box.setMinimumContentsLength(12)
            pair.addWidget(box)
        column.addWidget(self.sources)

    # -- tools, planes, comparison ----------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The tools are named where there is room."""
        super().resizeEvent(event)
        self._fit_names()

    def showEvent(self, event: QShowEvent) -> None:
        """Only now the style sheet says how wide the names are."""
        super().showEvent(event)
        self._fit_names()

    def _fit_names(self) -> None:
        rows = (self.tool_buttons, self.plane_row, self.mode_buttons)
        fit_names(self.row, self.width() - 2 * 8, rows)

    @Slot()
    def _on_planes(self) -> None:
        self.planes_chosen.emit(
            {name for name, action in self.plane_actions.items() if action.isChecked()}
        )

    def _on_mode(self, mode: CompareMode) -> None:
        self.grid.set_compare(CompareMode.NONE if self.grid.mode is mode else mode)
        self._show_mode(self.grid.mode)

    @Slot(object)
    def _show_mode(self, mode: CompareMode) -> None:
        for one, button in self.modes.items():
            button.setChecked(one is mode)
        self.show_sources()

    @Slot()
    def show_sources(self) -> None:
        """Both boxes list the images by name and stand on A and B."""
        chosen = self.grid.compare_keys()
        self.sources.setVisible(self.grid.pair or self.grid.mode is not CompareMode.NONE)
        for number, box in enumerate((self.a, self.b)):
            blocker = QSignalBlocker(box)
            box.clear()
            for key in self.grid:
                box.addItem(self.grid.pane(key).name, key)
            if chosen:
                box.setCurrentIndex(box.findData(chosen[number]))
            del blocker
        for mode, button in self.modes.items():
            button.setEnabled(bool(chosen))
            button.setToolTip(MODES[mode][1] if chosen else "A comparison needs two images.")

    @Slot()
    def _on_sources(self) -> None:
        self.grid.set_compare_sources(self.a.currentData(), self.b.currentData())


def _line() -> QFrame:
    line = QFrame()
    line.setFrameShape(QFrame.Shape.VLine)
    line.setEnabled(False)
    line.setFixedHeight(20)
    line.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    return line
