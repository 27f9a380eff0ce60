"""Reading, Compare and Research: what is folded away in each, and how many images are seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QSplitter

from app.images.grid import PaneGrid
from app.layouts.rail import Rail
from app.plots.panel import PlotPanel
from app.shell.settings import AppSettings

NARROW_PX: Final = 1440  # a window with no room for both columns beside its images


@dataclass(frozen=True)
class Layout:
    label: str
    keys: str
    tip: str
    folded: tuple[str, ...]  # at first; then as it was left
    large: bool = False  # only as many images as stay large
    pair: bool = False
    thin_curves: bool = False


LAYOUTS: Final = {
    "reading": Layout(
        "Reading",
        "F6",
        "One to four large images, everything else folded away.",
        ("left", "right", "plots"),
        large=True,
    ),
    "compare": Layout(
        "Compare",
        "F7",
        "Two large images, A and B, with the curves as a thin strip.",
        ("left", "right"),
        pair=True,
        thin_curves=True,
    ),
    "research": Layout(
        "Research", "F8", "All images with settings, curves, runs and measurements.", ()
    ),
}
COUNTS: Final = {  # of images in Reading
    "large": "As many as stay large",
    **{str(count): str(count) for count in (1, 2, 3, 4)},
}


class Layouts(QObject):
    """Every layout keeps what was folded in it, over starts, too."""

    changed = Signal(str)  # the name of the layout
    folded_changed = Signal(str, bool)  # left, right or plots

    def __init__(
        self,
        settings: AppSettings,
        split: QSplitter,
        grid: PaneGrid,
        rails: dict[str, Rail],
        plots: PlotPanel,
    ) -> None:
        super().__init__(split)
        self.settings, self.split, self.grid = settings, split, grid
        self.rails, self.plots = rails, plots
        self.parts: dict[str, Rail | PlotPanel] = {**rails, "plots": plots}
        self.name = "research"
        self._applying = False
        for name, part in self.parts.items():
            part.folded_changed.connect(partial(self._on_folded, name))

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.name]

    def restore(self, width: int) -> None:
        """As it was left, for a window of this width."""
        for name, text in self.settings.get("rails").items():
            if name in self.rails and text.isdecimal():
                self.rails[name].open_px = int(text)
        if not self.settings.get("layouts") and width < NARROW_PX:
            self.settings.put("layouts", "research", "right")
        self.choose(self.settings.get("layout"))
        self._spread(width)

    def save(self) -> None:
        for name, rail in self.rails.items():
            width = rail.open_px if rail.folded else rail.width()
            self.settings.put("rails", name, str(width))

    def choose(self, name: str) -> None:
        self.name = name
        layout = self.layout
        self.settings.set("layout", name)
        folded = self.settings.get("layouts").get(name, " ".join(layout.folded)).split()
        self._applying = True
        for part, folding in self.parts.items():
            folding.set_folded(part in folded)
        self._applying = False
        self.plots.set_thin(layout.thin_curves)
        self.apply_count()
        self._spread(self.split.width())
        self.changed.emit(name)

    def set_count(self, count: str) -> None:
        self.settings.set("images", count)
        self.apply_count()

    def apply_count(self) -> None:
        layout, count = self.layout, self.settings.get("images")
        most = (int(count) if count.isdecimal() else 0) if layout.large else None
        self.grid.show_at_most(most, layout.pair)

    def fold(self, part: str, folded: bool) -> None:
        self.parts[part].set_folded(folded)

    @Slot()
    def _on_folded(self, part: str, folded: bool) -> None:
        if not self._applying:
            names = [name for name, one in self.parts.items() if one.folded]
            self.settings.put("layouts", self.name, " ".join(names))
            if part in self.rails:
                self._spread(self.split.width())
        self.folded_changed.emit(part, folded)

    def _spread(self, width: int) -> None:
        """The images get whatever the rails leave."""
        left, right = (self.rails[name].wanted_px for name in ("left", "right"))
        self.split.setSizes([left, max(width - left - right, 1), right])
