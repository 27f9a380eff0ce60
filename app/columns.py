"""The columns left and right of the images: what is asked for, and what came of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QUndoStack
from PySide6.QtWidgets import QSplitter, QWidget

from app.forms.ct_panel import CTPanel
from app.forms.history import UndoValues
from app.forms.mri_panel import MRIPanel
from app.forms.plain import ModeSwitch
from app.forms.slices import SliceChoice
from app.forms.solver_panel import SolverPanel
from app.images.inspector import Inspector
from app.images.measurement_list import MeasurementList
from app.images.profile import ProfilePlot
from app.plots.drawing import Legend
from app.runs.store import RunStore
from app.runs.table import RunsTable
from app.theme import run_style
from app.widgets import Section, in_column, scrolled

LEFT_PX, RIGHT_PX = 320, 464  # the right one shows all columns of the runs


class LeftColumn(QWidget):
    """Data, acquisition, solver; the buttons to run stay in sight below them."""

    acquisition_edited = Signal()

    def __init__(
        self, browser: QWidget, history: UndoValues, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName("Data and settings")
        self.ct, self.mri = CTPanel(history), MRIPanel(history)
        self.slices = SliceChoice()
        self.solver = SolverPanel(history, acquisition=lambda: self.acquisition().value())
        acquisition = QWidget()
        in_column(self.slices, self.ct, self.mri, spacing=8, margins=0, parent=acquisition)
        self.set_modality("CT")
        self.mode = ModeSwitch()
        self.mode.expert_changed.connect(self.set_expert)
        self.sections = {
            "data": Section("Data", browser),
            "acquisition": Section("Acquisition", acquisition),
            "solver": Section("Solver", self.solver),
        }
        body = QWidget()
        in_column(self.mode, *self.sections.values(), None, spacing=8, margins=8, parent=body)
        outer = in_column(spacing=0, margins=0, parent=self)
        self.area = scrolled(body, "Data, acquisition and solver")
        outer.addWidget(self.area, 1)
        self.solver.footer.setContentsMargins(8, 8, 8, 8)
        outer.addWidget(self.solver.footer)
        bar = self.area.verticalScrollBar().sizeHint().width()
        self.setMinimumWidth(max(LEFT_PX, body.minimumSizeHint().width() + bar))
        for panel in (self.ct, self.mri):
            panel.edited.connect(self.acquisition_edited)

    def acquisition(self) -> CTPanel | MRIPanel:
        return self.mri if self.modality == "MR" else self.ct

    @Slot(bool)
    def set_expert(self, on: bool) -> None:
        """All settings, or the few that a clinician decides on; their values stay as they are."""
        self.mode.set_expert(on)
        for panel in (self.ct, self.mri, self.solver):
            panel.set_expert(on)
        self.slices.set_offered(on)
        self.sections["acquisition"].set_title("Acquisition" if on else "How much is measured")
        self.sections["solver"].set_title("Solver" if on else "How the image is made")

    def set_modality(self, modality: str) -> None:
        self.modality = modality
        self.ct.setVisible(modality == "CT")
        self.mri.setVisible(modality == "MR")


class RightColumn(QSplitter):
    """The runs above; region statistics and line profile below."""

    def __init__(
        self,
        store: RunStore,
        undo: QUndoStack,
        inspector: Inspector,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.setAccessibleName("Runs and measurements")
        self.setChildrenCollapsible(False)
        self.table = RunsTable(store, undo)
        self.measured = MeasurementList(inspector)
        self.statistics = self.measured.statistics
        inspect = QWidget()
        column = in_column((self.measured, 2), spacing=8, margins=0, parent=inspect)
        self.legend = Legend(per_row=2)
        column.addWidget(self.legend)
        self._inspect = column
        self.sections = {
            "runs": Section("Runs", self.table),
            "inspect": Section("Inspect", inspect),
        }
        for section in self.sections.values():
            section.setContentsMargins(8, 8, 8, 8)
            self.addWidget(section)
        inspector.profiles_changed.connect(self._show_profiles)
        self.setMinimumWidth(288)
        self.setStretchFactor(0, 1)
        self.setStretchFactor(1, 1)

    @cached_property
    def profile(self) -> ProfilePlot:
        """Made with the first line that is drawn; hidden while there is none."""
        made = ProfilePlot()
        made.hide()
        self._inspect.addWidget(made, 1)
        return made

    @Slot(list)
    def _show_profiles(self, profiles: list[Any]) -> None:
        styles = [(one.name, one.style or run_style(one.name)) for one in profiles]
        self.legend.show_lines([(name, style.colour, style.dash) for name, style in styles])
        if profiles or "profile" in vars(self):
            self.profile.setVisible(bool(profiles))
            self.profile.set_profiles(profiles)
