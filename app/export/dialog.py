"""The export dialog: what, as what, and where to; non-modal, so that images stay in reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QStandardPaths, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QWidget,
)

from app.export.formats import BY_KEY
from app.export.parts import ALL, ONE, SLICE_OPTIONS, WHAT_OPTIONS, Choice, FileList, FormatBoxes
from app.export.plan import CURRENT, REPORT_OF_VISIBLE, VISIBLE, WHAT, Choices, Shown, default_base
from app.export.presenter import ExportPresenter, Outcome
from app.forms.rows import SentenceLabel
from app.tasks import Tasks
from app.widgets import in_column, in_row, plain_tip

NAME_TIP = "All files begin with this name; keep patients' names out of it."
HIDE_TIP = "Leave names, numbers and dates of the patient out of every file."
EXPORT_TIP = "Write the files listed above."
SERIES_NOTE = "Names burned into the pixels would stay."


class ExportDialog(QDialog):
    """Shows what an `ExportPresenter` plans; open it with ``show_for``."""

    finished_export = Signal(object)  # Outcome

    def __init__(self, tasks: Tasks, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Export")
        self.setModal(False)
        self.presenter = ExportPresenter(tasks, self)
        self.what = Choice("What to export", WHAT_OPTIONS)
        self.slices = Choice("Slices", SLICE_OPTIONS)
        self.formats = FormatBoxes()
        self.formats.tick(("dicom",))
        self.folder, self.base = QLineEdit(), QLineEdit()
        self.browse = QPushButton("Browse…")
        self.hide_names = QCheckBox("De-identify")
        self.files = FileList()
        self.replace = QCheckBox("Replace")
        self.sentence = SentenceLabel()
        self.bar = QProgressBar()
        self.notes = SentenceLabel()
        self.open_folder = QPushButton("Open folder")
        self.export, self.stop = QPushButton("Export"), QPushButton("Cancel")
        self.close_button = QPushButton("Close")
        self._last: Outcome | None = None
        self._describe()
        self._build()
        self._connect()
        place = QStandardPaths.StandardLocation.DocumentsLocation
        documents = QStandardPaths.writableLocation(place)  # which nobody need have made
        self.folder.setText(documents if Path(documents).is_dir() else str(Path.home()))
        self.base.setText(default_base(""))

    def show_for(self, shown: Shown) -> None:
        """Open for what the window shows; de-identified whenever there is somebody to hide."""
        modality = shown.current.modality if shown.current else ""
        if self.base.text() in {default_base(kind) for kind in ("", "CT", "MR")}:
            self.base.setText(default_base(modality))
        self.hide_names.setChecked(shown.patient)
        self.replace.setChecked(False)
        if not self.presenter.exporting:
            self._show_outcome(None)
        self.update_shown(shown)
        self.show()
        self.raise_()
        self.activateWindow()

    def update_shown(self, shown: Shown) -> None:
        """Runs, slice or window have changed while the dialog is open."""
        runs = [run for run in (shown.current, *shown.visible) if run]
        single = bool(runs) and all(len(run.slices) <= 1 for run in runs)
        named = f" ({shown.current.name})" if shown.current else ""
        self.what.set_label(CURRENT, f"Current run{named}")
        self.slices.set_reason(ONE, "The run has one slice only." if single else "")
        if single:
            self.slices.choose(ALL)
        some = any(run.images is not None for run in shown.visible)
        for key in (VISIBLE, REPORT_OF_VISIBLE):
            self.what.set_reason(key, "" if some else "No finished run is ticked in the table.")
        self.presenter.shown = shown
        self._plan()

    def state(self) -> dict[str, Any]:
        """What the next session begins with."""
        return {
            "folder": self.folder.text(),
            "formats": list(self.formats.keys),
            "what": self.what.key,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take what `state` gave; anything odd in it is left alone."""
        folder, formats, what = (state.get(name) for name in ("folder", "formats", "what"))
        if isinstance(folder, str) and folder:
            self.folder.setText(folder)
        if isinstance(formats, list) and all(isinstance(key, str) for key in formats):
            self.formats.tick([key for key in formats if key in BY_KEY])
        if isinstance(what, str) and what in WHAT:
            self.what.choose(what)

    def cancel(self) -> None:
        """For the window that closes: an export under way leaves nothing."""
        self.presenter.rest()

    # -- building ---------------------------------------------------------------------------

    def _describe(self) -> None:
        named: tuple[tuple[QWidget, str, str], ...] = (
            (self.folder, "Folder", "The files are written into this folder."),
            (self.browse, "Browse for a folder", "Choose the folder in a dialog."),
            (self.base, "Name of the files", NAME_TIP),
            (self.hide_names, "De-identify", f"{HIDE_TIP} {SERIES_NOTE}"),
            (self.replace, "Replace existing files", ""),
            (self.export, "Export", EXPORT_TIP),
            (self.stop, "Cancel the export", "Stop writing; nothing of this export is left."),
            (self.close_button, "Close", "Close this dialog; it remembers folder and formats."),
            (self.open_folder, "Open folder", "Show the written files in the file manager."),
            (self.bar, "Progress of the export", "How much of the export is done."),
        )
        for widget, name, tip in named:
            widget.setAccessibleName(name)
            widget.setToolTip(tip)
        self.notes.setAccessibleName("Notes on the export")
        self.sentence.setAccessibleName("Why nothing can be exported")
        self.bar.setRange(0, 1000)
        self.export.setDefault(True)
        for button in (self.browse, self.open_folder, self.stop, self.close_button):
            button.setAutoDefault(False)

    def _build(self) -> None:
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(8)
        place = in_row((self.folder, 1), self.browse, spacing=8)
        form.addRow("What", self.what)
        form.addRow("Slices", self.slices)
        formats = QLabel("Formats")
        formats.setAlignment(Qt.AlignmentFlag.AlignTop)
        form.addRow(formats, self.formats)
        form.addRow("Folder", place)
        form.addRow("Name", self.base)
        form.addRow("Patient", self.hide_names)
        form.addRow("Files", self.files)
        form.addRow("", self.replace)
        self.files.setMinimumHeight(72)
        ending = in_row(self.open_folder, spacing=8)
        ending.addStretch()
        ending.addWidget(self.stop)
        ending.addWidget(self.close_button)
        ending.addWidget(self.export)
        column = in_column((form, 1), spacing=8, margins=16, parent=self)
        for widget in (self.sentence, self.bar, self.notes):
            column.addWidget(widget)
        column.addLayout(ending)
        self.resize(600, 600)

    def _connect(self) -> None:
        for part in (self.what, self.slices, self.formats):
            part.changed.connect(self._on_edit)
        for line in (self.folder, self.base):
            line.textEdited.connect(self._on_edit)
        for box in (self.hide_names, self.replace):
            box.clicked.connect(self._on_edit)
        self.browse.clicked.connect(self._on_browse)
        self.export.clicked.connect(self._on_export)
        self.stop.clicked.connect(self.presenter.cancel)
        self.close_button.clicked.connect(self.reject)
        self.open_folder.clicked.connect(self._on_open_folder)
        self.presenter.changed.connect(self._refresh)
        self.presenter.progressed.connect(self._on_progress)
        self.presenter.finished.connect(self._on_finished)
        self._show_outcome(None)

    # -- what happens -----------------------------------------------------------------------

    @Slot()
    def _on_edit(self) -> None:
        """What was said of the last export is over with the first change."""
        self._plan()
        if not self.presenter.exporting:
            self._show_outcome(None)

    def _plan(self) -> None:
        self.presenter.set_choices(
            Choices(
                what=self.what.key,
                all_slices=self.slices.key == ALL,
                formats=self.formats.keys,
                folder=self.folder.text().strip(),
                base=self.base.text().strip(),
                deidentify=self.hide_names.isChecked(),
                replace=self.replace.isChecked(),
            )
        )

    @Slot()
    def _on_browse(self) -> None:
        chooser = QFileDialog(self, "Folder for the files", self.folder.text())
        chooser.setFileMode(QFileDialog.FileMode.Directory)
        chooser.setOption(QFileDialog.Option.ShowDirsOnly)
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chooser.fileSelected.connect(self._on_folder)
        chooser.open()

    @Slot(str)
    def _on_folder(self, folder: str) -> None:
        self.folder.setText(folder)
        self._on_edit()

    @Slot()
    def _on_export(self) -> None:
        self._show_outcome(None)
        self.presenter.export()

    @Slot(float, str)
    def _on_progress(self, share: float, words: str) -> None:
        self.bar.setValue(round(1000 * share))
        self.bar.setFormat(words.replace("%", "%%"))

    @Slot(object)
    def _on_finished(self, outcome: Outcome) -> None:
        self._show_outcome(outcome)
        self.finished_export.emit(outcome)

    @Slot()
    def _on_open_folder(self) -> None:
        if self._last is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._last.folder)))

    def _show_outcome(self, outcome: Outcome | None) -> None:
        self._last = outcome
        self.open_folder.setVisible(outcome is not None and bool(outcome.files))
        lines = [outcome.words, *outcome.notes] if outcome else []
        if outcome is not None and outcome.failed:
            lines[0] = f"⚠ {lines[0]}"
        self.notes.say("\n".join(lines))
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        presenter = self.presenter
        report, busy = self.what.key == REPORT_OF_VISIBLE, presenter.exporting
        self.formats.set_reason("A report is always one HTML page." if report else "")
        self.slices.setEnabled(not report)
        self.slices.setToolTip("A report is about all slices of its runs." if report else "")
        written = self._last.files if self._last else ()  # no need to warn of these just yet
        self.files.show_files(presenter.plan.files, presenter.found.existing.difference(written))
        count = len(presenter.found.existing)
        self.replace.setText(
            f"Replace what exists ({count})" if count else "Replace existing files"
        )
        self.replace.setEnabled(bool(count))
        self.replace.setChecked(presenter.choices.replace)
        self.replace.setToolTip(
            "Write over the files in red; the old ones are then gone."
            if count
            else "None of these files exists yet."
        )
        reason = presenter.reason
        self.export.setEnabled(not reason)
        self.export.setToolTip(plain_tip(reason or EXPORT_TIP))
        self.sentence.say("" if busy or self._last else reason)
        for widget in (self.bar, self.stop):
            widget.setVisible(busy)
        if not busy:
            self.bar.reset()

    def reject(self) -> None:
        """Also Escape and the window's cross."""
        self.presenter.rest()
        super().reject()
