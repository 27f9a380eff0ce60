"""Tab goes where the eye goes: in the order of the layouts, whenever a part was made.

Qt's own chain is in the order of making, in which forms and images that come later are last.
"""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLayout, QMainWindow, QScrollArea, QSplitter, QStackedLayout, QWidget


def focus_next(window: QWidget, forward: bool) -> bool:
    """Whether the focus has moved; where it is in no layout, Qt's chain has to do."""
    stops = list(_stops(window))
    now: QWidget | None = window.focusWidget()
    while now is not None and now not in stops:
        now = None if now is window else now.parentWidget()
    if now is None:
        return False
    target = stops[(stops.index(now) + (1 if forward else -1)) % len(stops)]
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    target.setFocus(reason)
    above = target.parentWidget()
    while isinstance(above, QWidget):
        if isinstance(above, QScrollArea):
            above.ensureWidgetVisible(target)
        above = above.parentWidget()
    return True


def _stops(widget: QWidget) -> Iterator[QWidget]:
    """Itself or what is in it, as far as Tab may stop there."""
    if not widget.isVisible() or not widget.isEnabled():
        return
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None:
        yield widget
    for part in parts_of(widget):
        yield from _stops(part)


def parts_of(widget: QWidget) -> list[QWidget]:
    """What stands in a widget, in the order of its layout."""
    if isinstance(widget, QMainWindow):
        return [widget.centralWidget(), widget.statusBar(), widget.menuBar().cornerWidget()]
    if isinstance(widget, QSplitter):
        return [widget.widget(number) for number in range(widget.count())]
    if isinstance(widget, QScrollArea):
        return [widget.widget()]
    layout = widget.layout()
    return list(_laid_out(layout)) if layout is not None else []


def _laid_out(layout: QLayout) -> Iterator[QWidget]:
    if isinstance(layout, QStackedLayout):
        if (shown := layout.currentWidget()) is not None:
            yield shown
        return
    for number in range(layout.count()):
        item = layout.itemAt(number)
        if item is not None and (part := item.widget()) is not None:
            yield part
        elif item is not None and (inner := item.layout()) is not None:
            yield from _laid_out(inner)
