"""The dialog that writes a volume to files; cuts can be looked at meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QStandardPaths, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QProgressBar,
    QPushButton,
)

from app.background import Ended, JobPresenter, Step
from app.context import AppContext
from app.export.formats import BY_KEY, LONGEST_NAME, name_fault, output_of
from app.forms.fields import CalmCombo
from app.forms.rows import SentenceLabel
from app.tools.volume.model import ExportRequest
from app.tools.volume.viewer import VolumeViewer
from app.widgets import ask_path, in_column, in_row

OFFERED: Final = ("dicom", "nifti", "numpy")
EXPORT_TIP: Final = "Write the volume."
NAME_TIP: Final = "What the file or the folder is called; keep patients' names out of it."
HIDE_TIP: Final = "Leave names, numbers and dates of the patient out."
REPLACE_TIP: Final = "Replace what has this name already."


class VolumeExport(QDialog):
    """Asks for the format and the place, shows progress, and can be cancelled."""

    def __init__(self, presenter: JobPresenter, context: AppContext, viewer: VolumeViewer) -> None:
        super().__init__(viewer)
        self.presenter, self.context, self.viewer = presenter, context, viewer
        self.setWindowTitle("Export the volume")
        self.format, self.folder, self.name = CalmCombo(), QLineEdit(), QLineEdit()
        self.browse = QPushButton("Browse…")
        self.hide_names, self.replace = QCheckBox("De-identify"), QCheckBox("Replace")
        self.words, self.status = SentenceLabel(), SentenceLabel()
        self.bar = QProgressBar()
        self.export, self.stop = QPushButton("Export"), QPushButton("Cancel")
        self._describe()
        self._build()
        self._connect()
        self._refresh()

    def value(self) -> ExportRequest:
        facts, data = self.viewer.shown, self.context.setup.data
        level = self.viewer.panes.window_model.window
        folder, base = self.folder.text().strip(), self.name.text().strip()
        fault = "" if folder else "Choose a folder."
        output = output_of(BY_KEY[self.format.currentData()], Path(folder), base, 2)
        return ExportRequest(
            facts.folder if facts is not None else Path(),
            folder,
            output.name,
            (level.centre, level.width),
            self.hide_names.isChecked(),
            self.replace.isChecked(),
            data.dataset if data is not None else None,
            fault or name_fault(base),
        )

    def _describe(self) -> None:
        for key in OFFERED:
            title = "DICOM series" if key == "dicom" else BY_KEY[key].title
            self.format.addItem(title, key)
        documents = QStandardPaths.StandardLocation.DocumentsLocation
        usual = QStandardPaths.writableLocation(documents)
        self.folder.setText(self.context.folder_for("volume export", Path(usual)))
        self.name.setText("volume")
        self.name.setMaxLength(LONGEST_NAME)
        self.hide_names.setChecked(True)
        self.bar.setRange(0, 1000)
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(8)
        for widget, name, tip in (
            (self.format, "Format", "What kind of file is written."),
            (self.folder, "Folder for the export", "Where the file or the series folder goes."),
            (self.browse, "Browse for the folder", "Choose the folder in a dialog."),
            (self.name, "Name", NAME_TIP),
            (self.hide_names, "De-identify", HIDE_TIP),
            (self.replace, "Replace", REPLACE_TIP),
            (self.bar, "Progress of the export", "How much is written."),
            (self.export, "Export", EXPORT_TIP),
            (self.stop, "Cancel", "Stop writing; nothing is left behind."),
        ):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)

    def _build(self) -> None:
        place = in_row((self.folder, 1), self.browse, spacing=4)
        form = QFormLayout()
        form.setHorizontalSpacing(8)
        form.setVerticalSpacing(8)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.addRow("Forma&t", self.format)
        form.addRow("", self.words)
        form.addRow("Folder", place)
        form.addRow("&Name", self.name)
        form.addRow("", self.hide_names)
        form.addRow("", self.replace)
        foot = QHBoxLayout()
        foot.addWidget(self.bar, 1)
        foot.addStretch(0)
        foot.addWidget(self.stop)
        foot.addWidget(self.export)
        in_column(form, self.status, foot, spacing=8, margins=16, parent=self)
        self.export.setDefault(True)
        self.resize(460, self.sizeHint().height())

    def _connect(self) -> None:
        self.format.currentIndexChanged.connect(lambda: self._refresh())
        self.folder.textChanged.connect(lambda: self._refresh())
        self.name.textChanged.connect(lambda: self._refresh())
        self.browse.clicked.connect(lambda: self._browse())
        self.export.clicked.connect(lambda: self._on_export())
        self.stop.clicked.connect(lambda: self._on_stop())
        self.presenter.state_changed.connect(lambda state: self._refresh())
        self.presenter.stepped.connect(self._on_step)
        self.presenter.ended.connect(self._on_ended)

    def _refresh(self) -> None:
        reason = self.presenter.reason(self.value())
        self.words.say(BY_KEY[self.format.currentData()].words)
        self.export.setEnabled(not reason)
        self.export.setToolTip(reason or EXPORT_TIP)
        self.bar.setVisible(self.presenter.busy)
        self.stop.setText("Cancel" if self.presenter.busy else "Close")

    def _on_export(self) -> None:
        asked = self.value()
        self.context.keep_folder("volume export", asked.folder)
        self.bar.setValue(0)
        self.status.say("")
        self.presenter.start(asked)

    def _on_stop(self) -> None:
        if self.presenter.busy:
            self.presenter.cancel()
        else:
            self.close()

    @Slot(object)
    def _on_step(self, step: Step) -> None:
        self.bar.setValue(round(1000 * step.fraction))
        self.status.say(step.words)

    @Slot(object)
    def _on_ended(self, ended: Ended) -> None:
        failed = ended.status == "failed"
        self.status.say(f"⚠ {ended.sentence}" if failed else ended.sentence)

    def _browse(self) -> None:
        ask_path(self, "Folder for the export", self.folder.text(), self.folder.setText)
