"""The experiments as a window of its own: ask, watch the table fill, see the figure."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QSplitter, QWidget

from app.batch.figure import Figures
from app.batch.model import Ended
from app.batch.panel import RequestPanel
from app.batch.table_window import TableWindow
from app.section import scrolled


class ExperimentsWindow(TableWindow):
    """The table with the figures under it."""

    TITLE = "Experiments"
    THING = "experiment"
    EMPTY = "The table fills while the experiment runs, with the paper's figures beside ours."
    START_TIP = "Compute what this experiment still lacks."
    CANCEL_TIP = "Stop after this iteration; Start goes on from the cases that are done."
    TABLE_TIP = "Means over the slices, beside the figures of the paper."
    FIRST = "Preparing the first scan …"

    panel: RequestPanel

    def make_panel(self) -> RequestPanel:
        return RequestPanel()

    def beside_table(self) -> QWidget:
        self.figures = Figures()
        area = scrolled(self.figures, "Figures")
        area.setFrameShape(QFrame.Shape.StyledPanel)
        self.split = QSplitter(Qt.Orientation.Vertical)
        self.split.setChildrenCollapsible(False)
        self.split.addWidget(self.pages)
        self.split.addWidget(area)
        self.split.setSizes([260, 340])
        return self.split

    def clear(self) -> None:
        self.figures.clear()

    def conclude(self, ended: Ended) -> None:
        self.figures.show_files(ended.figures)
