"""What leaves the window: exports, pictures, what goes to the clipboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot

from app.context import AppContext
from app.export.clipboard import copy_pane, copy_table, copy_widget, save_pane
from app.export.plan import Shown
from app.images.display import LinkedView
from app.images.pane import ImagePane
from app.widgets import ask_new_file

if TYPE_CHECKING:
    from app.export.dialog import ExportDialog

NO_IMAGE = "There is no image yet: open data first."


class ExportController(QObject):
    """Part of the File and Edit menus' work; it reads what is shown and changes nothing of it."""

    def __init__(self, context: AppContext) -> None:
        super().__init__(context.window)
        self.context = context
        self.dialog: ExportDialog | None = None
        context.picture_source.connect(self.serve)
        self.serve(context.grid.link)

    @Slot(object)
    def serve(self, link: LinkedView) -> None:
        """Its panes offer to save and copy their pictures."""
        link.offers_pictures = True
        link.save_wanted.connect(self.save_picture_of)
        link.copy_wanted.connect(self.copy_image_of)

    # -- exporting --------------------------------------------------------------------------

    def shown(self) -> Shown:
        """What an export would be of."""
        context = self.context
        level = context.grid.link.window
        data = context.setup.data
        current = context.store.get(context.panes.current) if context.panes.current else None
        return Shown(
            current=current,
            visible=tuple(context.panes.shown()),
            slice=context.panes.slice,
            window=(level.centre, level.width),
            patient=data is None or bool(data.patient),
        )

    def export(self) -> None:
        if self.dialog is None:
            from app.export.dialog import ExportDialog

            self.dialog = ExportDialog(self.context.tasks, self.context.window)
            self.dialog.restore(self.context.settings.get("export") or {})
            self.dialog.finished.connect(self._remember)
            self.dialog.finished_export.connect(self._on_exported)
        self.dialog.show_for(self.shown())

    def refresh(self) -> None:
        """Runs, slice or window have changed."""
        if self.dialog is not None and self.dialog.isVisible():
            self.dialog.update_shown(self.shown())

    def _remember(self) -> None:
        if self.dialog is not None:
            self.context.settings.set("export", self.dialog.state())

    def _on_exported(self, outcome: Any) -> None:
        if outcome.failed:
            self.context.messages.error(outcome.words, outcome.details)
        else:
            self.context.messages.notice(outcome.words)

    # -- pictures ---------------------------------------------------------------------------

    def pane(self) -> ImagePane | None:
        """The image with the focus, else the current run's, else the first."""
        grid, panes = self.context.grid, self.context.panes
        everyone = [grid.pane(key) for key in grid]
        everyone += [grid.extra(key) for key in grid.extra_keys()]
        if grid.compare_pane is not None:
            everyone.append(grid.compare_pane)
        for pane in everyone:
            if pane.hasFocus():
                return pane
        if panes.current is not None and panes.current in grid:
            return grid.pane(panes.current)
        return everyone[0] if everyone else None

    def copy_image(self) -> None:
        self.copy_image_of(self.pane())

    def copy_image_of(self, pane: ImagePane | None) -> None:
        if pane is None:
            self.context.messages.notice(NO_IMAGE)
        else:
            copy_pane(pane)
            self.context.messages.notice(f"{pane.name} is on the clipboard.")

    def copy_curves(self) -> None:
        copy_widget(self.context.center.plots.body)
        self.context.messages.notice("The curves are on the clipboard.")

    def copy_table(self) -> None:
        copy_table(self.context.right.table.model)
        self.context.messages.notice("The table of runs is on the clipboard.")

    def save_picture(self) -> None:
        self.save_picture_of(self.pane())

    def save_picture_of(self, pane: ImagePane | None) -> None:
        if pane is None:
            self.context.messages.notice(NO_IMAGE)
            return

        def chosen(path: str) -> None:
            self.context.keep_folder("picture", str(Path(path).parent))
            save_pane(pane, Path(path), self.context.tasks, self._on_saved)

        kinds = "PNG pictures (*.png);;DICOM captures (*.dcm)"
        start = self.context.folder_for("picture")
        window = self.context.window
        ask_new_file(window, "Save the picture", start, kinds, "dualscope.png", chosen)

    def _on_saved(self, path: Path) -> None:
        self.context.messages.notice(f"{path.name} was written.")

    def close(self) -> None:
        if self.dialog is not None:
            self.dialog.cancel()
            self.dialog.close()
