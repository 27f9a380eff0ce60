"""A long text to read and to copy."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)


class DetailsDialog(QDialog):
    """Not modal: a run goes on while its owner reads; deletes itself when closed."""

    def __init__(self, sentence: str, details: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Details")
        self.setModal(False)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.sentence = QLabel(sentence, self)
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setWordWrap(True)
        self.text = QPlainTextEdit(details, self)
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setAccessibleName("Details")
        self.text.setToolTip("What the program knows about it; select any part to copy it.")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self.copyButton = QPushButton("Copy", self)
        self.copyButton.setAutoDefault(False)
        self.copyButton.setAccessibleName("Copy the sentence and the details")
        self.copyButton.setToolTip("Copy the sentence and all details to the clipboard.")
        self.copyButton.clicked.connect(self.copy)
        buttons.addButton(self.copyButton, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.button(QDialogButtonBox.StandardButton.Close).setToolTip("Close this window.")
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 16, 16, 16)
        layout.setSpacing(8)
        layout.addWidget(self.sentence)
        layout.addWidget(self.text, 1)
        layout.addWidget(buttons)
        self.resize(720, 440)

    @Slot()
    def copy(self) -> None:
        whole = f"{self.sentence.text()}\n\n{self.text.toPlainText()}"
        QGuiApplication.clipboard().setText(whole)
