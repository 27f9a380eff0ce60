"""Measures what is drawn in every pane, and says so when anything changes.

While a run goes on the images change thirty times a second; the numbers follow five times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal

from app.images.display import LinkedView
from app.images.measure import Kind, Measurement
from app.images.text import size_text, statistics_text
from app.theme import RunStyle

if TYPE_CHECKING:
    from app.images.pane import ImagePane
    from engine.metrics.roi import RoiStatistics

REFRESH_MS: Final = 200


@dataclass(frozen=True)
class PaneStatistics:
    name: str
    statistics: RoiStatistics | None
    modality: str


@dataclass(frozen=True)
class PaneProfile:
    name: str
    distance_mm: np.ndarray
    values: np.ndarray
    modality: str
    style: RunStyle | None = None


class Inspector(QObject):
    """``values`` keeps what was measured last of each area, for those on other slices, too."""

    statistics_changed = Signal(list)  # of PaneStatistics of one area, for panes with an image
    profiles_changed = Signal(list)  # of PaneProfile
    values_changed = Signal()

    def __init__(
        self, link: LinkedView, panes: Callable[[], Sequence[ImagePane]], parent: QObject
    ) -> None:
        super().__init__(parent)
        self.link = link
        self._panes = panes
        self.statistics: list[PaneStatistics] = []
        self.profiles: list[PaneProfile] = []
        self.values: dict[int, dict[ImagePane, PaneStatistics]] = {}
        self._measured: dict[int, Measurement] = {}  # what the values are of
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        link.measurements.changed.connect(self._on_drawn)

    def refresh_soon(self) -> None:
        """An image changed: measure again, but not with every frame."""
        if self.link.measurements.shown() and not self._timer.isActive():
            self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def refresh(self) -> None:
        """All of them: the images may be others."""
        self._measured.clear()
        self._on_drawn()

    def _on_drawn(self) -> None:
        drawn, everyone = self.link.measurements, list(self._panes())
        panes = [pane for pane in everyone if pane.image is not None]
        kept = {one.number for one in drawn.all}
        self.values = {
            number: {pane: one for pane, one in found.items() if pane in everyone}
            for number, found in self.values.items()
            if number in kept
        }
        for one in drawn.shown():
            if one.is_area and self._measured.get(one.number) != one:
                self.values[one.number] = {
                    pane: PaneStatistics(pane.name, _measure(pane, one), pane.modality)
                    for pane in panes
                }
                self._measured[one.number] = one
        region, line = drawn.region, drawn.line
        found = self.values.get(region.number, {}) if region is not None else {}
        for pane in everyone:
            pane.view.set_words({one.number: self._words(one, pane) for one in drawn.shown()})
        if found or self.statistics:
            self.statistics = list(found.values())
            self.statistics_changed.emit(self.statistics)
        self._refresh_profiles(line, panes)
        self.values_changed.emit()

    def _words(self, one: Measurement, pane: ImagePane) -> str:
        if not one.is_area:
            return size_text(one, self.link.spacing_known)
        measured = self.values.get(one.number, {}).get(pane)
        return statistics_text(measured.statistics, measured.modality) if measured else ""

    def _refresh_profiles(self, line: Measurement | None, panes: Sequence[ImagePane]) -> None:
        before, self.profiles = self.profiles, []
        if line is not None:
            from engine.metrics.roi import line_profile  # loads torch with its package

            for pane in panes:
                assert pane.image is not None
                found = line_profile(pane.image, pane.view.pixel_mm, line.start, line.end)
                self.profiles.append(
                    PaneProfile(
                        pane.name,
                        found.distance_mm,
                        found.values,
                        pane.modality,
                        pane.run_style,
                    )
                )
        if before or self.profiles:
            self.profiles_changed.emit(self.profiles)


def _measure(pane: ImagePane, area: Measurement) -> RoiStatistics | None:
    from engine.metrics.roi import masked_statistics, polygon_mask, region_mask

    assert pane.image is not None
    shape, pixel_mm = pane.image.shape, pane.view.pixel_mm
    if area.kind is Kind.FREEHAND:
        mask = polygon_mask(shape, pixel_mm, area.points)
    else:
        mask = region_mask(shape, pixel_mm, area.box, area.kind is Kind.ELLIPSE)
    return masked_statistics(pane.image, pixel_mm, mask)
