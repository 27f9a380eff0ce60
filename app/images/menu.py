"""The menu of a right click on an image: what can be done with it, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from PySide6.QtCore import QPoint
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QInputDialog, QMenu

from app.icons import icon
from app.images.display import Tool
from app.images.mouse import REACH_PX
from app.images.tools import TOOLS
from app.images.window_level import window_words
from engine.spec.marks import CORNERS

if TYPE_CHECKING:
    import numpy as np
    from PySide6.QtCore import SignalInstance

    from app.images.display import LinkedView
    from app.images.keys import KeyActions
    from app.images.measure import Measurement
    from app.images.view import PaneView
    from app.images.window_level import WindowModel

Act = Callable[[], Any]


class Owner(Protocol):
    """What the menu needs of a pane."""

    name: str
    image: np.ndarray | None
    alone: bool
    link: LinkedView
    window_model: WindowModel
    keys: KeyActions
    view: PaneView

    @property
    def maximise_requested(self) -> SignalInstance: ...

    def reset_window(self) -> None: ...

    def one_to_one(self) -> None: ...


class PaneMenu(QMenu):
    """Made anew for every click; ``at`` is where it was, in pixels of the view."""

    def __init__(self, pane: Owner, at: QPoint) -> None:
        super().__init__(pane.view)
        self.pane, self.link = pane, pane.link
        self.setToolTipsVisible(True)
        self.setAccessibleName(f"Menu of {pane.name}")
        found = self._under(at)
        if found is not None:
            self._of_measurement(found)
        self._windows()
        self._tools()
        self.addSeparator()
        self._view()
        self.addSeparator()
        self._pictures()

    def _act(self, text: str, act: Act, picture: str = "", where: QMenu | None = None) -> QAction:
        action = (where or self).addAction(text.replace("&", "&&"))
        if picture:
            action.setIcon(icon(picture))
        action.triggered.connect(lambda: act())
        action.setEnabled(self.pane.image is not None)
        return action

    def _check(self, action: QAction, on: bool) -> QAction:
        action.setCheckable(True)
        action.setChecked(on)
        return action

    # -- what is measured -------------------------------------------------------------------

    def _under(self, at: QPoint) -> Measurement | None:
        view = self.pane.view
        point, reach = view.to_mm(at.toPointF()), REACH_PX / view.pixels_per_mm()
        shown = reversed(self.link.measurements.shown())
        return next((one for one in shown if one.near(point, reach)), None)

    def _of_measurement(self, one: Measurement) -> None:
        drawn = self.link.measurements
        drawn.select(one.number)
        self._act(f"Rename {one.name}…", partial(self._rename, one), "text")
        self._act(f"Remove {one.name}", partial(drawn.remove, one.number), "trash")
        self.addSeparator()

    def _rename(self, one: Measurement) -> None:
        dialog = QInputDialog(self.pane.view.window())
        dialog.setWindowTitle("Rename")
        dialog.setLabelText(f"Another name for {one.name}:")
        dialog.setTextValue(one.name)
        dialog.textValueSelected.connect(partial(self.link.measurements.rename, one.number))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    # -- window, tools, view ----------------------------------------------------------------

    def _windows(self) -> None:
        pane, model = self.pane, self.pane.window_model
        if pane.keys.has_presets:
            menu = self.addMenu(icon("window"), "Window")
            for name in model.offer():
                act = partial(model.choose, name, pane.image)
                action = self._act(window_words(model, name), act, where=menu)
                self._check(action, name == model.name)
        words = "Reset the window"
        if pane.keys.has_presets and model.default is not None:
            words = "Reset to the window of the file"
        self._act(f"{words}\tW", pane.reset_window, "reset")
        self._check(self._act("Invert\tI", model.toggle_invert, "invert"), model.window.invert)

    def _tools(self) -> None:
        menu = self.addMenu(icon(self.link.tool.value), "Tool")
        group = QActionGroup(menu)
        for tool in Tool:
            act = partial(self.link.set_tool, tool)
            action = self._act(TOOLS[tool][0], act, tool.value, menu)
            group.addAction(self._check(action, tool is self.link.tool))

    def _view(self) -> None:
        link, pane = self.link, self.pane
        self._act("Fit\t=", link.fit, "fit")
        self._act("1:1, a pixel for a pixel\tA", pane.one_to_one, "one-to-one")
        smooth = self._act("Smooth between pixels\tP", link.toggle_smooth, "smooth")
        self._check(smooth, link.smooth)
        turns = self.addMenu("Turn")
        for text, act in (
            ("Clockwise\tR", partial(link.rotate, True)),
            ("Counter-clockwise\tL", partial(link.rotate, False)),
            ("Mirror left and right\tH", link.flip_horizontally),
            ("Mirror top and bottom\tV", link.flip_vertically),
            ("Upright and fitted\tSpace", link.reset),
        ):
            self._act(text, act, where=turns)
        alone = self._act("This image alone\tdouble click", pane.maximise_requested.emit)
        self._check(alone, pane.alone)

    def _pictures(self) -> None:
        pane = self.pane
        for words, picture, act in self.link.offered:
            self._act(words, act, picture)
        if self.link.offered:
            self.addSeparator()
        if pane.link.offers_pictures:
            self._act("Save picture…", partial(pane.link.save_wanted.emit, pane), "save")
            self._act("Copy picture", partial(pane.link.copy_wanted.emit, pane), "copy")
        corners = self.addMenu("Marks of saved pictures")
        group = QActionGroup(corners)
        for corner in CORNERS:
            act = partial(pane.link.set_mark_corner, corner)
            action = self._act(corner.capitalize(), act, where=corners)
            group.addAction(self._check(action, corner == pane.link.mark_corner))
