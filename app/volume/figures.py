"""The figures of one or two volumes: PSNR and SSIM across each axis, and the flicker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app.batch.model import Table
from app.batch.table_model import ResultsModel
from app.images.text import unit_of
from app.tables import ROW_PX, plain_look
from app.theme import tabular
from app.volume.source import AXES, Facts

TIP: Final = (
    "Mean PSNR and SSIM over all planes of each direction, in the profile of the modality.\n"
    "Axial figures cannot see slices that disagree; coronal and sagittal ones can.\n"
    "Flicker is the part of the error that changes from slice to slice: 0 when all slices have "
    "the same error. Without a reference anatomy adds to it: compare it between "
    "reconstructions of the same volume only."
)


class FiguresTable(QTableView):
    """One row per volume; hidden while nothing is measured."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.figures = ResultsModel(self)
        self.setModel(self.figures)
        self.setFont(tabular(self.font()))
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setAccessibleName("Figures along the axes")
        self.setToolTip(TIP)
        plain_look(self)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)

    def show_figures(self, volumes: Mapping[str, Facts]) -> None:
        self.figures.show_table(table_of(volumes))
        rows = len(self.figures.table.rows)
        self.setVisible(rows > 0)
        height = self.horizontalHeader().sizeHint().height() + rows * ROW_PX
        self.setFixedHeight(height + 2 * self.frameWidth())
        self.setFixedWidth(self.horizontalHeader().length() + 2 * self.frameWidth())


def table_of(volumes: Mapping[str, Facts]) -> Table:
    first = next(iter(volumes.values()), None)
    if first is None:
        return Table()
    names = [cut.name.lower() for cut in first.cuts] if first.cuts[0].placement else list(AXES)
    rows = []
    for letter, facts in volumes.items():
        if (found := facts.figures) is None:
            continue
        pairs = ("" if pair is None else f"{pair[0]:.2f} dB, {pair[1]:.4f}" for pair in found.axes)
        unit = unit_of(facts.modality)
        flicker = "" if found.flicker is None else f"{found.flicker:.3g} {unit}"
        rows.append((letter, *pairs, flicker))
    headings = ("", *(f"{name} PSNR, SSIM" for name in names), "flicker along z")
    return Table(headings, tuple(rows), frozenset({0}))
