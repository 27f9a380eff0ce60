"""A Markdown page, legible in either theme: tables with lines, code on its own ground."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QEvent, Qt, QUrl, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontDatabase,
    QImage,
    QPalette,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
)
from PySide6.QtWidgets import QTextBrowser, QTextEdit, QWidget

from engine.files.folders import RESOURCES

MARGIN_PX: Final = 16
CELL_PX: Final = 6
TEXT_PX: Final = 14
HEADING_PX: Final = (24, 18, 15)
MARKDOWN: Final = QTextDocument.MarkdownFeature.MarkdownDialectGitHub
CODE: Final = QTextFormat.Property.BlockCodeLanguage
_Role = QPalette.ColorRole


class PageView(QTextBrowser):
    """Shows text it is given; a click on a link only says so."""

    link_clicked = Signal(QUrl)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Help page")
        self.setOpenLinks(False)
        # a bar that appears while a page is set resizes it, and the page would be written twice
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.anchorClicked.connect(self.link_clicked)
        self.markdown, self.folder = "", RESOURCES / "help"

    def show_markdown(self, text: str, folder: Path) -> None:
        """``folder`` is where pictures and links start from."""
        self.markdown, self.folder = text, folder
        self._render()
        self.moveCursor(QTextCursor.MoveOperation.Start)
        self.verticalScrollBar().setValue(0)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Pictures of the program's own resources and nothing else, never wider than the page."""
        link = QUrl(name)
        path = (self.folder / link.path()).resolve()
        is_image = kind == QTextDocument.ResourceType.ImageResource.value
        if not is_image or not link.isRelative() or not path.is_relative_to(RESOURCES):
            return None
        image = QImage(str(path))
        room = max(self.viewport().width() - 2 * MARGIN_PX, 64)
        if image.width() > room:
            image = image.scaledToWidth(room, Qt.TransformationMode.SmoothTransformation)
        return image

    def mark(self, words: str) -> int:
        """Lay a ground under every place of the words; how many there are."""
        found: list[QTextEdit.ExtraSelection] = []
        ground = QColor(self.palette().color(_Role.Highlight))
        ground.setAlpha(96)
        cursor = QTextCursor(self.document())
        while words and not (cursor := self.document().find(words, cursor)).isNull():
            # the stub knows no attributes of this struct
            place: Any = QTextEdit.ExtraSelection()
            place.cursor = QTextCursor(cursor)
            place.format.setBackground(ground)
            found.append(place)
        self.setExtraSelections(found)
        return len(found)

    def find_words(self, words: str, backwards: bool) -> bool:
        """Select the next place, going round at the end of the page."""
        way = QTextDocument.FindFlag.FindBackward if backwards else QTextDocument.FindFlag(0)
        if self.find(words, way):
            return True
        before = self.textCursor()
        ends = QTextCursor.MoveOperation
        self.moveCursor(ends.End if backwards else ends.Start)
        if self.find(words, way):
            return True
        self.setTextCursor(before)
        return False

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "markdown"):
            self._render_again()

    def resizeEvent(self, event: QResizeEvent) -> None:
        wider = event.size().width() != event.oldSize().width()
        super().resizeEvent(event)
        if wider and "![" in self.markdown:
            self._render_again()

    def _render_again(self) -> None:
        place = self.verticalScrollBar().value()
        self._render()
        self.verticalScrollBar().setValue(place)

    def _render(self) -> None:
        document = self.document()
        font = QFont(self.font())
        font.setPixelSize(TEXT_PX)
        document.setDefaultFont(font)
        document.setDocumentMargin(MARGIN_PX)
        document.setMarkdown(self.markdown, MARKDOWN)
        whole = QTextCursor(document)
        whole.beginEditBlock()  # or the page would be laid out again with every word
        block = document.begin()
        while block.isValid():
            self._style_block(block)
            block = block.next()
        for frame in document.rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                self._style_table(frame)
        whole.endEditBlock()
        # a page is read from its start, and nothing of it can be undone
        document.clearUndoRedoStacks()

    def _style_block(self, block: QTextBlock) -> None:
        shape = QTextBlockFormat()
        level = block.blockFormat().headingLevel()
        if level:
            self._set_size(block, HEADING_PX[min(level, len(HEADING_PX)) - 1])
            shape.setTopMargin(0 if level == 1 else 20)
            shape.setBottomMargin(8)
        elif _is_code(block):
            shape.setBackground(self.palette().color(_Role.AlternateBase))
            shape.setNonBreakableLines(True)
            shape.setLeftMargin(16)
            shape.setTopMargin(0)
            shape.setBottomMargin(0 if _is_code(block.next()) else 12)
        elif QTextCursor(block).currentTable() is None:
            shape.setBottomMargin(4 if block.textList() is not None else 10)
            shape.setLineHeight(125, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        QTextCursor(block).mergeBlockFormat(shape)
        self._style_code(block)

    def _set_size(self, block: QTextBlock, size_px: int) -> None:
        for place, length, letters in _parts(block):
            # the relative size that Markdown set would win
            letters.clearProperty(QTextFormat.Property.FontSizeAdjustment)
            letters.setProperty(QTextFormat.Property.FontPixelSize, size_px)
            self._span(place, length).setCharFormat(letters)

    def _style_code(self, block: QTextBlock) -> None:
        """Fixed-width letters in the system's own such font, at a size that suits the text."""
        fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        for place, length, letters in _parts(block):
            if letters.fontFixedPitch() or _is_code(block):
                letters.setFontFamilies([fixed.family()])
                letters.setProperty(QTextFormat.Property.FontPixelSize, TEXT_PX - 1)
                self._span(place, length).setCharFormat(letters)

    def _span(self, start: int, length: int) -> QTextCursor:
        cursor = QTextCursor(self.document())
        cursor.setPosition(start)
        cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _style_table(self, table: QTextTable) -> None:
        shape = table.format()
        shape.setBorder(1)
        shape.setBorderCollapse(True)
        shape.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        shape.setBorderBrush(QBrush(self.palette().color(_Role.Mid)))
        shape.setCellPadding(CELL_PX)
        shape.setCellSpacing(0)
        shape.setTopMargin(4)
        shape.setBottomMargin(12)
        shape.setColumnWidthConstraints(
            [QTextLength(QTextLength.Type.VariableLength, 0)] * table.columns()
        )
        table.setFormat(shape)
        for column in range(table.columns()):
            cell = table.cellAt(0, column)
            letters = cell.format()
            letters.setBackground(self.palette().color(_Role.AlternateBase))
            cell.setFormat(letters)


def _parts(block: QTextBlock) -> list[tuple[int, int, QTextCharFormat]]:
    """Position, length and format of each stretch of equal letters."""
    found = []
    part = block.begin()
    while not part.atEnd():
        fragment = part.fragment()
        found.append((fragment.position(), fragment.length(), fragment.charFormat()))
        part += 1
    return found


def _is_code(block: QTextBlock) -> bool:
    """A line of a code block."""
    return block.isValid() and block.blockFormat().hasProperty(CODE)
