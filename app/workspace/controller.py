"""Saving and reopening everything: data, fields, view and runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import (
    QFileDialog,
    QMessageBox,
    QWidget,
)

from app.context import RUNNING, AppContext
from app.forms.labels import on_screen
from app.images.window_level import WindowLevel
from app.runs.store import RunEntry
from app.runs.table import DeleteRuns
from app.widgets import ask_first, ask_new_file, ask_path
from app.workspace.file import DataReference, Workspace, addresses, write_workspace
from app.workspace.reading import read_workspace
from app.workspace.restore import restore_runs, saved_run
from engine.files.presets import Preset
from engine.spec.errors import DualscopeError
from engine.spec.numbers import as_float

WIDEST = 1e9  # of a grey window that means anything
KINDS = "Dualscope workspaces (*.dualscope)"


class Workspaces(QObject):
    """Reads what the window shows into a workspace, and puts a workspace back into it."""

    def __init__(self, context: AppContext) -> None:
        super().__init__(context.window)
        self.context = context
        self.path: Path | None = None
        self._pending: tuple[Workspace, list[RunEntry]] | None = None
        context.opened.connect(self._on_opened)
        context.data.failed.connect(self._on_data_failed)

    # -- saving -----------------------------------------------------------------------------

    def current(self) -> Workspace:
        context = self.context
        data, level = context.setup.data, context.grid.link.window
        reference = None
        if data is not None:
            reference = DataReference(data.text, data.options, slice=context.panes.slice)
        runs = (saved_run(entry) for entry in context.store)
        return Workspace(
            data=reference,
            acquisition=context.left.acquisition().value(),
            solver=context.left.solver.value(),
            view={"window": [level.centre, level.width, level.invert]},
            runs=tuple(run for run in runs if run is not None),
        )

    def save(self, path: Path) -> None:
        """Every finished run goes along; one that is running is said to be left out."""
        context, workspace = self.context, self.current()
        data, kept = context.setup.data, set(context.store.removed_records)

        def work() -> list[str]:
            found = workspace
            if data is not None and workspace.data is not None:
                with contextlib.suppress(DualscopeError):  # the drive is gone: the runs are not
                    digest = data.dataset.sha256()
                    found = replace(workspace, data=replace(workspace.data, sha256=digest))
            return write_workspace(path, found, keep=kept)

        context.tasks.start("Saving the workspace", work, partial(self._on_saved, path))

    def _on_saved(self, path: Path, notes: list[str]) -> None:
        self.path = path
        left_out = sum(entry.running for entry in self.context.store)
        words = [f"{path.name} was saved."]
        if left_out:
            words.append("The run that is going on is not in it.")
        self.context.messages.notice(" ".join([*words, *notes]))

    def ask_save(self) -> None:
        known = str(self.path) if self.path is not None else "study.dualscope"
        context, chosen = self.context, self._chosen(self.save)
        start = context.folder_for("workspace")
        ask_new_file(context.window, "Save the workspace", start, KINDS, known, chosen)

    def ask_open(self) -> None:
        context, chosen = self.context, self._chosen(self.open)
        start, file = context.folder_for("workspace"), QFileDialog.FileMode.ExistingFile
        ask_path(context.window, "Open a workspace", start, chosen, file, KINDS)

    def _chosen(self, act: Callable[[Path], None]) -> Callable[[str], None]:
        def chosen(path: str) -> None:
            self.context.keep_folder("workspace", str(Path(path).parent))
            act(Path(path))

        return chosen

    # -- opening ----------------------------------------------------------------------------

    def open(self, path: Path) -> None:
        if self.context.runs.busy:
            self.context.messages.notice(RUNNING)
            return

        self.context.tasks.start(
            "Reading the workspace", partial(read_workspace, path), partial(self._on_known, path)
        )

    def _on_known(self, path: Path, workspace: Workspace) -> None:
        """Nothing that the file names has been touched yet."""
        restore = partial(self._restore, path, workspace)
        if named := addresses(workspace):
            ask_addresses(named, restore, self.context.window)
        else:
            restore()

    def _restore(self, path: Path, workspace: Workspace) -> None:
        def work() -> tuple[Workspace, list[RunEntry]]:
            return workspace, restore_runs(path, workspace=workspace)

        self.context.tasks.start("Opening the workspace", work, partial(self._on_read, path))

    def _on_read(self, path: Path, answer: tuple[Workspace, list[RunEntry]]) -> None:
        self.path, self._pending = path, answer
        data = answer[0].data
        if data is None:
            self._put_runs(answer[1])
            self._pending = None
        else:
            self.context.data.open(data.text, data.options)

    @Slot(object)
    def _on_opened(self, data: Any) -> None:
        if self._pending is None:
            return
        (workspace, entries), self._pending = self._pending, None
        assert workspace.data is not None
        self._put_runs(entries)
        context = self.context
        context.grid.link.set_slice(workspace.data.slice)
        self._put_settings(workspace, data.modality)
        self._put_view(workspace.view, data.modality)
        newest = next((entry for entry in reversed(entries) if entry.images is not None), None)
        if newest is not None:
            context.show_run(newest.run_id)

    @Slot(str, str)
    def _on_data_failed(self, sentence: str, details: str) -> None:
        """The data are gone; the runs can still be looked up in the table."""
        if self._pending is not None:
            entries, self._pending = self._pending[1], None
            self._put_runs(entries)

    def _put_runs(self, entries: list[RunEntry]) -> None:
        """In place of the present ones, which Undo brings back."""
        context = self.context
        present = [entry.run_id for entry in context.store if not entry.running]
        if present:
            context.undo.stack.push(DeleteRuns(context.store, present))
        for entry in entries:
            context.store.add(entry)

    def _put_settings(self, workspace: Workspace, modality: str) -> None:
        left = self.context.left
        solver, model = workspace.solver, left.solver.model
        try:
            method = model.method(str(solver.get("solver")))
            if method is not None:
                settings = method.settings_class.from_dict(dict(solver.get("settings") or {}))
                asked = {n: getattr(settings, n) for n in solver.get("settings") or {}}
                model.apply_preset(Preset("", modality, method.name, asked))
            panel = left.acquisition()
            panel.form.cls.from_dict(workspace.acquisition)
            panel.set_values(workspace.acquisition)
        except (DualscopeError, TypeError, ValueError) as error:
            said = f"Some settings of the workspace cannot be used: {on_screen(error)}"
            self.context.messages.error(said)
        for name, kind in (("prior", str), ("seed", int), ("device", str)):
            if isinstance(solver.get(name), kind):
                left.solver.history.set(name, solver[name])

    def _put_view(self, view: dict[str, Any], modality: str) -> None:
        level = view.get("window")
        if isinstance(level, list) and len(level) == 3:
            centre, width = as_float(level[0]), as_float(level[1])
            if abs(centre) < WIDEST and 0 < width < WIDEST:
                window = WindowLevel(centre, width, bool(level[2]))
                self.context.grid.link.window_model.restore(modality, window)


def ask_addresses(named: Sequence[str], go_on: Callable[[], None], parent: QWidget) -> QMessageBox:
    """``go_on`` is called when the person agrees; No, the default, opens nothing."""
    more = [f"and {len(named) - SHOWN} more"] if len(named) > SHOWN else []
    lines = [text[:200] for text in named[:SHOWN]]
    advice = "\n".join([ADVICE, "", *lines, *more])
    return ask_first("Open the workspace", QUESTION, advice, go_on, parent)


SHOWN = 5


QUESTION = "This workspace names data on another computer."


ADVICE = (
    "Opening them connects to that computer and may log in with your name and password. "
    "Go on only if you know it:"
)
