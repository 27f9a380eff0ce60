"""Layouts that are filled anew."""

from __future__ import annotations

from PySide6.QtWidgets import QLayout


def empty_layout(layout: QLayout) -> None:
    """Remove its widgets for good. The item that `takeAt` hands out would never be freed."""
    while (item := layout.itemAt(0)) is not None:
        widget = item.widget()
        if widget is None:
            layout.removeItem(item)
            continue
        layout.removeWidget(widget)
        widget.hide()
        widget.deleteLater()
