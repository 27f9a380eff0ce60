"""What is open and which slice is shown: between the files and everything that shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot

from app.data import opening
from app.data.drop import input_of
from app.data.opened import Opened, Question, SeriesItem
from app.data.recent import RecentFiles
from app.data.thumbnails import MOST_BYTES, PreviewCache, thumbnail_of_series
from app.tasks import Newest, Tasks

if TYPE_CHECKING:
    from engine.data.dataset import Check

    _Read = tuple[np.ndarray, tuple[str, ...], tuple[Check, ...]]


class DataPresenter(QObject):
    """Opens data and reads their slices, all of it in Tasks; signals come on the GUI thread.

    A failed opening leaves what is open as it was. Of several openings the newest wins, and of
    several slices asked for in a row only the newest is read.
    """

    opened = Signal(object)  # Opened
    failed = Signal(str, str)  # one sentence, details
    geometry_needed = Signal(object)  # Question, with .missing
    preview = Signal(int, object)  # slice, float32 [rows, columns]
    thumbnails = Signal(object)  # {number of the series: uint8 [rows, columns]}, as they come
    sinogram = Signal(object)  # what `simulate` made, [views, detectors] or None
    warnings_changed = Signal(object)  # reading a slice brought new ones: all of them
    checks_changed = Signal(object)  # reading a slice found more: all of them
    results_changed = Signal()
    busy = Signal(str)  # what is being read; empty when nothing is

    def __init__(
        self,
        tasks: Tasks,
        recent: RecentFiles,
        parent: QObject | None = None,
        cache_bytes: int = MOST_BYTES,
    ) -> None:
        super().__init__(parent)
        self.tasks, self.recent = tasks, recent
        self.current: Opened | None = None
        self._opening: asyncio.Future[Any] | None = None
        self._cache = PreviewCache(cache_bytes)
        self._previews, self._sinograms = Newest(tasks), Newest(tasks)
        self._pictures: dict[int, np.ndarray] = {}
        self._undrawn: list[SeriesItem] = []
        self._drawing: asyncio.Future[Any] | None = None
        self._warnings: tuple[str, ...] = ()
        self._checks: tuple[Check, ...] = ()
        self.results: dict[str, SeriesItem] = {}  # finished stacks, by their place
        self._result_pictures: dict[int, np.ndarray] = {}
        self._source: Opened | None = None  # what was open before a result
        self._words = {"open": "", "slice": ""}

    # -- opening ------------------------------------------------------------------------------

    def open(self, text: str, options: dict[str, Any] | None = None) -> None:
        """A file, a folder or ``demo:ct``; with the options of `InputOptions`."""
        if not text.startswith(opening.DEMO):
            text = str(Path(text).expanduser().absolute())
        self._open(text, dict(options or {}), None)

    def open_demo(self, name: str) -> None:
        """``ct`` or ``mri``."""
        self.open(f"{opening.DEMO}{name}")

    def open_dropped(self, paths: Sequence[str]) -> None:
        """What was dropped: one file or folder, or the files of one DICOM folder."""
        if len(paths) == 1:
            self.open(paths[0])
            return
        self._replace_opening("Looking at the dropped files …")
        self._opening = self.tasks.start(
            "Looking at dropped files", partial(input_of, list(paths)), self.open, self._on_failed
        )

    def choose_series(self, key: str) -> None:
        """Open another series of the same folder; its headers are known already."""
        now = self.current
        if key in self.results:
            if now is None or now.text != key:
                self._open(key, {}, None)
            return
        if now is not None and now.text in self.results:
            now = self._source
            if now is not None and now.found is None:
                self._open(now.text, now.options, None)
                return
        if now is None or now.found is None:
            return
        item = next((item for item in now.series if item.key == key), None)
        shown = now is self.current and self._opening is None
        if item is None or (item.chosen and shown):
            return
        # back to the series a result was made of: its runs are known by these options
        options = now.options if item.chosen else {**now.options, "dataset": key}
        self._open(now.text, options, now.found)

    def add_result(self, item: SeriesItem, picture: np.ndarray | None = None) -> None:
        """A finished stack, whose key is the folder of its DICOM series."""
        if item.key not in self.results:
            item = replace(item, number=-1 - len(self.results))  # apart from those of a folder
        else:
            item = replace(item, number=self.results[item.key].number)
        self.results[item.key] = item
        if picture is not None:
            self._result_pictures[item.number] = picture
        self.results_changed.emit()
        self.thumbnails.emit(self._pictures | self._result_pictures)

    def listed(self, opened: Opened) -> Opened:
        """``opened`` with all that can be chosen: the series of its source, and the results."""
        source = self._source if opened.text in self.results else opened
        own = source.series if source is not None else ()
        now = opened is source
        series = [replace(item, chosen=item.chosen and now) for item in own]
        results = self.results.values()
        series += [replace(item, chosen=item.key == opened.text) for item in results]
        return replace(opened, series=tuple(series), found=source.found if source else None)

    def _open(self, text: str, options: dict[str, Any], found: Any) -> None:
        self._replace_opening(f"Opening {opening.screen_name(text)} …")
        # the words of a task may reach a log: they do not name the file
        self._opening = self.tasks.start(
            "Opening data",
            partial(opening.try_open, text, options, found),
            self._on_answer,
            self._on_failed,
        )

    def _replace_opening(self, words: str) -> None:
        if self._opening is not None:
            self._opening.cancel()
        self._say("open", words)

    def _on_answer(self, answer: Opened | Question) -> None:
        self._opening = None
        self._say("open", "")
        if isinstance(answer, Question):
            self.geometry_needed.emit(answer)
            return
        before, self.current = self.current, answer
        if answer.text not in self.results:
            self._source = answer
        self._cache.clear()
        self._previews.drop()
        self._sinograms.drop()
        self._say("slice", "")
        self._warnings, self._checks = answer.warnings, answer.checks
        if not answer.text.startswith(opening.DEMO) and answer.text not in self.results:
            self.recent.add(answer.text, answer.options)
        self.opened.emit(answer)
        self._draw_series(before)

    def _on_failed(self, sentence: str, details: str) -> None:
        self._opening = None
        self._say("open", "")
        self.failed.emit(sentence, details)

    # -- slices -------------------------------------------------------------------------------

    @Slot(int)
    def show_slice(self, number: int) -> None:
        """`preview` follows: at once when the slice is known, else when it has been read."""
        now = self.current
        if now is None:
            return
        number = min(max(number, 0), now.count - 1)
        known = self._cache.get(number)
        if known is not None:
            self._previews.drop()
            self._say("slice", "")
            self.preview.emit(number, known)
            return
        self._say("slice", f"Reading slice {number + 1} …")
        self._previews.ask(
            "Reading a slice",
            partial(_read, now, number),
            partial(self._on_preview, number),
            self._on_preview_failed,
        )

    def _on_preview(self, number: int, answer: _Read) -> None:
        image, warnings, checks = answer
        self._cache.put(number, image)
        if not self._previews.waiting:
            self._say("slice", "")
        self.preview.emit(number, image)
        if checks != self._checks:
            self._checks = checks
            self.checks_changed.emit(checks)
        new = [words for words in warnings if words not in self._warnings]
        if new:
            self._warnings = (*self._warnings, *new)
            self.warnings_changed.emit(self._warnings)

    def _on_preview_failed(self, sentence: str, details: str) -> None:
        if not self._previews.waiting:
            self._say("slice", "")
        self.failed.emit(sentence, details)

    def simulate(self, number: int, acquisition: dict[str, Any], seed: int = 0) -> None:
        """`sinogram` follows with what would be measured of a CT image; only for the newest."""
        if self.current is not None:
            work = partial(opening.simulated_sinogram, self.current, number, acquisition, seed)
            # a scan that cannot be is the form's to explain, in the field that is wrong
            self._sinograms.ask(
                "Drawing the sinogram",
                work,
                self.sinogram.emit,
                lambda sentence, details: self.sinogram.emit(None),
            )

    # -- thumbnails ---------------------------------------------------------------------------

    def _draw_series(self, before: Opened | None) -> None:
        """One after the other, so that a slice asked for meanwhile waits for one at most."""
        now = self.current
        assert now is not None
        known = before is not None and now.found is not None and before.found is now.found
        if known or now.text in self.results:
            self.thumbnails.emit(self._pictures | self._result_pictures)
            return
        if self._drawing is not None:
            self._drawing.cancel()
        self._pictures, self._drawing = {}, None
        self._undrawn = [item for item in now.series if item.refusal is None]
        self.thumbnails.emit(self._result_pictures)
        self._undrawn.sort(key=lambda item: not item.chosen)
        self._draw_next()

    def _draw_next(self) -> None:
        self._drawing = None
        if self._undrawn and self.current is not None:
            item = self._undrawn.pop(0)
            self._drawing = self.tasks.start(
                "Drawing thumbnails",
                partial(thumbnail_of_series, self.current, item),
                partial(self._on_drawn, item.number),
                lambda sentence, details: self._draw_next(),  # opening it will say why
            )

    def _on_drawn(self, number: int, picture: np.ndarray | None) -> None:
        if picture is not None:
            self._pictures[number] = picture
            self.thumbnails.emit({number: picture})
        self._draw_next()

    # -- busy ---------------------------------------------------------------------------------

    def _say(self, what: str, words: str) -> None:
        before = self._words["open"] or self._words["slice"]
        self._words[what] = words
        now = self._words["open"] or self._words["slice"]
        if now != before:
            self.busy.emit(now)


def _read(opened: Opened, number: int) -> _Read:
    image = opening.preview_of(opened, number)
    return image, tuple(opened.dataset.warnings), tuple(opened.dataset.checks)
