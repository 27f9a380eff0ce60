"""What is asked of a volume: which slices, how, where it is computed and kept."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from app.forms.fields import CalmCombo
from app.forms.labels import on_screen
from app.forms.rows import SentenceLabel
from app.forms.run_menu import in_words
from app.forms.slices import ALL, RANGE, SliceChoice
from app.pace_book import UNKNOWN, about
from app.tools.volume.model import CurrentSettings, VolumeRequest, usual_folder
from app.widgets import ask_path, in_column, in_row, plain_tip
from engine.spec.errors import RequestError
from engine.spec.job import Job
from engine.workflows.cluster.compute_targets import (
    MOST_WORKERS,
    ClusterAddress,
    LocalWorkers,
    cores,
)

WIDTH_PX: Final = 340
WEIGHT: Final = 0.3  # what the help page measures as best for slices 3 mm apart
COUPLING: Final = (
    "Slices on their own flicker in coronal and sagittal view: each fills in anew what the scan "
    "leaves open. Coupling pulls neighbours together; too large a weight blurs along z."
)
CANNOT_COUPLE: Final = "This method cannot couple slices: choose DC-PnPDP or DiffPIR."
FOLDER_TIP: Final = (
    "Every finished slice is kept here, and Start goes on where it stopped. Empty: a folder of "
    "the program, named after data and method, never after a patient."
)


class VolumePanel(QWidget):
    """Holds a request; starts nothing.

    Parameters
    ----------
    now : what the main window would run with
    """

    changed = Signal()

    def __init__(self, now: Callable[[], CurrentSettings], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._now_of, self._now = now, CurrentSettings()
        self.slices = SliceChoice((ALL, RANGE))
        self.words, self.time = QLabel(), QLabel()
        self.couple = QCheckBox("Couple neighbouring slices")
        self.weight = QDoubleSpinBox()
        self.coupling = SentenceLabel()
        self.place = PlacePicker()
        self.folder = QLineEdit()
        self.browse = QPushButton("Browse…")
        self._describe()
        self._build()
        self._connect()
        self.refresh()

    def value(self) -> VolumeRequest:
        now = self._now
        if now.fault:
            return VolumeRequest("", fault=now.fault)
        settings = {k: v for k, v in now.job["settings"].items() if k != "couple_z"}
        if self.couple.isChecked() and now.couples:
            settings["couple_z"] = self.weight.value()
        job = {**now.job, "settings": settings, "slices": self.slices.value()}
        folder = self.folder.text().strip() or str(usual_folder(now.name, job))
        where, fault = None, self._slices_fault()
        try:
            where = self.place.value()
        except RequestError as error:
            fault = fault or on_screen(error)
        return VolumeRequest(folder, Job(**job), where, fault)

    def _slices_fault(self) -> str:
        first, last = self.slices.first.value(), self.slices.last.value()
        if self._now.count < 2 or (self.slices.box.currentData() == RANGE and first == last):
            return "A volume has more than one slice: open a series, or choose a wider range."
        return ""

    @Slot()
    def refresh(self) -> None:
        """Look again what the main window would run with."""
        before, self._now = self._now, self._now_of()
        now = self._now
        if (now.name, now.count) != (before.name, before.count):
            self.slices.set_count(max(1, now.count))
        if (asked := _coupling(now)) != _coupling(before):
            self.couple.setChecked(asked > 0)
            self.weight.setValue(asked or WEIGHT)
        self.words.setText(now.words or now.fault)
        self.couple.setEnabled(now.couples)
        self.couple.setToolTip(COUPLING if now.couples or now.fault else CANNOT_COUPLE)
        self._on_changed()

    def _describe(self) -> None:
        self.words.setWordWrap(True)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.time.setWordWrap(True)
        self.weight.setRange(0.01, 1000.0)
        self.weight.setDecimals(2)
        self.weight.setSingleStep(0.1)
        self.weight.setValue(WEIGHT)
        for widget, name, tip in (
            (self.words, "As set in the window now", "Change it in the main window."),
            (self.time, "How long it takes", "At the pace that this machine has shown."),
            (self.couple, "Couple neighbouring slices", COUPLING),
            (self.weight, "Weight of the coupling", "The pull of the neighbours. Default: 0.3."),
            (self.folder, "Folder for the slices", FOLDER_TIP),
            (self.browse, "Browse for the folder", "Choose the folder in a dialog."),
        ):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)

    def _build(self) -> None:
        self.setFixedWidth(WIDTH_PX)
        coupled, kept = QHBoxLayout(), QHBoxLayout()
        coupled.addWidget(self.couple, 1)
        coupled.addWidget(self.weight)
        kept.setSpacing(4)
        kept.addWidget(self.folder, 1)
        kept.addWidget(self.browse)
        column = in_column(self.slices, spacing=4, margins=0, parent=self)
        for title, parts in (
            ("As set in the window now", (self.words, self.time)),
            ("Along z", (coupled, self.coupling)),
            ("Computed by", (self.place,)),
            ("Slices are kept in", (kept,)),
        ):
            heading = QLabel(title)
            font = heading.font()
            font.setBold(True)
            heading.setFont(font)
            column.addSpacing(8)
            column.addWidget(heading)
            for part in parts:
                if isinstance(part, QWidget):
                    column.addWidget(part)
                else:
                    column.addLayout(part)
        column.addStretch(1)

    def _connect(self) -> None:
        self.slices.edited.connect(self._on_changed)
        self.couple.toggled.connect(lambda: self._on_changed())
        self.weight.valueChanged.connect(lambda: self._on_changed())
        self.place.changed.connect(self._on_changed)
        self.folder.textChanged.connect(lambda: self._on_changed())
        self.browse.clicked.connect(lambda: self._browse())

    @Slot()
    def _on_changed(self) -> None:
        coupled = self.couple.isChecked() and self._now.couples
        self.weight.setEnabled(coupled)
        count, seconds = self.slices.amount(), self._now.seconds
        time = UNKNOWN if seconds is None else about(count * seconds)
        self.time.setText(in_words("On this computer", count, time) if self._now.job else "")
        self.coupling.say(COUPLING if self._now.couples or not self._now.job else CANNOT_COUPLE)
        if not self.folder.text().strip():
            folder = self.value().folder
            self.folder.setPlaceholderText(folder.replace("\\", "/").rsplit("/", 1)[-1])
            self.folder.setToolTip(plain_tip(f"{FOLDER_TIP}\n{folder}".strip()))
        self.changed.emit()

    def _browse(self) -> None:
        folder = self.folder
        ask_path(self.window(), "Folder for the slices", folder.text(), folder.setText)


def _coupling(now: CurrentSettings) -> float:
    """The weight that the main window's own field asks for."""
    return float(now.job.get("settings", {}).get("couple_z") or 0.0)


HERE, PROCESSES, CLUSTER = "here", "processes", "cluster"
KINDS: Final = (
    (HERE, "this computer"),
    (PROCESSES, "this computer, several processes"),
    (CLUSTER, "a cluster"),
)
WORDS: Final = {
    HERE: "",
    PROCESSES: "Each process takes memory of its own, and a graphics card where there are any.",
    CLUSTER: "A Dask scheduler. Images and measurement go there; names and files do not.",
}
TLS: Final = ("authority", "certificate", "key")


class PlacePicker(QWidget):
    """Where to compute; connects to nobody."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = CalmCombo()
        self.workers, self.address = QSpinBox(), QLineEdit()
        self.files = {name: QLineEdit() for name in TLS}
        self.browse = {name: QPushButton("…") for name in TLS}
        self.words = SentenceLabel()
        self._describe()
        self._build()
        self.kind.currentIndexChanged.connect(self._on_kind)
        self.workers.valueChanged.connect(lambda: self.changed.emit())
        for line in (self.address, *self.files.values()):
            line.textChanged.connect(lambda: self._on_kind())
        for name, button in self.browse.items():
            button.clicked.connect(lambda _=False, of=name: self._browse(of))
        self._on_kind()

    def value(self) -> LocalWorkers | ClusterAddress | None:
        """As the engine takes it, None for this program; what is wrong is a RequestError."""
        if self.kind.currentData() == PROCESSES:
            return LocalWorkers(self.workers.value(), dashboard=find_spec("bokeh") is not None)
        if self.kind.currentData() == CLUSTER:
            files = (self.files[name].text().strip() for name in TLS)
            return ClusterAddress(
                self.address.text().strip(), *(Path(file) if file else None for file in files)
            )
        return None

    def _describe(self) -> None:
        for key, words in KINDS:
            self.kind.addItem(words, key)
        self.workers.setRange(1, MOST_WORKERS)
        self.workers.setValue(max(2, cores()))
        self.address.setPlaceholderText("tls://gpu-server:8786")
        for widget, name, tip in (
            (self.kind, "Where to compute", "Who computes the slices; the result is the same."),
            (self.workers, "Processes", "How many slices are computed at the same time."),
            (self.address, "Address of the cluster", "Of its Dask scheduler: tls:// or tcp://."),
        ):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)
        for name, line in self.files.items():
            line.setPlaceholderText("as Dask is configured")
            line.setAccessibleName(f"TLS {name}")
            line.setToolTip(f"The {name} for tls:// addresses, a .pem file.")
            self.browse[name].setAccessibleName(f"Browse for the TLS {name}")
            self.browse[name].setToolTip("Choose the file in a dialog.")
            self.browse[name].setFixedWidth(32)

    def _build(self) -> None:
        self.cluster, self.several = QWidget(), QWidget()
        processes, addresses = QFormLayout(self.several), QFormLayout(self.cluster)
        for form in (processes, addresses):
            form.setContentsMargins(0, 0, 0, 0)
            form.setHorizontalSpacing(8)
            form.setVerticalSpacing(4)
            form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        processes.addRow("Processes", self.workers)
        addresses.addRow("Address", self.address)
        self.tls_rows = []
        for name, line in self.files.items():
            row = QWidget()
            in_row((line, 1), self.browse[name], spacing=4, margins=0, parent=row)
            addresses.addRow(f"TLS {name}", row)
            self.tls_rows.append(row)
        self.addresses = addresses
        column = in_column(spacing=4, margins=0, parent=self)
        for widget in (self.kind, self.several, self.cluster, self.words):
            column.addWidget(widget)

    @Slot()
    def _on_kind(self) -> None:
        kind = self.kind.currentData()
        self.several.setVisible(kind == PROCESSES)
        self.cluster.setVisible(kind == CLUSTER)
        for row in self.tls_rows:  # of no use on an unencrypted way
            self.addresses.setRowVisible(row, not self.address.text().startswith("tcp:"))
        self.words.say(WORDS[kind])
        self.changed.emit()

    def _browse(self, name: str) -> None:
        line, file = self.files[name], QFileDialog.FileMode.ExistingFile
        ask_path(self.window(), f"TLS {name}", line.text(), line.setText, file)
