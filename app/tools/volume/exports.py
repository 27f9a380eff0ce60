"""The dialog that writes a volume to files; cuts can be looked at meanwhile."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QStandardPaths, Qt, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
)

from app.background import STEP, Ended, Step
from app.export.exporting import Cancelled, write_staged
from app.export.formats import BY_KEY, LONGEST_NAME, name_fault, output_of
from app.export.staging import staging
from app.forms.fields import CalmCombo
from app.forms.rows import SentenceLabel
from app.runs.mailbox import Mailbox
from app.tools.volume.model import ExportAsk
from app.tools.volume.presenter import ExportPresenter
from app.tools.volume.source import figures_of, own_job
from engine.export.dicom_deidentify import UidMap
from engine.spec.control import RunControl
from engine.spec.errors import RequestError
from engine.workflows.volume.assemble import Volume, mapped_result, run_record
from engine.workflows.volume.batches import Workbench
from engine.workflows.volume.folder import VolumeFolder

if TYPE_CHECKING:
    from app.tools.volume.viewer import VolumeViewer
    from app.window import MainWindow

OFFERED: Final = ("dicom", "nifti", "numpy")
EXPORT_TIP: Final = "Write the volume."
NAME_TIP: Final = "What the file or the folder is called; keep patients' names out of it."
HIDE_TIP: Final = "Leave names, numbers and dates of the patient out."
REPLACE_TIP: Final = "Replace what has this name already."


class VolumeExport(QDialog):
    """Asks for the format and the place, shows progress, and can be cancelled."""

    def __init__(
        self, presenter: ExportPresenter, window: MainWindow, viewer: VolumeViewer
    ) -> None:
        super().__init__(viewer)
        self.presenter, self.main, self.viewer = presenter, window, viewer
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

    def value(self) -> ExportAsk:
        facts, data = self.viewer.shown, self.main.setup.data
        level = self.viewer.panes.window_model.window
        folder, base = self.folder.text().strip(), self.name.text().strip()
        fault = "" if folder else "Choose a folder."
        output = output_of(BY_KEY[self.format.currentData()], Path(folder), base, 2)
        return ExportAsk(
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
        self.folder.setText(self.main.settings.get("folders").get("volume export", usual))
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
        place = QHBoxLayout()
        place.setSpacing(4)
        place.addWidget(self.folder, 1)
        place.addWidget(self.browse)
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
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addLayout(form)
        column.addWidget(self.status)
        column.addLayout(foot)
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
        self.main.settings.put("folders", "volume export", asked.folder)
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
        chooser = QFileDialog(self, "Folder for the export", self.folder.text())
        chooser.setFileMode(QFileDialog.FileMode.Directory)
        chooser.setOption(QFileDialog.Option.ShowDirsOnly)
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chooser.fileSelected.connect(self.folder.setText)
        chooser.open()


# A complete volume written to files by the engine's own writers.
#
# Import it in the worker's thread only: the engine, and torch with it, comes along.

SHARE = 0.1  # of the bar, for reading


def export_volume(asked: ExportAsk, control: RunControl, mailbox: Mailbox) -> Ended:
    """All or nothing: the file, or the series, appears when it is complete."""
    final = Path(asked.folder).absolute() / asked.name

    def pause(share: float, words: str) -> None:
        if control.cancelled:
            raise Cancelled
        mailbox.put_frame(STEP, Step(words, share))

    try:
        with staging(asked.overwrite) as stage:
            staged = stage.place(final)
            pause(0.0, "Reading the volume …")
            volume = Volume(VolumeFolder.open(asked.volume))
            bench = _bench(volume, asked)
            pause(SHARE, f"Writing {final.name} …")
            record = run_record(volume, bench, _facts(volume))
            record.outputs = [str(final)]
            result = mapped_result(volume, bench, record, asked.window)
            hidden = asked.deidentify or result.deidentify
            result = dataclasses.replace(result, deidentify=hidden)
            notes = write_staged(staged, final, result, UidMap(), pause, SHARE, 1 - SHARE)
            pause(1.0, "Putting the files in place")
            stage.commit()
    except Cancelled:
        return Ended("cancelled", final.parent, sentence="Cancelled: nothing was written.")
    return Ended("done", final, sentence=" ".join([f"{final.name} was written.", *notes]))


def _bench(volume: Volume, asked: ExportAsk) -> Workbench:
    """The data of the volume: those that are open, or where the plan says that they are."""
    plan, opened = volume.plan, asked.dataset
    if opened is not None and opened.sha256() == plan.input_sha256:
        return Workbench(plan.job, opened)
    bench = Workbench(own_job(plan))
    if bench.dataset.sha256() != plan.input_sha256:
        raise RequestError("The data have changed since this volume was made.")
    return bench


def _facts(volume: Volume) -> dict[str, Any]:
    """As much of the volume's facts as a record takes; nothing is measured again."""
    axes: dict[str, Any] = {}
    figures = figures_of(volume.folder.path)
    if figures is not None and (axial := figures.axes[0]) is not None:
        axes = {"profile": figures.profile, "axial": {"psnr": axial[0], "ssim": axial[1]}}
    return {"seconds": sum(one.seconds for one in volume.slices), "axes": axes}
