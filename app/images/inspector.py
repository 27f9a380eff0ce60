"""Measures the region and the line in every pane, and says so when either changes.

While a run goes on the images change thirty times a second; the numbers follow five times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal

from app.images.display import LinkedView
from app.images.measure import Region, Shape
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
    statistics_changed = Signal(list)  # of PaneStatistics, one per pane with an image
    profiles_changed = Signal(list)  # of PaneProfile

    def __init__(
        self, link: LinkedView, panes: Callable[[], Sequence[ImagePane]], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._link = link
        self._panes = panes
        self.statistics: list[PaneStatistics] = []
        self.profiles: list[PaneProfile] = []
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        link.measurements.region_changed.connect(self.refresh_statistics)
        link.measurements.line_changed.connect(self.refresh_profiles)

    def refresh_soon(self) -> None:
        """An image changed: measure again, but not with every frame."""
        drawn = self._link.measurements.region or self._link.measurements.line
        if drawn is not None and not self._timer.isActive():
            self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def refresh(self) -> None:
        self.refresh_statistics()
        self.refresh_profiles()

    def refresh_statistics(self) -> None:
        region = self._link.measurements.region
        measured = []
        for pane in self._panes():
            found = _measure(pane, region)
            pane.set_statistics(found)
            if region is not None and pane.image is not None:
                measured.append(PaneStatistics(pane.name, found, pane.modality))
        self.statistics = measured
        self.statistics_changed.emit(measured)

    def refresh_profiles(self) -> None:
        line = self._link.measurements.line
        self.profiles = []
        if line is not None:
            from engine.metrics.roi import line_profile  # loads torch with its package

            for pane in self._panes():
                if pane.image is not None:
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
        self.profiles_changed.emit(self.profiles)


def _measure(pane: ImagePane, region: Region | None) -> RoiStatistics | None:
    if region is None or pane.image is None:
        return None
    from engine.metrics.roi import roi_statistics

    ellipse = region.shape is Shape.ELLIPSE
    return roi_statistics(pane.image, pane.view.pixel_mm, region.box, ellipse)
