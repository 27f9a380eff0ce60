"""The series of a folder, with thumbnails; those that cannot be opened are grey and say why."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from PySide6.QtCore import (
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import (
    QColor,
    QIcon,
    QImage,
    QPainter,
    QPixmap,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLabel,
    QListView,
    QSizePolicy,
    QSlider,
    QSpinBox,
    QWidget,
)

from app.data.cine import CineBar
from app.data.opened import Opened, SeriesItem
from app.forms.labels import on_screen
from app.theme import tabular
from app.widgets import in_column, in_row, plain_tip

Index = QModelIndex | QPersistentModelIndex
ICON_PX = 48
MOST_ROWS = 4  # seen at once; more are scrolled
ROW_PX = ICON_PX + 8
NUMBER, KEY = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1


class SeriesList(QListView):
    """`chosen` carries the key of a series that a click or an arrow key went to."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.items = QStandardItemModel(self)
        self.setModel(self.items)
        self.setAccessibleName("Series")
        self.setToolTip("Choose the series to work on.")
        self.setIconSize(QSize(ICON_PX, ICON_PX))
        self.setUniformItemSizes(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._series: tuple[SeriesItem, ...] = ()
        self._lines: tuple[object, ...] = ()
        self._silent = False
        self._blank = _icon(None)

    def show_series(self, opened: Opened) -> None:
        """List what was found; the place in an unchanged list is kept."""
        self._silent = True
        lines = (
            opened.text,
            *((item.number, item.key, item.label, item.part) for item in opened.series),
        )
        if lines != self._lines:
            self._lines = lines
            self.items.clear()
            for item in opened.series:
                self.items.appendRow(self._row(item, opened))
        self._series = opened.series
        self._silent = False
        self.select_chosen()
        self.updateGeometry()

    def select_chosen(self) -> None:
        """Back to the series that is open."""
        self._silent = True
        for row, item in enumerate(self._series):
            if item.chosen:
                index = self.items.index(row, 0)
                self.setCurrentIndex(index)
                self.scrollTo(index)
        self._silent = False

    def set_thumbnails(self, pictures: Mapping[int, np.ndarray]) -> None:
        for row in range(self.items.rowCount()):
            item = self.items.item(row)
            picture = pictures.get(item.data(NUMBER))
            if picture is not None:
                item.setIcon(_icon(picture))

    def sizeHint(self) -> QSize:
        rows = min(max(self.items.rowCount(), 1), MOST_ROWS)
        return QSize(240, rows * ROW_PX + 2 * self.frameWidth())

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        if current.isValid() and not self._silent:
            self.chosen.emit(str(current.data(KEY)))

    def _row(self, item: SeriesItem, opened: Opened) -> QStandardItem:
        second = ", ".join(filter(None, (item.part, item.screen_text)))
        if opened.found is None and item.number > 0:
            second = opened.screen_name
        row = QStandardItem(self._blank, f"{item.label}\n{second}" if second else item.label)
        row.setData(item.number, NUMBER)
        row.setData(item.key, KEY)
        row.setSizeHint(QSize(0, ROW_PX))
        words = f"{item.label}. {second}".strip()
        if item.refusal is not None:
            words = on_screen(item.refusal)
            row.setEnabled(False)
            row.setData(words, Qt.ItemDataRole.AccessibleDescriptionRole)
        row.setToolTip(plain_tip(words))
        return row


def _icon(picture: np.ndarray | None) -> QIcon:
    """On black, in its own shape."""
    pixmap = QPixmap(2 * ICON_PX, 2 * ICON_PX)  # sharp on dense screens too
    pixmap.fill(QColor("black"))
    if picture is not None:
        pixels = np.ascontiguousarray(picture, dtype=np.uint8)
        height, width = pixels.shape
        image = QImage(pixels.data, width, height, width, QImage.Format.Format_Grayscale8)
        size = image.size().scaled(pixmap.size(), Qt.AspectRatioMode.KeepAspectRatio)
        target = QRect(0, 0, size.width(), size.height())
        target.moveCenter(pixmap.rect().center())
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawImage(target, image)
        painter.end()
    icon = QIcon(pixmap)
    icon.addPixmap(pixmap, QIcon.Mode.Selected)  # a tint would change how the image looks
    return icon


class SliceBar(QWidget):
    """Counts from 1 on the screen and from 0 in its signal; hidden when there is one slice."""

    wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.count = 1
        self.words = QLabel()
        self.words.setFont(tabular(self.words.font()))
        self.spin = QSpinBox()
        self.spin.setAccessibleName("Slice number")
        self.spin.setToolTip("Type the number of the slice to show.")
        self.spin.setKeyboardTracking(False)
        self.spin.setFont(tabular(self.spin.font()))
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Slice")
        self.slider.setToolTip("Drag to go through the slices; arrow keys go one by one.")
        self.cine = CineBar()
        self.cine.wanted.connect(self.wanted)
        first = in_row((self.words, 1), self.cine, self.spin, margins=0)
        in_column(first, self.slider, spacing=4, margins=0, parent=self)
        self.slider.valueChanged.connect(self._on_value)
        self.spin.valueChanged.connect(self._on_value)
        self.set_count(1)

    @property
    def number(self) -> int:
        return self.slider.value() - 1

    def set_count(self, count: int, number: int = 0, step: int = 1) -> None:
        self.count = count
        self.cine.set_series(count, step)
        for control in (self.slider, self.spin):
            with QSignalBlocker(control):
                control.setRange(1, count)
        self.slider.setPageStep(max(1, count // 10))
        self.set_number(number)
        self.setVisible(count > 1)

    @Slot(int)
    def set_number(self, number: int) -> None:
        """Follow what is shown elsewhere; `wanted` stays silent."""
        for control in (self.slider, self.spin):
            with QSignalBlocker(control):
                control.setValue(number + 1)
        self.cine.set_number(self.slider.value() - 1)
        self.words.setText(f"Slice {self.slider.value()} of {self.count}")

    @Slot(int)
    def _on_value(self, value: int) -> None:
        self.set_number(value - 1)
        self.wanted.emit(value - 1)
