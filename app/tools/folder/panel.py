"""What is asked of a folder: where the inputs are, how to reconstruct them, where results go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QGridLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QWidget,
)

from app.background import JobRequest
from app.forms.fields import CalmCombo
from app.forms.rows import SentenceLabel
from app.widgets import ask_path, in_column, in_row
from engine.files.presets import Preset, PresetStore
from engine.spec.job import Job
from engine.workflows.folder.request import SETTLE_SECONDS, FolderRequest

WIDTH_PX: Final = 340
MODALITIES: Final = {"CT": "CT", "MR": "MRI"}
FORMATS: Final = (  # of the engine's, its name and its suffix; ticked at first
    ("DICOM", "dcm", True),
    ("PNG", "png", True),
    ("NIfTI", "nii.gz", False),
    ("HDF5", "h5", False),
    ("NumPy", "npy", False),
    ("TIFF", "tif", False),
)
UNITS: Final = (
    ("as the files say", ""),
    ("HU", "hu"),
    ("attenuation, 1/mm", "mu"),
    ("attenuation, 1/cm", "mu-cm"),
    ("0 to 1", "normalised"),
)
TIPS: Final = {
    "inputs": "Every file and every DICOM series in this folder, and in its folders, is an input.",
    "folder": "Each input gets a folder in here; one table tells of all of them.",
    "preset": "Method, settings and scan. Prior, seed and device are those of the main window.",
    "unit": "What the numbers of arrays without a unit are (.npy, .mat and the like).",
    "watch": "Go on looking, and take every new file when it has not changed for five seconds.",
    "retry": "Try again what has failed before; otherwise it is left as it is.",
    "deidentify": "Name neither patients nor files in results and table: inputs get numbers.",
}


@dataclass(frozen=True)
class CurrentSettings:
    """What the main window would run with: method, settings and scan, and the rest of a job."""

    preset: Preset
    job: dict[str, Any]


class FolderPanel(QWidget):
    """Holds a request; starts nothing.

    Parameters
    ----------
    now : what the main window would run with, None while it is loading
    """

    changed = Signal()

    def __init__(
        self,
        now: Callable[[], CurrentSettings | None],
        store: PresetStore | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.now, self.store = now, store or PresetStore()
        self.inputs, self.folder = QLineEdit(), QLineEdit()
        self.browse_inputs, self.browse_folder = QPushButton("Browse…"), QPushButton("Browse…")
        self.preset, self.unit = CalmCombo(), CalmCombo()
        self.words, self.problems = SentenceLabel(), SentenceLabel()
        self.formats = {suffix: QCheckBox(name) for name, suffix, _ in FORMATS}
        self.watch = QCheckBox("Watch the folder")
        self.retry = QCheckBox("Try failed ones again")
        self.deidentify = QCheckBox("Leave out all names")
        self._describe()
        self._build()
        self._connect()
        self.refresh()

    def value(self) -> JobRequest:
        now, preset = self.now(), self.preset.currentData()
        job = dict(now.job) if now is not None else {}
        if preset is None or now is None:
            preset = now.preset if now is not None else None
        elif preset.modality != now.preset.modality:
            job["prior"] = "auto"  # the window's is for other data
        if preset is not None and now is not None:
            same = preset.modality == now.preset.modality
            job["solver"] = preset.solver or (now.preset.solver if same else None) or "dc-pnpdp"
        unit = self.unit.currentData()
        job |= {
            "options": {"unit": unit} if unit else {},
            "deidentify": self.deidentify.isChecked(),
        }
        inputs, folder = self.inputs.text().strip(), self.folder.text().strip()
        formats = tuple(suffix for suffix, box in self.formats.items() if box.isChecked())
        if not inputs:
            fault = "Choose a folder of inputs."
        elif not folder:
            fault = "Choose a folder for the results."
        elif not formats:
            fault = "Tick at least one format."
        else:
            fault = "" if preset is not None else "The methods are still loading."
        request = FolderRequest(
            Path(inputs).absolute(),
            Path(folder).absolute(),
            Job(input="", **job),
            (preset,) if preset is not None else (),
            formats,
            watch=self.watch.isChecked(),
            settle_seconds=SETTLE_SECONDS,
            retry_failed=self.retry.isChecked(),
        )
        return JobRequest(folder, request, fault=fault)

    @Slot()
    def refresh(self) -> None:
        """Read the presets again; the chosen one stays chosen."""
        chosen = self.preset.currentText()
        self.preset.blockSignals(True)
        self.preset.clear()
        self.preset.addItem("As set in the window now", None)
        problems: dict[str, None] = {}
        for modality, name in MODALITIES.items():
            for preset in self.store.presets(modality):
                self.preset.addItem(f"{name}: {preset.name}", preset)
            problems |= dict.fromkeys(self.store.problems)
        self.preset.setCurrentIndex(max(0, self.preset.findText(chosen)))
        self.preset.blockSignals(False)
        self.problems.say("\n".join(problems))
        self._on_preset()

    def _describe(self) -> None:
        for words, unit in UNITS:
            self.unit.addItem(words, unit)
        for name, suffix, ticked in FORMATS:
            box = self.formats[suffix]
            box.setChecked(ticked)
            box.setAccessibleName(f"Write {name}")
            box.setToolTip(f"Write every result as {name} (.{suffix}).")
        for widget, name, tip in (
            (self.inputs, "Folder of inputs", TIPS["inputs"]),
            (self.browse_inputs, "Browse for the inputs", "Choose the folder in a dialog."),
            (self.folder, "Folder of results", TIPS["folder"]),
            (self.browse_folder, "Browse for the results", "Choose the folder in a dialog."),
            (self.preset, "Preset", TIPS["preset"]),
            (self.unit, "Unit of arrays", TIPS["unit"]),
            (self.watch, "Watch the folder", TIPS["watch"]),
            (self.retry, "Try failed ones again", TIPS["retry"]),
            (self.deidentify, "Leave out all names", TIPS["deidentify"]),
        ):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)

    def _build(self) -> None:
        self.setFixedWidth(WIDTH_PX)
        boxes = QGridLayout()
        boxes.setHorizontalSpacing(16)
        boxes.setVerticalSpacing(8)
        for number, box in enumerate(self.formats.values()):
            boxes.addWidget(box, number // 3, number % 3)
        form = QFormLayout()
        form.setHorizontalSpacing(8)
        form.setVerticalSpacing(8)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for text, line, button in (
            ("&Inputs", self.inputs, self.browse_inputs),
            ("&Results", self.folder, self.browse_folder),
        ):
            place = in_row((line, 1), button, spacing=4)
            form.addRow(_label(text, line), place)
        form.addRow("&Preset", self.preset)
        form.addRow("", self.words)
        form.addRow("&Arrays in", self.unit)
        form.addRow(_label("Write", self.formats["dcm"]), boxes)
        for box in (self.watch, self.retry, self.deidentify):
            form.addRow("", box)
        in_column(form, self.problems, None, spacing=8, margins=0, parent=self)

    def _connect(self) -> None:
        for line in (self.inputs, self.folder):
            line.textChanged.connect(lambda: self.changed.emit())
        for box in (*self.formats.values(), self.watch, self.retry, self.deidentify):
            box.toggled.connect(lambda: self.changed.emit())
        self.preset.currentIndexChanged.connect(lambda: self._on_preset())
        self.unit.currentIndexChanged.connect(lambda: self.changed.emit())
        for button, line, title in (
            (self.browse_inputs, self.inputs, "Folder of inputs"),
            (self.browse_folder, self.folder, "Folder for the results"),
        ):
            button.clicked.connect(lambda _=False, at=line, words=title: self._browse(at, words))

    def _on_preset(self) -> None:
        preset: Preset | None = self.preset.currentData()
        self.words.say(preset.words if preset is not None else "")
        self.changed.emit()

    def _browse(self, line: QLineEdit, title: str) -> None:
        ask_path(self.window(), title, line.text(), line.setText)


def _label(text: str, buddy: QWidget) -> QLabel:
    label = QLabel(text)
    label.setBuddy(buddy)
    return label
