"""Which prior, and its card."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QPushButton,
    QTextBrowser,
    QWidget,
)

from app.forms.choices import prior_card
from app.forms.fields import CalmCombo
from app.forms.labels import on_screen
from app.widgets import in_column, in_row, plain_tip
from engine.spec.errors import RequestError

OTHER = "other file…"
HELP = "The denoiser that says what images look like; auto takes the best."


class CardDialog(QDialog):
    """A model card to read; opened with open(), so that nothing waits for it."""

    def __init__(self, name: str, markdown: str, folder: Path, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"Prior {name}")
        self.resize(640, 560)
        self.page = QTextBrowser()
        self.page.setAccessibleName(f"Model card of {name}")
        self.page.setSearchPaths([str(folder)])
        self.page.setOpenLinks(False)
        self.page.setMarkdown(markdown)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        in_column(self.page, buttons, parent=self)


class PriorPicker(QWidget):
    """A list of priors with 'auto' first, a file on request, and the card of the chosen one."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.modality = "CT"
        self.names: tuple[str, ...] = ()
        self.current = "auto"
        self.combo = CalmCombo()
        self.combo.setAccessibleName("Prior")
        self.combo.setToolTip(HELP)
        self.card = QPushButton("Card")
        self.card.setAccessibleName("Card of the prior")
        self.card.setToolTip("What the prior was trained on, its licence and how well it does.")
        in_row((self.combo, 1), self.card, spacing=4, margins=0, parent=self)
        self.combo.activated.connect(self._on_activated)
        self.card.clicked.connect(lambda: self.show_card())

    def set_names(self, names: tuple[str, ...], modality: str) -> None:
        self.names, self.modality = names, modality
        self.show_name(self.current)

    def set_reason(self, reason: str) -> None:
        """Why no prior is used; empty when one is."""
        self.combo.setEnabled(not reason)
        self.combo.setToolTip(plain_tip(reason or HELP))

    def show_name(self, name: str) -> None:
        """Select a name; one that is not in the list is a file and is added."""
        self.current = name
        self.combo.clear()
        best = f" ({self.names[0]})" if self.names else ""
        self.combo.addItem(f"auto{best}", "auto")
        extra = () if name == "auto" or name in self.names else (name,)
        for one in (*self.names, *extra):
            self.combo.addItem(Path(one).name, one)
        self.combo.addItem(OTHER, OTHER)
        self.combo.setCurrentIndex(self.combo.findData(name))

    def show_card(self) -> CardDialog:
        name = self.names[0] if self.current == "auto" and self.names else self.current
        try:
            text, folder = prior_card(name, self.modality)
        except RequestError as error:
            text, folder = on_screen(error), Path()
        dialog = CardDialog(Path(name).name, text, folder, self.window())
        dialog.open()
        return dialog

    def _on_activated(self) -> None:
        name = self.combo.currentData()
        if name != OTHER:
            self.chosen.emit(name)
            return
        self.show_name(self.current)
        dialog = QFileDialog(self.window(), "Choose a prior", "", "Priors (*.safetensors)")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.chosen)
        dialog.open()
