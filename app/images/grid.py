"""The panes side by side, all on the same anatomy, window and slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Final

import numpy as np
from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QApplication, QGridLayout, QWidget

from app.images.compare import BlendPane, ComparePane, DifferencePane
from app.images.display import LinkedView, Tool
from app.images.inspector import Inspector
from app.images.pages import GAP_PX, best_columns, most_large, pages_of
from app.images.pane import ImagePane
from app.theme import RunStyle
from app.widgets import EmptyState

NOTHING: Final = "Drop a DICOM folder here, or open the demo."
OFFERS: Final = {"Open a folder…": "open folder", "CT demo": "demo ct"}


class CompareMode(Enum):
    NONE = "none"
    DIFFERENCE = "difference"
    FLICKER = "flicker"
    SWIPE = "swipe"


class PaneGrid(QWidget):
    """Any number of panes by key; one more, at the end, compares two of them."""

    maximised_changed = Signal(str)  # the key shown alone, '' when all are shown
    compare_changed = Signal(object)  # CompareMode
    panes_changed = Signal()
    open_wanted = Signal(str)  # an action of the menus
    pages_changed = Signal()  # other panes are in sight, or more or fewer of them

    def __init__(self, link: LinkedView | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Images")
        self.link = link if link is not None else LinkedView(self)
        self.mode = CompareMode.NONE
        self.compare_pane: ComparePane | None = None
        self._panes: dict[str, ImagePane] = {}
        self._extras: dict[str, ImagePane] = {}
        self._maximised: ImagePane | None = None
        self._sources: tuple[str, str] | None = None
        self.preferred = ""  # what a comparison begins with
        self._masked, self._bars = True, False
        self._columns = 0
        self._shown: list[ImagePane] = []
        self._most: int | None = None
        self._pair = False
        self._page = 0

        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(GAP_PX)
        self._empty = EmptyState(NOTHING, *OFFERS, parent=self)
        for name, button in self._empty.buttons.items():
            button.clicked.connect(partial(self.open_wanted.emit, OFFERS[name]))
        self._empty.setAccessibleName("No images")
        self.inspector = Inspector(self.link, self.image_panes, self)
        self._arrange()
        for digit in "0123456789":  # wherever the focus is, but in a field that is written in
            shortcut = QShortcut(QKeySequence(digit), self)
            shortcut.setAutoRepeat(False)
            shortcut.activated.connect(partial(self._press, Qt.Key(ord(digit))))

    def set_empty_words(self, words: str) -> None:
        """For a grid that something else than opening data fills."""
        self._empty.words.setText(words)
        for button in self._empty.buttons.values():
            button.hide()

    # -- panes ------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        return list(self._panes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return key in self._panes

    def pane(self, key: str) -> ImagePane:
        return self._panes[key]

    def image_panes(self) -> list[ImagePane]:
        """Those that show an image of their own: not the comparison."""
        return list(self._panes.values())

    def sort(self, order: Sequence[str]) -> None:
        """Bring the panes into the order of their keys."""
        if list(order) != self.keys():
            self._panes = {key: self._panes[key] for key in order}
            self._columns = 0
            self._arrange()

    def add(self, key: str, name: str, style: RunStyle | None = None) -> ImagePane:
        """A new pane at the end; the one of that key if there is one already."""
        if key in self._panes:
            return self._panes[key]
        pane = ImagePane(self.link, parent=self)
        pane.set_caption(name)
        pane.set_run_style(style)
        pane.set_patient_masked(self._masked)
        pane.set_colour_bar(self._bars)
        pane.maximise_requested.connect(partial(self._toggle_maximised, pane))
        pane.image_changed.connect(self.inspector.refresh_soon)
        self._panes[key] = pane
        self._columns = 0
        self.bring(key)
        self.panes_changed.emit()
        return pane

    def remove(self, key: str) -> None:
        pane = self._panes[key]
        if self._sources is not None and key in self._sources:
            self._sources = None
        compare = self.compare_pane  # what it shows need not be what it would open with now
        if compare is not None and pane in (compare.sources.a, compare.sources.b):
            self.set_compare(CompareMode.NONE)
        self._drop(self._panes.pop(key))
        self.panes_changed.emit()

    def clear(self) -> None:
        for key in self:
            self.remove(key)
        for key in self.extra_keys():
            self.remove_extra(key)

    def extra_keys(self) -> list[str]:
        return list(self._extras)

    def extra(self, key: str) -> ImagePane:
        return self._extras[key]

    def add_extra(self, key: str, pane: ImagePane) -> None:
        """A pane that is looked at but neither measured nor compared, such as a residual."""
        pane.set_patient_masked(self._masked)
        pane.maximise_requested.connect(partial(self._toggle_maximised, pane))
        self._extras[key] = pane
        self._columns = 0
        self._arrange()

    def remove_extra(self, key: str) -> None:
        self._drop(self._extras.pop(key))

    def _drop(self, pane: ImagePane) -> None:
        if self._maximised is pane:
            self._maximised = None
            self.maximised_changed.emit("")
        self._layout.removeWidget(pane)
        pane.hide()
        pane.detach()
        pane.deleteLater()
        self._columns = 0
        self._arrange()

    def set_patient_masked(self, masked: bool) -> None:
        self._masked = masked
        for pane in self._all():
            pane.set_patient_masked(masked)

    def set_colour_bars(self, shown: bool) -> None:
        self._bars = shown
        for pane in self.image_panes():
            pane.set_colour_bar(shown)

    # -- layout -----------------------------------------------------------------------------

    def _all(self) -> list[ImagePane]:
        compare = [self.compare_pane] if self.compare_pane is not None else []
        return [*self._panes.values(), *self._extras.values(), *compare]

    @property
    def maximised(self) -> ImagePane | None:
        return self._maximised

    def maximise(self, pane: ImagePane | None) -> None:
        """Show one pane alone; None shows all again."""
        self._maximised = pane
        self._columns = 0
        self._arrange()
        keys = [key for key, other in self._panes.items() if other is pane]
        self.maximised_changed.emit(keys[0] if keys else ("compare" if pane is not None else ""))

    def _toggle_maximised(self, pane: ImagePane) -> None:
        self.maximise(None if self._maximised is pane else pane)

    def show_at_most(self, most: int | None, pair: bool = False) -> None:
        """How many panes stand side by side: all of them (None), or as many as stay large (0).

        ``pair`` shows A and B of the comparison instead.
        """
        self._most, self._pair = most, pair
        self._columns = 0
        self._page = len(self.pages()) - 1  # the newest
        self._arrange()
        self.panes_changed.emit()

    @property
    def pair(self) -> bool:
        return self._pair

    def pages(self) -> list[list[ImagePane]]:
        """The panes by what is seen at once."""
        if self._maximised is not None:
            return [[self._maximised]]
        extras = list(self._extras.values())
        compare = [self.compare_pane] if self.compare_pane is not None else []
        if self._pair and (keys := self.compare_keys()):
            return [[*(self._panes[key] for key in keys), *extras, *compare]]
        panes = [*self._panes.values(), *extras]
        if self._most is None:
            return [[*panes, *compare]]
        room = self._most or most_large(self.width(), self.height())
        return pages_of(panes, compare, room)

    @property
    def page(self) -> int:
        return self._page

    def turn_page(self, step: int) -> None:
        """To the next images when not all are in sight; after the last come the first."""
        self._page = (self._page + step) % len(self.pages())
        self._arrange()

    def bring(self, key: str) -> None:
        """See to it that a pane is in sight."""
        pane = self._panes[key]
        if self._maximised is None:
            for number, page in enumerate(self.pages()):
                if pane in page:
                    self._page = number
                    break
        self._arrange()

    def _arrange(self) -> None:
        panes, pages = self._all(), self.pages()
        self._page = min(self._page, len(pages) - 1)
        shown = pages[self._page]
        columns = best_columns(len(shown), self.width(), self.height())
        if columns == self._columns and shown == self._shown and panes:
            return
        self._columns, self._shown = columns, shown
        for widget in (*panes, self._empty):
            self._layout.removeWidget(widget)
        for line in range(max(self._layout.rowCount(), self._layout.columnCount())):
            self._layout.setRowStretch(line, 0)
            self._layout.setColumnStretch(line, 0)
        self._empty.setVisible(not panes)
        for pane in panes:
            pane.alone = pane is self._maximised
            pane.setVisible(pane in shown)
        for number, widget in enumerate(shown or [self._empty]):
            row, column = divmod(number, columns)
            self._layout.addWidget(widget, row, column)
            self._layout.setRowStretch(row, 1)
            self._layout.setColumnStretch(column, 1)
        self.pages_changed.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    # -- comparison -------------------------------------------------------------------------

    def set_compare_sources(self, a: str, b: str) -> None:
        """A - B, A before B, A left of B."""
        self._sources = (a, b)
        if self.compare_pane is not None:
            self.compare_pane.set_sources(self._panes[a], self._panes[b])
        self._arrange()

    def compare_keys(self) -> tuple[str, ...]:
        """A and B: as chosen, else the preferred or newest against the first, the reference."""
        if self._sources is not None:
            return self._sources
        keys = self.keys()
        if len(keys) < 2:
            return ()
        return (self.preferred if self.preferred in keys[1:] else keys[-1], keys[0])

    def set_compare(self, mode: CompareMode) -> None:
        keys = self.compare_keys()
        if mode is not CompareMode.NONE and not keys:
            self.link.notice.emit("A comparison needs two images.")
            return
        kind = DifferencePane if mode is CompareMode.DIFFERENCE else BlendPane
        if self.compare_pane is not None and (
            mode is CompareMode.NONE or not isinstance(self.compare_pane, kind)
        ):
            pane, self.compare_pane = self.compare_pane, None
            self._drop(pane)
        self.mode = mode
        if mode is not CompareMode.NONE:
            if self.compare_pane is None:
                self._open_compare(kind(self.link, parent=self))
            if isinstance(self.compare_pane, BlendPane):
                self.compare_pane.set_swiping(mode is CompareMode.SWIPE)
        self.compare_changed.emit(mode)

    def _open_compare(self, pane: ComparePane) -> None:
        self.compare_pane = pane
        a, b = self.compare_keys()
        pane.set_patient_masked(self._masked)
        pane.set_sources(self._panes[a], self._panes[b])
        pane.maximise_requested.connect(partial(self._toggle_maximised, pane))
        if self._maximised is not None:  # or the comparison would open out of sight
            self.maximise(None)
        self._columns = 0
        self._arrange()

    def flicker(self) -> None:
        """Open the flicker; when it is open, show the other image."""
        if self.mode is CompareMode.FLICKER and isinstance(self.compare_pane, BlendPane):
            self.compare_pane.toggle()
        else:
            self.set_compare(CompareMode.FLICKER)

    def toggle_flicker_timer(self) -> None:
        if self.mode is not CompareMode.FLICKER:
            self.set_compare(CompareMode.FLICKER)
        if isinstance(self.compare_pane, BlendPane):
            self.compare_pane.set_running(not self.compare_pane.timer.isActive())

    def _toggle(self, mode: CompareMode) -> None:
        self.set_compare(CompareMode.NONE if self.mode is mode else mode)

    # -- keys -------------------------------------------------------------------------------

    def pointed(self) -> ImagePane | None:
        """The image under the pointer, else the one with the focus, else the first."""
        panes = [pane for pane in self._all() if pane.isVisible()]
        found = [pane for pane in panes if pane.underMouse()]
        found += [pane for pane in panes if pane.hasFocus()]
        return next(iter(found + panes), None)

    def image(self) -> np.ndarray | None:
        """What a window's range is taken from."""
        pane = self.pointed()
        return pane.image if pane is not None else None

    def _press(self, key: Qt.Key) -> bool:
        pane = self.pointed()
        return pane is not None and pane.keys.press(key, Qt.KeyboardModifier.NoModifier)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.window().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A key that nobody had a use for, since the focus is not on an image."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            pane = self.pointed()
            inside = pane is not None and pane.isAncestorOf(QApplication.focusWidget() or self)
            free = pane is not None and not pane.hasFocus() and not inside
            if pane is not None and free and pane.keys.press(event.key(), event.modifiers()):
                return True
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keys that the focused pane did not want."""
        shift = event.modifiers() == Qt.KeyboardModifier.ShiftModifier
        if event.modifiers() and not shift:
            super().keyPressEvent(event)
            return
        match event.key():
            case Qt.Key.Key_F:
                self.toggle_flicker_timer() if shift else self.flicker()
            case Qt.Key.Key_D:
                self._toggle(CompareMode.DIFFERENCE)
            case Qt.Key.Key_S:
                self._toggle(CompareMode.SWIPE)
            case Qt.Key.Key_PageUp | Qt.Key.Key_PageDown:
                self.turn_page(1 if event.key() == Qt.Key.Key_PageDown else -1)
            case Qt.Key.Key_Delete:
                self.link.measurements.remove_selected()
            case Qt.Key.Key_Escape:
                self._step_back()
            case _:
                super().keyPressEvent(event)

    def _step_back(self) -> None:
        if self.mode is not CompareMode.NONE:
            self.set_compare(CompareMode.NONE)
        elif self.link.tool is not Tool.WINDOW:
            self.link.set_tool(Tool.WINDOW)
        else:
            self.link.set_crosshair(None)
