"""Which images stand side by side, and what each of them shows just now."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.data.opened import Opened
from app.images.grid import PaneGrid
from app.images.offers import Offer
from app.images.pane import ImagePane
from app.images.plane import PlanePane
from app.images.window_level import WindowLevel
from app.runs.presenter import RunPresenter
from app.runs.store import RunEntry, RunStore
from app.session.coverage import covering, lacks, nearest, why_empty
from app.session.jobs import run_lines
from app.session.previews import Previews
from app.theme import RunStyle, run_style

REFERENCE: Final = "reference"
OF_DATA: Final = {
    "image": "Reference",
    "sinogram": "All views, FBP",
    "kspace": "All lines, direct",
    "spokes": "All spokes, direct",
}
PLANES: Final = {
    "x": "x, consistent with the data",
    "u": "u, the dual",
    "x - z": "x − z",
    "residual": "Ax − y, the residual",
}
SIGNED: Final = ("u", "x - z", "residual")
MOST_PANES: Final = 8


class Panes(QObject):
    """Keeps the grid in step with the open data, the runs and the slice.

    The open data come first, then every visible run in the order it was made; extra planes
    (x, u, ...) belong to the current run. Panes follow the list of runs in the next turn of the
    event loop: starting runs hides, adds and renames many at once, and all of it together with
    the repaint that follows would be felt.
    """

    slice_wanted = Signal(int)
    wanted_changed = Signal()  # other planes must be computed
    current_changed = Signal()
    here_wanted = Signal()  # the shown methods are to run on this slice
    why_wanted = Signal(str)  # a run whose verdict is to be explained
    rest_wanted = Signal()  # the shown stacks are to go on

    def __init__(self, grid: PaneGrid, store: RunStore, runs: RunPresenter) -> None:
        super().__init__(grid)
        self.grid, self.store, self.runs = grid, store, runs
        self.current: str | None = None  # the run that extra planes are of
        self.planes: set[str] = set()
        self._frame_slice: dict[str, int] = {}  # which slice a run's newest frame is of
        self._data: Opened | None = None
        self._back: dict[str, tuple[int, np.ndarray]] = {}  # runs scrubbed back: k, images
        self._stale: set[str] = set()  # runs whose panes are not up to date
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.follow)
        store.added.connect(self._on_runs)
        store.removed.connect(self._on_runs)
        store.updated.connect(self._on_updated)
        runs.frame.connect(self._on_frame)
        self.previews = Previews(store, runs, self._back, self._on_updated)
        grid.link.slice_changed.connect(self._on_slice)

    # -- data -------------------------------------------------------------------------------

    def set_data(self, data: Opened, slice_number: int) -> None:
        """Other data are open: their picture follows through `show_preview`."""
        self._data, self.current = data, None
        self.grid.clear()
        self._back.clear()
        link = self.grid.link
        window = data.window
        link.window_model.set_default(None if window is None else WindowLevel(*window))
        link.window_model.forget()
        link.measurements.forget()
        link.set_source(data.reading_step, data.pixel_mm is not None)
        link.set_slice_count(data.count)
        link.set_slice(slice_number)
        radial = data.lines is not None and data.lines.trajectory is not None
        name = OF_DATA["spokes" if radial else data.kind]
        pane = self.grid.add(REFERENCE, name, run_style(REFERENCE))
        pane.set_patient(*data.patient)
        pane.set_run_lines(data.size_words)
        pane.set_empty_text("Reading …")
        for entry in self.store:
            self._show_entry(entry)
        self.slice_wanted.emit(slice_number)
        self.current_changed.emit()

    @Slot(int, object)
    def show_preview(self, number: int, image: np.ndarray) -> None:
        if self._data is None or number != self.slice:
            return
        pane = self.grid.pane(REFERENCE)
        pane.set_image(image, self._pixel_mm(), self._data.modality)
        pane.set_placement(self._placement(number))

    @property
    def slice(self) -> int:
        return self.grid.link.state.slice

    def _pixel_mm(self) -> tuple[float, float]:
        return (self._data.pixel_mm if self._data is not None else None) or (1.0, 1.0)

    def _placement(self, number: int) -> Any:
        placements = self._data.placements if self._data is not None else None
        return placements[number] if placements and number < len(placements) else None

    # -- runs -------------------------------------------------------------------------------

    def belongs(self, entry: RunEntry) -> bool:
        """Whether a run was made of the open data, so that it lies on the same anatomy."""
        if self._data is None:
            return False
        job = entry.job
        return (job.get("input"), job.get("options") or {}) == (
            self._data.text,
            self._data.options,
        )

    def shown(self) -> list[RunEntry]:
        """The runs that have a pane, in the order of the panes."""
        return [entry for entry in self.store if entry.visible and self.belongs(entry)]

    def make_room(self, starting: Iterable[str]) -> None:
        """Before new runs: earlier ones of the same methods step aside, and too many, too."""
        methods = set(starting)
        for entry in self.shown():
            if entry.solver in methods:
                self.store.change(entry.run_id, visible=False)
        for entry in self.shown()[: max(0, len(self.shown()) + len(methods) - MOST_PANES)]:
            self.store.change(entry.run_id, visible=False)

    def set_current(self, run_id: str | None) -> None:
        self.current = run_id
        self._arrange_planes()
        self.current_changed.emit()

    @Slot(str)
    def _on_runs(self, run_id: str) -> None:
        self._back.pop(run_id, None)
        self._frame_slice.pop(run_id, None)
        if run_id == self.current and run_id not in self.store:
            self.current = None
            self.current_changed.emit()
        self._on_updated(run_id)

    @Slot(str)
    def _on_updated(self, run_id: str) -> None:
        self._stale.add(run_id)
        self._soon.start()

    @Slot()
    def follow(self) -> None:
        """Bring the panes up to date with the runs now."""
        self._soon.stop()
        stale, self._stale = self._stale, set()
        if self._data is None:
            return
        shown = self.shown()
        wanted = [entry.run_id for entry in shown]
        for key in self.grid:
            if key not in (REFERENCE, *wanted):
                self.grid.remove(key)
        for entry in shown:
            if entry.run_id in stale or entry.run_id not in self.grid:
                self._show_entry(entry)
        self.grid.sort([REFERENCE, *wanted])
        ours = [entry.run_id for entry in shown if entry.solver == "dc-pnpdp"]
        self.grid.preferred = ours[-1] if ours else ""
        self._arrange_planes()

    def _show_entry(self, entry: RunEntry) -> None:
        """The pane of a run, with all that is known of it."""
        if self._data is None or not (entry.visible and self.belongs(entry)):
            return
        style = RunStyle(entry.colour, tuple(entry.dash))
        pane = self.grid.add(entry.run_id, entry.name, style)
        self._fill(pane, covering(entry, self.slice, self._belonging()))

    def _belonging(self) -> list[RunEntry]:
        return [entry for entry in self.store if self.belongs(entry)]

    def _fill(self, pane: ImagePane, entry: RunEntry) -> None:
        """A pane with what ``entry`` has of this slice."""
        assert self._data is not None
        pane.set_run_style(RunStyle(entry.colour, tuple(entry.dash)))
        pane.caption.why = partial(self.why_wanted.emit, entry.run_id)
        lines = (*run_lines(entry, self._data.kind == "image"), self._data.size_words)
        if self.previews.of(entry) is not None:
            lines = ("PREVIEW", *lines)  # in the pixels, too, should it be copied
        pane.set_run_lines(*lines)
        pane.set_patient(*self._data.patient)
        self._show_caption(entry, pane)
        pane.set_empty_text(why_empty(entry, self.slice), self._offers(entry))
        self._show_image(entry, pane)

    def lacking(self) -> list[RunEntry]:
        """The runs in sight that have no image of this slice, nor will have."""
        runs = [covering(entry, self.slice, self._belonging()) for entry in self.shown()]
        return [entry for entry in runs if lacks(entry, self.slice)]

    def _offers(self, entry: RunEntry) -> list[Offer]:
        if not lacks(entry, self.slice):
            return []
        words = "Run the methods in sight on this slice, with the settings of their runs."
        offers = [Offer("Run here", words, self.here_wanted.emit)]
        if entry.stack is not None and self.slice in entry.slices:
            rest = "Compute the slices that are missing; those that are there are kept."
            offers.append(Offer("Go on with the stack", rest, self.rest_wanted.emit))
        if (back := nearest([entry], self.slice)) is not None:
            go = partial(self.grid.link.set_slice, back)
            offers.append(Offer(f"Go to slice {back + 1}", "The nearest one that it has.", go))
        return offers

    def _show_caption(self, entry: RunEntry, pane: ImagePane) -> None:
        """Name and numbers of the image that is seen, which may be an earlier one."""
        if (preview := self.previews.of(entry)) is not None:
            pane.set_caption(f"{entry.name}, preview at 1/{preview.factor} of its size")
            return
        live = entry.stack.live if entry.stack is not None else None
        if live is not None and live.number == self.slice:
            pane.set_caption(f"{entry.name}, iteration {live.k} of {live.K}")
            return
        if lacks(entry, self.slice):
            pane.set_caption(entry.name)  # its numbers are of other slices
            return
        if entry.run_id not in self._back or len(entry.snapshots) < 2:
            psnr, ssim = (entry.metric_of(self.slice, name) for name in ("psnr", "ssim"))
            pane.set_caption(entry.name, psnr, ssim, entry.verdicts)
            return
        k = self._back[entry.run_id][0]
        psnr, ssim = (entry.history.at("k", k, name) for name in ("psnr", "ssim"))
        pane.set_caption(f"{entry.name}, k = {k}", psnr, ssim)

    def _show_image(self, entry: RunEntry, pane: ImagePane) -> None:
        """The image of this slice: an earlier iteration, the result, or the newest frame."""
        if entry.slices and self.slice not in entry.slices:
            pane.clear()
            return
        if entry.stack is not None:
            live, image = entry.stack.live, entry.stack.image(self.slice)
            if image is None and live is not None and live.number == self.slice:
                image = live.image
            if image is not None:
                self._put(pane, image, entry)
            else:
                pane.clear()
            return
        if (preview := self.previews.of(entry)) is not None:
            self._put(pane, preview.image, entry)
            return
        sample = entry.slices.index(self.slice) if entry.slices else 0
        images = self._back[entry.run_id][1] if entry.run_id in self._back else entry.images
        frame = entry.last_frame
        if images is not None:
            self._put(pane, images[sample], entry)
        elif frame is not None and "image" in frame.planes:
            self._put(pane, frame.planes["image"], entry)

    def _put(self, pane: ImagePane, image: np.ndarray, entry: RunEntry) -> None:
        pane.set_image(image, entry.pixel_mm or self._pixel_mm(), entry.modality or "CT")
        pane.set_placement(self._placement(self.slice))

    # -- live -------------------------------------------------------------------------------

    @Slot(str, object)
    def _on_frame(self, run_id: str, frame: Any) -> None:
        entry = self.store.get(run_id)
        if entry is None or run_id not in self.grid:
            return
        if entry.slices and self.slice not in entry.slices:
            return
        pane = self.grid.pane(run_id)
        if self.previews.of(entry) is not None:
            pass  # the pane is left as it is
        elif run_id not in self._back and "image" in frame.planes:
            pane.set_caption(entry.name, frame.metrics.get("psnr"), frame.metrics.get("ssim"))
            simulated = self._data is None or self._data.kind == "image"
            size = self._data.size_words if self._data is not None else ""
            pane.set_run_lines(*run_lines(entry, simulated), size)
            self._put(pane, frame.planes["image"], entry)
        self._frame_slice[run_id] = self.slice
        if run_id == self.current:
            self._show_planes(entry, frame)

    def scrub(self, k: int, live: bool) -> None:
        """All runs at iteration ``k``, or back to their newest; those without one stay."""
        self._back.clear()
        for entry in self.shown():
            found = None if live else entry.snapshots.at(k)
            if found is not None:
                self._back[entry.run_id] = (found[0], found[2])
            if entry.run_id in self.grid:
                self._show_entry(entry)

    @Slot(int)
    def _on_slice(self, number: int) -> None:
        self.slice_wanted.emit(number)
        if REFERENCE in self.grid:
            self.grid.pane(REFERENCE).set_placement(self._placement(number))
        for entry in self.shown():
            self._show_entry(entry)
        self._refresh_planes()
        self.wanted_changed.emit()

    # -- planes -----------------------------------------------------------------------------

    def set_planes(self, names: set[str]) -> None:
        """Which of PLANES to show beside the current run."""
        self.planes = set(names)
        self._arrange_planes()
        self.wanted_changed.emit()

    @property
    def wanted(self) -> set[str]:
        return {"image", *self.planes}

    @property
    def sample(self) -> int:
        """Which slice of the current run the frames must be of."""
        entry = self.store.get(self.current) if self.current else None
        slices = entry.slices if entry is not None else ()
        return slices.index(self.slice) if self.slice in slices else 0

    def _arrange_planes(self) -> None:
        entry = self.store.get(self.current) if self.current else None
        wanted = [name for name in PLANES if name in self.planes] if entry is not None else []
        for key in self.grid.extra_keys():
            if key not in wanted:
                self.grid.remove_extra(key)
        for name in wanted:
            if name not in self.grid.extra_keys():
                # of MR the magnitude is shown, which has no sign
                signed = name in SIGNED and entry is not None and entry.modality == "CT"
                link = None if name == "residual" else self.grid.link
                self.grid.add_extra(name, PlanePane(link, signed, "", self.grid))
        self._refresh_planes()

    def _refresh_planes(self) -> None:
        """The newest ones; those of another slice are not left standing."""
        entry = self.store.get(self.current) if self.current else None
        if entry is None or entry.last_frame is None:
            return
        kept = self.slice if entry.frame_slice is None else entry.frame_slice
        known = self._frame_slice.get(entry.run_id, kept)
        if known == self.slice:
            self._show_planes(entry, entry.last_frame)
            return
        for name in self.grid.extra_keys():
            pane = self.grid.extra(name)
            pane.set_empty_text(f"{entry.label} kept its {name} of slice {known + 1}.")
            pane.clear()

    def _show_planes(self, entry: RunEntry, frame: Any) -> None:
        for name in self.grid.extra_keys():
            pane = self.grid.extra(name)
            pane.set_caption(f"{PLANES[name]}: {entry.name}")
            pane.set_run_style(RunStyle(entry.colour, tuple(entry.dash)))
            pane.set_empty_text(f"{entry.label} has no {name}.")
            if name not in frame.planes:
                pane.clear()
                continue
            plane = frame.planes[name]
            # a sinogram has no shape in mm: as high as wide, few views can be seen, too
            square = (plane.shape[1] / plane.shape[0], 1.0)
            pixel = square if name == "residual" else entry.pixel_mm or (1.0, 1.0)
            assert isinstance(pane, PlanePane)
            pane.show_plane(plane, pixel, entry.modality, frame.units[name])
