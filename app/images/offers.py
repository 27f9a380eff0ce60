"""What can be done about an image that is not there: buttons in the pane itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from app.widgets import in_row

BELOW_PX = 28  # the middle of the pane, where the sentence is


@dataclass(frozen=True)
class Offer:
    words: str
    tip: str
    act: Callable[[], object]


class Offers(QWidget):
    """A row of buttons below the sentence of an empty pane; hidden when there is none."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.area = parent
        self.buttons: list[QPushButton] = []
        self._offers: tuple[Offer, ...] = ()
        self._row = in_row(spacing=8, margins=0, parent=self)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.hide()

    def set_offers(self, offers: Sequence[Offer]) -> None:
        """Their acts may be new each time; buttons are made anew when their words are."""
        before, self._offers = self._offers, tuple(offers)
        if [one.words for one in before] != [one.words for one in offers]:
            for button in self.buttons:
                self._row.removeWidget(button)
                button.hide()
                button.deleteLater()
            self.buttons = []
            for number, offer in enumerate(offers):
                button = QPushButton(offer.words, self)
                button.clicked.connect(lambda _=False, at=number: self._offers[at].act())
                button.setAutoDefault(False)
                self._row.addWidget(button)
                self.buttons.append(button)
        for button, offer in zip(self.buttons, offers, strict=True):
            button.setAccessibleName(offer.words)
            button.setToolTip(offer.tip)

    def place(self, empty: bool) -> None:
        """In the middle of the pane, when its image is not there."""
        self.setVisible(empty and bool(self._offers))
        if self.isVisible():
            size, area = self.sizeHint(), self.area.rect()
            self.resize(size)
            self.move((area.width() - size.width()) // 2, area.center().y() + BELOW_PX)
            self.raise_()
