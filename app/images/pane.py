"""One image pane: the image, what is written over it and around it, its mouse and keys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFocusEvent, QImage, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.images import colours, text
from app.images.caption import Annotations, Caption, TitleLine
from app.images.display import LinkedView
from app.images.key_drawing import KeyDrawing
from app.images.keys import KeyActions
from app.images.menu import PaneMenu
from app.images.offers import Offer, Offers
from app.images.overlay import (
    CROWDED_PX,
    ColourBar,
    Drawing,
    Overlay,
    OverlayText,
    ScaleBar,
    scale_bar,
)
from app.images.view import PaneView
from app.images.window_level import WindowLevel, WindowModel
from app.theme import SMALLEST_TEXT_PX, RunStyle, tabular
from engine.spec.marks import RESEARCH

if TYPE_CHECKING:
    from engine.data.dataset import Placement


LEGIBLE_PX: Final = 480  # a narrower picture is enlarged: its marks must be read


class ImagePane(QWidget):
    """Shows one float32 image in HU (CT) or magnitude (MR).

    ``set_image`` is cheap, may be called with every frame, and keeps zoom and window. Everything
    shared with other panes lives in ``link``; a pane on its own makes a link for itself.
    """

    maximise_requested = Signal()
    image_changed = Signal()

    def __init__(
        self,
        link: LinkedView | None = None,
        window_model: WindowModel | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.link = link if link is not None else LinkedView(self)
        self.window_model = window_model or self.link.window_model
        self.name = ""
        self.modality = "CT"
        self.image: np.ndarray | None = None  # as given, NaN and all
        self.run_style: RunStyle | None = None
        self.annotations = Annotations()
        self._empty_text = ""
        self._bar_shown = False
        self.alone = False  # the only one that is shown

        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.view = self.make_view()
        self.overlay = Overlay(self.view.viewport())
        self.offers = Offers(self.view.viewport())
        self.title_line = TitleLine()
        self.caption = Caption()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 1, 1, 1)  # room for the line that shows the focus
        layout.setSpacing(0)
        layout.addWidget(self.title_line)
        layout.addWidget(self.view, 1)
        layout.addWidget(self.caption)

        self.keys = KeyActions(self.link, self.window_model, self)
        self.drawing = KeyDrawing(self.link, self.view)
        self.view.pressed.connect(self._take_focus)
        self.view.double_clicked.connect(self._on_double_click)
        self.view.resized.connect(self._on_resized)
        self.view.menu_asked.connect(self._on_menu)
        self.window_model.changed.connect(self._apply_window)
        for signal in (
            self.link.view_changed,
            self.link.slice_changed,
            self.link.cursor_changed,
        ):
            signal.connect(self.refresh_overlay)
        self._apply_window(self.window_model.window)
        self.set_caption("")

    def make_view(self) -> PaneView:
        return PaneView(self.link, self.window_model)

    # -- content ----------------------------------------------------------------------------

    def set_image(
        self,
        image: np.ndarray | None,
        pixel_mm: tuple[float, float] = (1.0, 1.0),
        modality: str = "CT",
    ) -> None:
        """Show ``image`` [rows, columns]; ``pixel_mm`` is (between rows, between columns).

        The pixels are copied: the caller may reuse its buffer.
        """
        if image is None:
            self.clear()
            return
        values = np.array(image, dtype=np.float32, order="C")
        if values.ndim != 2 or not values.size:
            raise ValueError(f"an image has rows and columns; this has shape {values.shape}")
        finite = np.isfinite(values)
        self.annotations.not_finite = values.size - int(np.count_nonzero(finite))
        resized = self.image is None or self.image.shape != values.shape
        changed = resized or pixel_mm != self.view.pixel_mm or modality != self.modality
        self.image = values
        self.modality = modality
        self.view.pixel_mm = pixel_mm
        item = self.view.image_item
        item.setVisible(True)
        item.setImage(self._displayed(values, finite), autoLevels=False)
        if changed:
            self.keys.has_presets = self.window_model is self.link.window_model
            self.view.place(item, pixel_mm)
            self.link.set_field(id(self), self.view.field_mm)
            self.view.apply_view()
        self.window_model.meet(modality, values)
        self.refresh_overlay()
        self.image_changed.emit()

    def _displayed(self, values: np.ndarray, finite: np.ndarray) -> np.ndarray:
        """The copy for the screen: what is not a number is shown as the lowest value."""
        if not self.annotations.not_finite:
            return values
        lowest = values[finite].min() if finite.any() else np.float32(0)
        return np.where(finite, values, lowest)

    def clear(self) -> None:
        self.image = None
        self.annotations.not_finite = 0
        self.view.image_item.clear()
        self.view.image_item.setVisible(False)
        self.link.set_field(id(self), None)
        self.refresh_overlay()
        self.image_changed.emit()

    def detach(self) -> None:
        """Before it goes: the panes that stay no longer fit its image."""
        self.clear()

    def set_caption(
        self,
        name: str,
        psnr_db: float | None = None,
        ssim: float | None = None,
        verdicts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.caption.set_text(name, text.metrics_text(psnr_db, ssim), verdicts)
        self.setAccessibleName(f"Image pane {name}".strip())

    def set_run_style(self, style: RunStyle | None) -> None:
        self.run_style = style
        self.title_line.set_run_style(style)

    def set_placement(self, placement: Placement | None) -> None:
        self.annotations.placement = placement
        self.refresh_overlay()

    def set_patient(self, *lines: str) -> None:
        self.annotations.patient = lines
        self.refresh_overlay()

    def set_patient_masked(self, masked: bool) -> None:
        self.annotations.patient_masked = masked
        self.refresh_overlay()

    def set_run_lines(self, *lines: str) -> None:
        """Method and settings for the top right; a reconstruction is marked RESEARCH there."""
        self.annotations.run_lines = lines
        self.refresh_overlay()

    def set_empty_text(self, words: str, offers: Sequence[Offer] = ()) -> None:
        self._empty_text = words
        self.offers.set_offers(offers)
        self.refresh_overlay()

    def set_colour_bar(self, shown: bool) -> None:
        self._bar_shown = shown
        self.refresh_overlay()

    # -- window -----------------------------------------------------------------------------

    def auto_window(self) -> WindowLevel | None:
        if self.image is None:
            return None
        return WindowLevel.auto(self.image, self.window_model.window.invert)

    def reset_window(self) -> None:
        if self.image is not None:
            self.window_model.reset(self.modality, self.image)

    def one_to_one(self) -> None:
        """As many pixels of the screen as the image has."""
        if self.image is not None:
            self.link.set_zoom(self.link.state.zoom / self.view.magnification())

    def lookup_table(self) -> np.ndarray:
        return colours.INVERTED if self.window_model.window.invert else colours.GREY

    def _apply_window(self, window: WindowLevel) -> None:
        self.view.image_item.setLookupTable(self.lookup_table())
        self.view.image_item.setLevels(window.levels)
        self.refresh_overlay()

    # -- overlay ----------------------------------------------------------------------------

    def value_at(self, point: tuple[float, float]) -> tuple[float, tuple[int, int]] | None:
        """The value of the image at ``point`` mm, and its (column, row)."""
        pixel = self.view.pixel_at(point)
        if pixel is None or self.image is None:
            return None
        return float(self.image[pixel[1], pixel[0]]), pixel

    def readout(self) -> str:
        """The value under the cursor, wherever among the linked panes the cursor is."""
        found = self.value_at(self.link.cursor) if self.link.cursor is not None else None
        return text.readout(found[0], self.modality, found[1]) if found is not None else ""

    def refresh_overlay(self) -> None:
        self.offers.place(self.image is None)
        if self.image is None:
            self.overlay.set_text(OverlayText(middle=self._empty_text))
            return
        self.overlay.set_text(
            self.annotations.compose(
                self.link,
                self.modality,
                (self.readout(), self.window_text(), self.zoom_text()),
                self._bar(),
                self._scale_bar(self.view.pixels_per_mm(), self.view.pane_size[0]),
            )
        )

    def window_text(self) -> str:
        return text.window_text(self.window_model.window, self.modality)

    def zoom_text(self) -> str:
        return text.zoom_text(self.view.magnification(), self.link.state)

    def _bar(self) -> ColourBar | None:
        if not self._bar_shown:
            return None
        low, high = (
            text.value_text(level, self.modality) for level in self.window_model.window.levels
        )
        return ColourBar(self.lookup_table(), low, high, text.unit_of(self.modality))

    def _scale_bar(self, pixels_per_mm: float, width: float) -> ScaleBar | None:
        known = self.link.spacing_known and width > CROWDED_PX
        return scale_bar(pixels_per_mm, width) if known else None

    def snapshot(self) -> QImage:
        """What the screen shows, no finer than it."""
        return self.view.grab().toImage()

    def picture(self) -> QImage:
        """What leaves the program: every pixel of the image that is seen, and its marks.

        The patient is as masked as on the screen.
        """
        seen = self.view.seen()
        if self.image is None or seen.isEmpty():
            return self.snapshot()
        pixel = self.view.pixels_per_mm() * min(self.view.pixel_mm)
        fine = max(1.0, pixel) / pixel * self.devicePixelRatioF()
        fine *= max(1, math.ceil(LEGIBLE_PX / (fine * seen.width())))
        result = QImage(
            max(1, round(fine * seen.width())),
            max(1, round(fine * seen.height())),
            QImage.Format.Format_RGB32,
        )
        result.fill(Qt.GlobalColor.black)
        painter = QPainter(result)
        painter.setRenderHints(self.view.renderHints())
        self.view.scene().render(
            painter, QRectF(result.rect()), seen, Qt.AspectRatioMode.IgnoreAspectRatio
        )
        font = tabular(self.font())
        font.setPixelSize(max(SMALLEST_TEXT_PX + 1, min(result.width(), result.height()) // 40))
        scale = self._scale_bar(fine * self.view.pixels_per_mm(), result.width())
        told = self.annotations.on_picture(
            self.link, self.name, self.window_text(), self._bar(), scale
        )
        Drawing(result.rect(), told).draw(painter, font)
        painter.end()
        for key, words in (("Comment", RESEARCH), ("Title", self.name)):
            result.setText(key, words)
        return result

    # -- Qt ---------------------------------------------------------------------------------

    def _take_focus(self) -> None:
        self.setFocus(Qt.FocusReason.MouseFocusReason)

    def _on_double_click(self, modifiers: Qt.KeyboardModifier) -> None:
        if modifiers & Qt.KeyboardModifier.ControlModifier:
            self.reset_window()
        else:
            self.maximise_requested.emit()

    def _on_resized(self) -> None:
        self.overlay.setGeometry(self.view.viewport().rect())
        self.refresh_overlay()  # the zoom is counted in pixels of the screen

    def _on_menu(self, at: QPointF) -> None:
        self.menu_at(at.toPoint())

    def menu_at(self, at: QPoint) -> PaneMenu:
        menu = PaneMenu(self, at)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.view.viewport().mapToGlobal(at))
        return menu

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """By key; the mouse's right button zooms when it is dragged, so it asks at its release."""
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.menu_at(self.view.viewport().rect().center())
        event.accept()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            digit = not event.modifiers() and event.text().isdigit()
            event.setAccepted(digit)  # the window's own are for when no image has the focus
            return digit or super().event(event)
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        pressed = event.key(), event.modifiers()
        if not (self.drawing.press(*pressed) or self.keys.press(*pressed)):
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.hasFocus():
            painter = QPainter(self)
            painter.setPen(self.palette().highlight().color())
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
            painter.end()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.update()
