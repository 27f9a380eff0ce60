"""What is asked for: the experiment, its slices, its prior, and where the results go."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QFormLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSpinBox,
    QWidget,
)

from app.background import JobRequest
from app.forms.fields import CalmCombo
from app.forms.prior_picker import PriorPicker
from app.widgets import ask_path, in_column, in_row
from engine.workflows.experiments.definition import Experiment
from engine.workflows.experiments.request import Request

WIDTH_PX: Final = 340
MOST_SLICES: Final = 10_000
TIPS: Final = {
    "slices": "How many slices, spread evenly over the inputs; 0 as the experiment needs.",
    "quick": "A tenth of the budgets on one slice: a trial, not a result.",
    "folder": "Table, figure and pictures are written into this folder.",
    "again": "Forget what the folder holds of this experiment, instead of going on from it.",
}


@dataclass(frozen=True)
class Offers:
    experiments: tuple[Experiment, ...] = ()
    priors: tuple[str, ...] = ()


def load_offers() -> Offers:
    """All experiments, and the priors of both modalities; the engine is loaded for it."""
    from engine.priors.catalogue import list_priors
    from engine.workflows.experiments.catalogue import EXPERIMENTS

    priors = dict.fromkeys([*list_priors("CT"), *list_priors("MR")])
    return Offers(tuple(EXPERIMENTS.values()), tuple(priors))


@dataclass(frozen=True)
class Inputs:
    """What the slices are taken from: paths or demo:..., none for phantoms.

    ``options`` tell what the files do not say themselves.
    """

    texts: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


class RequestPanel(QWidget):
    """Holds a request; starts nothing."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.offers = Offers()
        self.experiments = QListWidget()
        self.inputs = InputPicker()
        self.slices = QSpinBox()
        self.prior = PriorPicker()
        self.quick = QCheckBox("Quick trial")
        self.folder = QLineEdit()
        self.browse = QPushButton("Browse…")
        self.again = QCheckBox("Begin again")
        self._describe()
        self._build()
        self._connect()
        self._show_prior("auto")

    def value(self) -> JobRequest:
        row, folder = self.experiments.currentRow(), self.folder.text().strip()
        if not 0 <= row < len(self.offers.experiments):
            return JobRequest(folder, fault="The experiments are still loading.")
        inputs = self.inputs.value()
        request = Request(
            self.offers.experiments[row],
            inputs.texts,
            dict(inputs.options),
            count=self.slices.value() or None,
            prior=self.prior.current,
            quick=self.quick.isChecked(),
        )
        fault = "" if folder else "Choose a folder for the results."
        return JobRequest(folder, request, self.again.isChecked(), fault)

    def set_offers(self, offers: Offers) -> None:
        """The engine has loaded: offer what it has."""
        self.offers = offers
        self.experiments.clear()
        for offer in offers.experiments:
            item = QListWidgetItem(f"{offer.name}\n{offer.question}")
            item.setToolTip(offer.question)
            self.experiments.addItem(item)
        self.prior.set_names(offers.priors, "CT")
        self._show_prior(self.prior.current)
        self.experiments.setCurrentRow(0)

    def choose(self, name: str) -> None:
        names = [offer.name for offer in self.offers.experiments]
        self.experiments.setCurrentRow(names.index(name))

    def _describe(self) -> None:
        self.experiments.setAccessibleName("Experiments")
        self.experiments.setToolTip("The experiments of the paper, and what each of them asks.")
        self.experiments.setWordWrap(True)
        self.experiments.setAlternatingRowColors(True)
        self.experiments.setSpacing(2)
        self.experiments.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.slices.setRange(0, MOST_SLICES)
        self.slices.setSpecialValueText("automatic")
        self.slices.setMinimumHeight(self.inputs.sizeHint().height())
        for widget, name, tip in (
            (self.slices, "Slices", TIPS["slices"]),
            (self.quick, "Quick trial", TIPS["quick"]),
            (self.folder, "Folder", TIPS["folder"]),
            (self.browse, "Browse for a folder", "Choose the folder in a dialog."),
            (self.again, "Begin again", TIPS["again"]),
        ):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)

    def _build(self) -> None:
        self.setFixedWidth(WIDTH_PX)
        place = in_row((self.folder, 1), self.browse, spacing=4)
        boxes = in_row(self.quick, self.again, None, spacing=16)
        form = QFormLayout()
        form.setHorizontalSpacing(8)
        form.setVerticalSpacing(8)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.addRow("&Inputs", self.inputs)
        form.addRow("&Slices", self.slices)
        form.addRow("&Prior", self.prior)
        form.addRow("&Folder", place)
        form.addRow("", boxes)
        for row, buddy in ((2, self.prior.combo), (3, self.folder)):
            label = form.itemAt(row, QFormLayout.ItemRole.LabelRole).widget()
            assert isinstance(label, QLabel)
            label.setBuddy(buddy)
        title = QLabel("&Experiment")
        title.setBuddy(self.experiments)
        in_column(title, (self.experiments, 1), form, spacing=8, margins=0, parent=self)

    def _connect(self) -> None:
        self.experiments.currentItemChanged.connect(lambda: self._on_chosen())
        self.inputs.changed.connect(self.changed)
        self.slices.valueChanged.connect(lambda: self.changed.emit())
        self.prior.chosen.connect(self._show_prior)
        self.quick.toggled.connect(lambda: self._on_chosen())
        self.folder.textChanged.connect(lambda: self.changed.emit())
        self.browse.clicked.connect(lambda: self._on_browse())
        self.again.toggled.connect(lambda: self.changed.emit())

    @Slot()
    def _on_chosen(self) -> None:
        """Another experiment takes another number of slices by itself."""
        row = self.experiments.currentRow()
        if 0 <= row < len(self.offers.experiments):
            count = 1 if self.quick.isChecked() else self.offers.experiments[row].count
            self.slices.setSpecialValueText(f"automatic ({count})")
        self.changed.emit()

    @Slot(str)
    def _show_prior(self, name: str) -> None:
        self.prior.show_name(name)
        self.prior.combo.setItemText(0, "auto (the bundled one)")
        self.changed.emit()

    def _on_browse(self) -> None:
        folder = self.folder
        ask_path(self.window(), "Folder for the results", folder.text(), folder.setText)


PHANTOMS, OPEN, CHOSEN, FILES, FOLDER = "phantoms", "open", "chosen", "files", "folder"
TITLES: Final = {FILES: "Files for the experiment", FOLDER: "Folder for the experiment"}
NO_DATA: Final = "Nothing is open in the main window."


class InputPicker(CalmCombo):
    """Phantoms, what the main window shows, or files and folders from a dialog."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.open_data: Inputs | None = None
        self.chosen = Inputs()
        self._last = PHANTOMS
        self.setAccessibleName("Inputs")
        self.setToolTip("What the slices are taken from; the scans are simulated from them.")
        self.addItem("Phantoms, all different", PHANTOMS)
        self.addItem("The open data", OPEN)
        self.addItem("Files…", FILES)
        self.addItem("Folder…", FOLDER)
        self.activated.connect(self._on_activated)
        self.set_open(None)

    def value(self) -> Inputs:
        if self._last == OPEN and self.open_data is not None:
            return self.open_data
        return self.chosen if self._last == CHOSEN else Inputs()

    def set_open(self, data: Inputs | None) -> None:
        """What the main window shows now."""
        self.open_data = data
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        item = model.item(self.findData(OPEN))
        item.setEnabled(data is not None)
        item.setToolTip("" if data is not None else NO_DATA)
        if data is None and self._last == OPEN:
            self._select(PHANTOMS)

    @Slot()
    def _on_activated(self) -> None:
        key = self.currentData()
        if key not in TITLES:
            self._select(key)
            return
        self.setCurrentIndex(self.findData(self._last))  # until the dialog has an answer
        dialog = QFileDialog(self.window(), TITLES[key])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        many, one = QFileDialog.FileMode.ExistingFiles, QFileDialog.FileMode.Directory
        dialog.setFileMode(many if key == FILES else one)
        dialog.filesSelected.connect(self.take_files)
        dialog.open()

    @Slot(list)
    def take_files(self, paths: list[str]) -> None:
        """The answer of the dialog."""
        if not paths:
            return
        self.chosen = Inputs(tuple(str(Path(path).absolute()) for path in paths))
        words = Path(paths[0]).name if len(paths) == 1 else f"{len(paths)} files"
        if (known := self.findData(CHOSEN)) >= 0:
            self.removeItem(known)
        self.insertItem(self.findData(FILES), words, CHOSEN)
        self.setItemData(
            self.findData(CHOSEN), "\n".join(self.chosen.texts), Qt.ItemDataRole.ToolTipRole
        )
        self._select(CHOSEN)

    def _select(self, key: str) -> None:
        self._last = key
        self.setCurrentIndex(self.findData(key))
        self.changed.emit()
