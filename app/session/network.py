"""Other computers: a person is asked before anything of them is reached for, or sent there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

SHOWN = 5
QUESTION = "This workspace names data on another computer."
ADVICE = (
    "Opening them connects to that computer and may log in with your name and password. "
    "Go on only if you know it:"
)


def ask_addresses(named: Sequence[str], go_on: Callable[[], None], parent: QWidget) -> QMessageBox:
    """``go_on`` is called when the person agrees; No, the default, opens nothing."""
    more = [f"and {len(named) - SHOWN} more"] if len(named) > SHOWN else []
    lines = [text[:200] for text in named[:SHOWN]]
    advice = "\n".join([ADVICE, "", *lines, *more])
    return ask_first("Open the workspace", QUESTION, advice, go_on, parent)


def ask_first(
    title: str, question: str, advice: str, go_on: Callable[[], None], parent: QWidget
) -> QMessageBox:
    """A warning whose default answer is No."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setWindowTitle(title)
    box.setTextFormat(Qt.TextFormat.PlainText)  # addresses are a stranger's words
    box.setText(question)
    box.setInformativeText(advice)
    box.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.No)
    box.setDefaultButton(QMessageBox.StandardButton.No)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    yes = QMessageBox.StandardButton.Yes.value
    box.finished.connect(lambda answer: go_on() if answer == yes else None)
    box.open()
    return box
