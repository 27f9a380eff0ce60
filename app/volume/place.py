"""Who computes a volume: this program, several processes, or a cluster."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.forms.fields import CalmCombo
from app.forms.rows import SentenceLabel
from app.volume.model import CLUSTER, HERE, PROCESSES, Place
from engine.workflows.cluster.places import MOST_WORKERS, cores

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
    """Holds a `Place`; connects to nobody."""

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

    def value(self) -> Place:
        authority, certificate, key = (self.files[name].text().strip() for name in TLS)
        return Place(
            self.kind.currentData(),
            self.workers.value(),
            self.address.text().strip(),
            (authority, certificate, key),
        )

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
            place = QHBoxLayout(row)
            place.setContentsMargins(0, 0, 0, 0)
            place.setSpacing(4)
            place.addWidget(line, 1)
            place.addWidget(self.browse[name])
            addresses.addRow(f"TLS {name}", row)
            self.tls_rows.append(row)
        self.addresses = addresses
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
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
        chooser = QFileDialog(self.window(), f"TLS {name}", self.files[name].text())
        chooser.setFileMode(QFileDialog.FileMode.ExistingFile)
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chooser.fileSelected.connect(self.files[name].setText)
        chooser.open()
