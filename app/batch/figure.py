"""The figures that an experiment wrote, one under the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QMouseEvent, QPainter, QPaintEvent, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.tips import plain_tip

WAITING: Final = "The figure appears here when the experiment ends."
MISSING: Final = "There is nothing to draw yet."


class Picture(QWidget):
    """An SVG or PNG file, as large as it is or as there is room; a double-click opens it."""

    def __init__(self, path: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self.svg = QSvgRenderer(str(path), self) if path.suffix == ".svg" else None
        self.pixmap = QPixmap() if self.svg else QPixmap(str(path))
        self.natural = self.svg.defaultSize() if self.svg else self.pixmap.size()
        self.setAccessibleName(f"Figure {path.stem}")
        self.setToolTip(plain_tip(f"{path}\nDouble-click to see it large in the system's viewer."))
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    @property
    def shown(self) -> bool:
        """Whether the file holds a picture."""
        return not self.natural.isEmpty()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return round(self._size(width).height())

    def sizeHint(self) -> QSize:
        return self.natural

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.heightForWidth(self.width()))

    def paintEvent(self, event: QPaintEvent) -> None:
        area = QRectF(0, 0, 0, 0)
        area.setSize(self._size(self.width()).toSizeF())
        area.moveLeft((self.width() - area.width()) / 2)
        painter = QPainter(self)
        if self.svg is not None:
            self.svg.render(painter, area)
        else:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawPixmap(area, self.pixmap, QRectF(self.pixmap.rect()))
        painter.end()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.path)))

    def _size(self, width: int) -> QSize:
        if not self.shown:
            return QSize(0, 0)
        scale = min(1.0, width / self.natural.width())
        return self.natural * scale


class Figures(QWidget):
    """Words until there are pictures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.pictures: list[Picture] = []
        self.words = QLabel(WAITING)
        self.words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.words.setWordWrap(True)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(8)
        self.column.addWidget(self.words, 1)
        self.rest = QWidget()  # takes what the pictures leave free
        self.rest.hide()
        self.column.addWidget(self.rest, 1)

    def clear(self, words: str = WAITING) -> None:
        for picture in self.pictures:
            self.column.removeWidget(picture)
            picture.hide()
            picture.deleteLater()
        self.pictures = []
        self.words.setText(words)
        self.words.show()
        self.rest.hide()

    def show_files(self, paths: Sequence[Path]) -> None:
        self.clear(MISSING)
        self.pictures = [p for p in (Picture(path) for path in paths) if p.shown]
        for number, picture in enumerate(self.pictures):
            self.column.insertWidget(number, picture)
        self.words.setVisible(not self.pictures)
        self.rest.setVisible(bool(self.pictures))
