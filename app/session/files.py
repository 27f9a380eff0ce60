"""What leaves the window and comes back: exports, pictures, workspaces, autosaved runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from app.export.clipboard import copy_pane, copy_table, copy_widget, save_pane
from app.export.plan import Shown
from app.images.pane import ImagePane

if TYPE_CHECKING:
    from app.export.dialog import ExportDialog
    from app.window import MainWindow

KINDS = "Dualscope workspaces (*.dualscope)"
NO_IMAGE = "There is no image yet: open data first."


class Files(QObject):
    """The File and Edit menus' work; it reads the window and changes nothing of it but runs."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.window = window
        self.dialog: ExportDialog | None = None

    # -- exporting --------------------------------------------------------------------------

    def shown(self) -> Shown:
        """What an export would be of."""
        window = self.window
        level = window.grid.link.window
        data = window.setup.data
        current = window.store.get(window.panes.current) if window.panes.current else None
        return Shown(
            current=current,
            visible=tuple(window.panes.shown()),
            slice=window.panes.slice,
            window=(level.centre, level.width),
            patient=data is None or bool(data.patient),
        )

    def export(self) -> None:
        if self.dialog is None:
            from app.export.dialog import ExportDialog

            self.dialog = ExportDialog(self.window.tasks, self.window)
            self.dialog.restore(self.window.settings.get("export") or {})
            self.dialog.finished.connect(self._remember)
            self.dialog.finished_export.connect(self._on_exported)
        self.dialog.show_for(self.shown())

    def refresh(self) -> None:
        """Runs, slice or window have changed."""
        if self.dialog is not None and self.dialog.isVisible():
            self.dialog.update_shown(self.shown())

    def _remember(self) -> None:
        if self.dialog is not None:
            self.window.settings.set("export", self.dialog.state())

    def _on_exported(self, outcome: Any) -> None:
        if outcome.failed:
            self.window.messages.error(outcome.words, outcome.details)
        else:
            self.window.messages.notice(outcome.words)

    # -- pictures ---------------------------------------------------------------------------

    def pane(self) -> ImagePane | None:
        """The image with the focus, else the current run's, else the first."""
        grid, panes = self.window.grid, self.window.panes
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
        pane = self.pane()
        if pane is None:
            self.window.messages.notice(NO_IMAGE)
        else:
            copy_pane(pane)
            self.window.messages.notice(f"{pane.name} is on the clipboard.")

    def copy_curves(self) -> None:
        copy_widget(self.window.center.plots.body)
        self.window.messages.notice("The curves are on the clipboard.")

    def copy_table(self) -> None:
        copy_table(self.window.right.table.model)
        self.window.messages.notice("The table of runs is on the clipboard.")

    def save_picture(self) -> None:
        pane = self.pane()
        if pane is None:
            self.window.messages.notice(NO_IMAGE)
            return
        dialog = self._chooser(
            "Save the picture", "picture", "PNG pictures (*.png);;DICOM captures (*.dcm)", "png"
        )
        dialog.selectFile("dualscope.png")
        dialog.fileSelected.connect(
            lambda path: save_pane(pane, Path(path), self.window.tasks, self._on_saved)
        )
        dialog.open()

    def _on_saved(self, path: Path) -> None:
        self.window.messages.notice(f"{path.name} was written.")

    def _chooser(self, title: str, purpose: str, kinds: str, suffix: str) -> QFileDialog:
        folder = self.window.settings.get("folders").get(purpose, str(Path.home()))
        dialog = QFileDialog(self.window, title, folder, kinds)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(suffix)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(
            lambda path: self.window.settings.put("folders", purpose, str(Path(path).parent))
        )
        return dialog

    # -- workspaces -------------------------------------------------------------------------

    def ask_save(self) -> None:
        dialog = self._chooser("Save the workspace", "workspace", KINDS, "dualscope")
        known = self.window.workspaces.path
        dialog.selectFile(str(known) if known is not None else "study.dualscope")
        dialog.fileSelected.connect(lambda path: self.window.workspaces.save(Path(path)))
        dialog.open()

    def ask_open(self) -> None:
        dialog = self._chooser("Open a workspace", "workspace", KINDS, "dualscope")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptOpen)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda path: self.window.workspaces.open(Path(path)))
        dialog.open()

    def close(self) -> None:
        if self.dialog is not None:
            self.dialog.cancel()
            self.dialog.close()


SHOWN = 5
QUESTION = "This workspace names data on another computer."
ADVICE = (
    "Opening them connects to that computer and may log in with your name and password. "
    "Go on only if you know it:"
)


def ask_addresses(named: Sequence[str], go_on: Callable[[], None], parent: QWidget) -> QMessageBox:
    """``go_on`` is called when the person agrees; No, the default, opens nothing."""
    more = [f"and {len(named) - SHOWN} more"] if len(named) > SHOWN else []
    lines = [text[:200] for text in named[:SHOWN]]
    advice = "\n".join([ADVICE, "", *lines, *more])
    return ask_first("Open the workspace", QUESTION, advice, go_on, parent)


def ask_first(
    title: str, question: str, advice: str, go_on: Callable[[], None], parent: QWidget
) -> QMessageBox:
    """A warning whose default answer is No."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setWindowTitle(title)
    box.setTextFormat(Qt.TextFormat.PlainText)  # addresses are a stranger's words
    box.setText(question)
    box.setInformativeText(advice)
    box.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.No)
    box.setDefaultButton(QMessageBox.StandardButton.No)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    yes = QMessageBox.StandardButton.Yes.value
    box.finished.connect(lambda answer: go_on() if answer == yes else None)
    box.open()
    return box
