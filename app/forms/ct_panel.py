"""The CT acquisition: its form, the covered angles and the sinogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.forms.form import AcquisitionPanel, SettingsForm
from app.forms.history import UndoValues
from app.forms.pictures import SinogramStrip
from app.theme import tabular
from engine.data.sinogram.view_selection import select_views
from engine.spec.acquisition import CTAcquisition
from engine.spec.settings import Rule, excludes, only_if_given, only_with

MOST_TICKS = 180  # more views are an arc


class PolarDial(QWidget):
    """Where the rays come from: ticks on a circle, seen as the image is.

    At angle t the source stands at (sin t, -cos t), as in the engine's geometry. A parallel
    ray and its opposite measure the same line, so both directions are marked.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.angles_deg: tuple[float, ...] = ()
        self.span, self.start, self.fan = 0.0, 0.0, False
        self.wrong = ""
        self.setFont(tabular(self.font()))
        self.setAccessibleName("Covered angles")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_coverage(1, 180.0, 0.0)

    def set_coverage(
        self,
        views: int,
        span_deg: float,
        start_deg: float,
        fan: bool = False,
        angles_deg: Sequence[float] | None = None,
    ) -> None:
        """Evenly spaced views, or the given ``angles_deg`` of a measured scan."""
        if angles_deg is None:
            angles_deg = [start_deg + i * span_deg / views for i in range(views)]
        self.angles_deg, self.wrong = tuple(angles_deg), ""
        self.span, self.start, self.fan = span_deg, start_deg, fan
        self._describe(self.words())

    def set_wrong(self, sentence: str) -> None:
        """The angles asked for make no scan: show none rather than old ones."""
        self.wrong = sentence
        self._describe(sentence)

    def _describe(self, words: str) -> None:
        self.setAccessibleDescription(words)
        self.setToolTip(words)
        self.update()

    def words(self) -> str:
        views = len(self.angles_deg)
        rays = "fan" if self.fan else "parallel"
        count = f"{views} {rays} view{'s' if views != 1 else ''}"
        text = f"{count} over {self.span:g}° from {self.start:g}°"
        if views > 1:
            text += f", one every {self.span / views:.3g}°"
        if not self.fan and self.span < 180:
            begin, end = (self.start + self.span) % 360, (self.start + 180) % 360
            text += f"; nothing is seen from {begin:g}° to {end:g}°, so some edges stay hidden"
        elif self.fan and self.span < 360:
            text += f"; the source stays out of the other {360 - self.span:g}°"
        return text + "."

    def sizeHint(self) -> QSize:
        return QSize(136, 136)

    def minimumSizeHint(self) -> QSize:
        return QSize(112, 112)

    def place(self, angle_deg: float, radius: float) -> QPointF:
        """Where the source of a view is on the screen (y downwards)."""
        t = math.radians(angle_deg)
        centre = QRectF(self.rect()).center()
        return QPointF(centre.x() + radius * math.sin(t), centre.y() + radius * math.cos(t))

    @property
    def radius(self) -> float:
        return min(self.width(), self.height()) / 2 - 10

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        text = self.palette().color(QPalette.ColorRole.WindowText)
        ink = self.palette().color(QPalette.ColorRole.Highlight)
        faint = QColor(text)
        faint.setAlpha(70)
        centre, radius = QRectF(self.rect()).center(), self.radius
        painter.setPen(QPen(faint, 1))
        painter.drawEllipse(centre, radius, radius)
        if self.wrong:
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "—")
            return
        self._paint_arcs(painter, ink, centre, radius)
        if len(self.angles_deg) <= MOST_TICKS:
            self._paint_ticks(painter, ink, radius)
        first = self.place(self.angles_deg[0] if self.angles_deg else self.start, radius)
        painter.setPen(QPen(text, 1))
        painter.setBrush(QBrush(text))
        painter.drawEllipse(first, 3, 3)
        inner = QRectF(0, 0, 1.3 * radius, 1.3 * radius)
        inner.moveCenter(centre)
        views = len(self.angles_deg)
        caption = f"{views} view{'s' if views != 1 else ''}\n{self.span:g}°"
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip
        painter.drawText(inner, flags, caption)

    def _paint_arcs(self, painter: QPainter, ink: QColor, centre: QPointF, radius: float) -> None:
        few = len(self.angles_deg) <= MOST_TICKS
        band = QColor(ink)
        band.setAlpha(90 if few else 255)
        painter.setPen(QPen(band, 6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        circle = QRectF(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius)
        # Qt counts sixteenths of a degree from three o'clock; the source starts at six o'clock.
        sides = (0.0,) if self.fan else (0.0, 180.0)
        for side in sides:
            begin = self.start + side - 90
            painter.drawArc(circle, round(16 * begin), round(16 * min(self.span, 360.0)))

    def _paint_ticks(self, painter: QPainter, ink: QColor, radius: float) -> None:
        painter.setPen(QPen(ink, 1.5))
        for angle in self.angles_deg:
            painter.drawLine(self.place(angle, radius - 8), self.place(angle, radius + 5))
        if self.fan:
            return
        for angle in self.angles_deg:
            painter.drawLine(
                self.place(angle + 180, radius - 4), self.place(angle + 180, radius + 2)
            )


BASIC = ("views", "angular_range", "start_angle", "geometry", "photons")
# What a measured scan still takes (the engine refuses the rest).
MEASURED = (
    *("views", "angular_range", "start_angle", "fbp_filter", "backend"),
    *("photons", "electronic_noise", "gaussian_noise", "noise", "weighted", "aperture"),
)
PLAIN = ("views", "angular_range", "photons")
ANGLES = ("views", "angular_range", "start_angle")
FAN_ONLY = "Only a fan has a source: choose fan rays first."
PHOTONS_ONLY = "Only with photon noise: give photons per ray first."
WAS_MEASURED = "This describes a simulated scan, and the data were measured."
IS_SIMULATED = "A simulated scan has the noise that is given here: there is none to estimate."

RULES: dict[str, Rule] = {
    "source_origin_mm": only_with("geometry", "fan", FAN_ONLY),
    "source_detector_mm": only_with("geometry", "fan", FAN_ONLY),
    "electronic_noise": only_if_given("photons", PHOTONS_ONLY),
    "weighted": only_if_given("photons", PHOTONS_ONLY),
    "gaussian_noise": excludes(
        "photons", "gaussian_noise", "Photons per ray are given: clear them to use this instead."
    ),
    "photons": excludes(
        "gaussian_noise", "photons", "Gaussian noise is given: set it to 0 to use photons instead."
    ),
}


class CTPanel(AcquisitionPanel):
    """Says how the image is measured."""

    def __init__(self, history: UndoValues | None = None, parent: QWidget | None = None) -> None:
        self.dial = PolarDial()
        self.strip = SinogramStrip()
        self.angles_deg: NDArray[np.float64] | None = None  # of a measured scan
        form = SettingsForm(CTAcquisition, BASIC, RULES, history=history)
        super().__init__(form, self.dial, self.strip, parent=parent)

    def set_expert(self, on: bool) -> None:
        self.form.show_only(None if on else PLAIN)
        self.strip.setVisible(on)

    def set_sinogram(self, sinogram: NDArray | None, kept: Sequence[int] | None = None) -> None:
        """``[views, detectors]``; of measured data all views, of which the panel knows ``kept``."""
        self.strip.set_sinogram(sinogram, kept)
        self._refresh()

    def set_simulated(self, defaults: dict[str, Any] | None = None) -> None:
        """The open data are an image: every control is free again; other ``defaults`` are its."""
        self.angles_deg = None
        self.form.rules["weighted"] = RULES["weighted"]
        self.form.set_context(defaults=defaults, locks={"noise": IS_SIMULATED})
        self._refresh()

    def set_measured(
        self,
        views: int,
        angular_range: float,
        start_angle: float = 0.0,
        geometry: str = "parallel",
        angles_deg: Sequence[float] | None = None,
        photons: str = "not known",
    ) -> None:
        """The open data are a sinogram: views can be dropped, never added."""
        even = start_angle + np.arange(views) * angular_range / views
        self.angles_deg = even if angles_deg is None else np.asarray(angles_deg, np.float64)
        locked = [name for name in self.form.rows if name not in MEASURED]
        self.form.rules.pop("weighted", None)  # estimated photons weigh the rays, too
        blank = {
            "views": f"all {views}",
            "angular_range": f"all {angular_range:.4g}",
            "start_angle": f"as measured, {start_angle:.4g}",
            "photons": photons,
        }
        self.form.set_context(
            blank=blank,
            defaults={"geometry": geometry},
            locks=dict.fromkeys(locked, WAS_MEASURED),
            check=self._select,
        )
        self._refresh()

    def kept(self) -> list[int] | None:
        """Numbers of the measured views in use; None when the scan is simulated or invalid."""
        if self.angles_deg is None or not self.valid:
            return None
        return [int(number) for number in self._select(self.value())]

    def _select(self, asked: dict[str, Any]) -> NDArray[np.intp]:
        assert self.angles_deg is not None
        return select_views(
            np.deg2rad(self.angles_deg),
            asked.get("views"),
            asked.get("angular_range"),
            asked.get("start_angle"),
        )

    def _refresh(self) -> None:
        """Show what is asked for, as soon as the fields that the pictures need are right."""
        faults = self.form.faults
        wrong = [sentence for name, sentence in faults.items() if name in (*ANGLES, "")]
        if wrong:
            self.dial.set_wrong(wrong[0])
            return
        values = self.form.history
        kept = self.kept()
        if kept is None or self.angles_deg is None:
            if self.angles_deg is None:
                fan = values["geometry"] == "fan"
                views, span, start = (values[name] for name in ANGLES)
                self.dial.set_coverage(views, span, start, fan)
            return
        angles = self.angles_deg[kept]
        step = abs(self.angles_deg[1] - self.angles_deg[0]) if len(self.angles_deg) > 1 else 0.0
        asked = self.value()
        low, span = float(angles.min()), float(np.ptp(angles) + step)
        self.dial.set_coverage(
            len(kept),
            round(asked.get("angular_range", min(span, 360.0)), 3),
            round(asked.get("start_angle", low), 3),
            self.form.history["geometry"] == "fan",
            [float(angle) for angle in angles],
        )
        self.strip.set_kept(kept)
