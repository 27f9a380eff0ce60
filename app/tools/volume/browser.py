"""The volume window of the program: opens folders, fills them live, fetches the cuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, Slot

from app.background import Ended, JobPresenter, Mailbox
from app.context import AppContext
from app.images.window_level import WindowLevel
from app.tasks import Newest
from app.tools.volume.model import ExportRequest, VolumeTable
from app.tools.volume.panes import MISSING
from app.tools.volume.series_source import SeriesSource
from app.tools.volume.source import Facts, Known, VolumeSource
from app.tools.volume.viewer import A, B
from app.widgets import ask_path
from engine.files.folders import state_folder
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError

if TYPE_CHECKING:
    from app.tools.volume.exports import VolumeExport
    from app.tools.volume.viewer import VolumeViewer

CutSource = VolumeSource | SeriesSource
CUTTING = "Cutting the volume"
OPENING = "Opening the volume …"
EXPORTING = "An export is going on: wait, or cancel it first."


def _export(asked: ExportRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    """In a thread of its own: cuts can be looked at meanwhile."""
    from app.tools.volume.job import export_volume

    return export_volume(asked, control, mailbox)


class VolumeBrowser(QObject):
    """Reads in the tasks' thread; of cuts that a fast hand asks for, only the newest."""

    def __init__(self, context: AppContext) -> None:
        super().__init__(context.window)
        self.context = context
        self.view: VolumeViewer | None = None
        self.exporter = JobPresenter(_export, "volume export", EXPORTING, self)
        self.exports: VolumeExport | None = None
        self.sources: dict[str, CutSource] = {}
        self._cuts, self._fills = Newest(context.tasks), Newest(context.tasks)
        self._row: int | None = None  # to go to when the volume is there
        context.store.updated.connect(self._on_updated)

    # -- opening ----------------------------------------------------------------------------

    def ask(self) -> None:
        self._chooser("Open a volume", self.open)

    def open(self, folder: str, row: int = -1) -> None:
        """Show the volume of a folder, with its slice ``row`` if there is one."""
        self._row = row if row >= 0 else None
        same = A in self.sources and self.sources[A].place == Path(folder).absolute()
        if same and self.view is not None and self.view.isVisible():
            self._go()
            self._raise()
            self.refresh()
            return
        self.sources = {}
        if self.view is not None:
            self.view.clear(OPENING)
        self._open(A, folder)

    @Slot()
    def show_series(self) -> None:
        """The open series, and the stack of the current run if it has one."""
        data, panes = self.context.setup.data, self.context.panes
        if data is None or data.count < 2:
            words = "Open a series first." if data is None else "These data have one slice."
            self.context.messages.notice(words)
            return
        entry = self.context.store.get(panes.current) if panes.current else None
        if entry is not None and (entry.stack is None or not panes.belongs(entry)):
            entry = None
        self._row = panes.slice
        source = SeriesSource(data, entry, panes.slice)
        if A in self.sources and self.sources[A].place == source.place:
            self._go()
            self._raise()
        else:
            if self.view is not None:
                self.view.clear(OPENING)
            self._on_opened(A, (source, source.facts()))
        self.refresh()

    @Slot(str)
    def _on_updated(self, run_id: str) -> None:
        """Slices of a stack that is shown may be new."""
        source = self.sources.get(A)
        if isinstance(source, SeriesSource) and source.entry is not None:
            stack = source.entry.stack
            same = source.entry.run_id == run_id and stack is not None
            if same and stack is not None and set(stack.metrics) - source.made:
                self.refresh()

    def compare(self, folder: str) -> None:
        """Show another volume in turn with the first."""
        self._open(B, folder)

    def _open(self, letter: str, folder: str) -> None:
        known = self._known()

        def work() -> tuple[VolumeSource, Facts]:
            source = VolumeSource.open(Path(folder).absolute(), known())
            return source, source.facts()

        # not as the newest of many: slices that come meanwhile would take its place
        self.context.tasks.start(OPENING, work, partial(self._on_opened, letter), self._on_failed)

    def _known(self) -> Callable[[], Sequence[Known]]:
        """The open data may be those of the volume; hashing them is for the other thread."""
        data = self.context.setup.data

        def known() -> Sequence[Known]:
            if data is not None:
                with suppress(DualscopeError):  # changed since they were opened: not the volume's
                    sha256, apart = data.dataset.sha256(), data.dataset.slice_mm
                    return (Known(sha256, data.placements, data.pixel_mm, apart),)
            return ()

        return known

    def _on_failed(self, sentence: str, details: str) -> None:
        if self.view is not None and not self.sources:
            self.view.clear(MISSING)
        self.context.messages.error(sentence, details)

    def _on_opened(self, letter: str, opened: tuple[CutSource, Facts]) -> None:
        source, facts = opened
        view = self.view or self._make_view()
        first = view.facts.get(A)
        if letter == B and first is None:
            return  # closed, or another volume is being opened
        if letter == B and first is not None and facts.shape != first.shape:
            sizes = (" × ".join(map(str, one.shape)) for one in (facts, first))
            self.context.messages.error("The volumes differ in size: {} and {}.".format(*sizes))
            return
        if letter == B and first is not None:
            self.sources[B] = source
            view.set_facts({A: first, B: facts})
            view.show_letter(B)
        else:
            self.sources = {A: source}
            view.set_facts({A: facts})
        self._go()
        self._raise()

    def _make_view(self) -> VolumeViewer:
        from app.tools.volume.exports import VolumeExport
        from app.tools.volume.viewer import VolumeViewer

        view = self.view = VolumeViewer(self.context.window)
        view.first_window = self._first_window
        view.panes.window_model.changed.connect(self._keep_window)
        for link in view.panes.links:
            self.context.picture_source.emit(link)
        view.wanted.connect(self._cut)
        view.compare_asked.connect(lambda: self._chooser("Compare with", self.compare))
        self.exports = VolumeExport(self.exporter, self.context, view)
        view.export_asked.connect(self.exports.show)
        return view

    def _first_window(self, facts: Facts) -> WindowLevel | None:
        """A series as the main window shows it, a volume as the last one was seen."""
        if isinstance(self.sources.get(A), SeriesSource):
            return self.context.grid.link.window
        kept = self.context.settings.get("volume_window").get(facts.modality, "")
        with suppress(ValueError):
            centre, width = map(float, kept.split())
            return WindowLevel(centre, width)
        return None

    @Slot(object)
    def _keep_window(self, window: WindowLevel) -> None:
        """Of CT: the numbers of MR mean nothing for another scan."""
        if self.view is not None and self.view.panes.window_model.modality == "CT":
            self.context.settings.put("volume_window", "CT", f"{window.centre} {window.width}")

    def _go(self) -> None:
        if self._row is not None and self.view is not None:
            _, row, column = self.view.panes.voxel
            self.view.panes.go_to((self._row, row, column))
            self._row = None

    def _raise(self) -> None:
        if self.view is not None:
            self.view.show()
            self.view.raise_()
            self.view.activateWindow()

    def _chooser(self, title: str, act: Callable[[str], None]) -> None:
        def chosen(path: str) -> None:
            self.context.keep_folder("volumes", str(Path(path).parent))
            act(path)

        start = self.context.folder_for("volumes", state_folder() / "volumes")
        ask_path(self.view or self.context.window, title, start, chosen)

    # -- filling ----------------------------------------------------------------------------

    @Slot(object)
    def on_table(self, table: VolumeTable) -> None:
        """A volume is being computed: it may be one of those shown."""
        if any(str(one.place) == table.folder for one in self.sources.values()):
            self.refresh()

    def refresh(self, ended: bool = False) -> None:
        """Read what is new; at the end, the engine's own maps and figures."""
        if self.view is None or not self.view.isVisible() or not self.sources:
            return
        known, sources = self._known(), dict(self.sources)

        def work() -> dict[str, tuple[CutSource, Facts]]:
            found: dict[str, tuple[CutSource, Facts]] = {}
            for letter, source in sources.items():
                if ended and isinstance(source, VolumeSource):
                    source = VolumeSource.open(source.place, known())
                found[letter] = source, source.refresh()
            return found

        self._fills.ask("Reading new slices", work, partial(self._on_filled, sources))

    def _on_filled(
        self, asked: dict[str, CutSource], found: dict[str, tuple[CutSource, Facts]]
    ) -> None:
        same = asked.keys() == self.sources.keys() and all(
            one is self.sources[letter] for letter, one in asked.items()
        )
        if self.view is None or not same:
            return  # another volume was opened meanwhile
        self.sources = {letter: source for letter, (source, _) in found.items()}
        self.view.set_facts({letter: facts for letter, (_, facts) in found.items()})
        if any(isinstance(one, SeriesSource) and one.unread for one in self.sources.values()):
            self.refresh()

    # -- cuts -------------------------------------------------------------------------------

    @Slot()
    def _cut(self) -> None:
        view = self.view
        if view is None or view.letter not in self.sources:
            return
        source, what, voxel = self.sources[view.letter], view.what, view.panes.voxel
        slab = view.slab.value

        def work() -> list[np.ndarray]:
            return [source.cut(what, axis, voxel, slab) for axis in range(3)]

        self._cuts.ask(CUTTING, work, partial(self._on_cut, source, what))

    def _on_cut(self, source: CutSource, what: str, pictures: list[np.ndarray]) -> None:
        view = self.view
        if view is not None and self.sources.get(view.letter) is source and view.what == what:
            view.show_cuts(what, pictures)

    # -- ending -----------------------------------------------------------------------------

    def close(self) -> None:
        self._cuts.drop()
        self._fills.drop()
        if self.exports is not None:
            self.exports.close()
        if self.view is not None:
            self.view.close()
