"""The experiments in the main window: what one needs of the other."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QRectF, QSize, QStandardPaths, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QMouseEvent, QPainter, QPaintEvent, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QSplitter, QWidget

from app.background import Ended, JobRequest, Mailbox
from app.context import AppContext
from app.tools.experiments.panel import Inputs, Offers, RequestPanel, load_offers
from app.tools.page import Page
from app.tools.table_window import TableWindow
from app.widgets import in_column, plain_tip, scrolled
from engine.spec.control import RunControl

log = logging.getLogger("app")


def _experiment(asked: JobRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    from app.tools.experiments.job import run_experiment

    return run_experiment(asked, control, mailbox)


class Experiments(Page):
    """The experiments of the paper."""

    COMPUTING = "An experiment is going on: wait for it, or cancel it in Tools > Experiments."
    GOING_ON = "An experiment is going on: wait, or cancel it first."
    THING = "experiment"

    view: ExperimentsWindow | None

    def __init__(self, context: AppContext) -> None:
        super().__init__(context, _experiment)

    def make_view(self) -> ExperimentsWindow:
        context = self.context
        view = ExperimentsWindow(self.presenter, context.window)
        documents = QStandardPaths.StandardLocation.DocumentsLocation
        usual = Path(QStandardPaths.writableLocation(documents)) / "experiments"
        view.panel.folder.setText(context.folder_for("experiments", usual))
        view.started.connect(self.start)
        context.data.opened.connect(self._on_opened)
        self._offer_open(view, context.setup.data)
        context.tasks.start("Loading the experiments …", load_offers, self._on_offers)
        return view

    def _on_offers(self, offers: Offers) -> None:
        if self.view is not None:
            self.view.panel.set_offers(offers)

    @Slot(object)
    def start(self, asked: JobRequest) -> None:
        if self.presenter.reason(asked):
            return
        self.context.keep_folder("experiments", asked.folder)
        self.presenter.start(asked)
        log.info("Experiment %s started.", asked.request.experiment.name)

    @Slot(object)
    def _on_opened(self, data: Any) -> None:
        if self.view is not None:
            self._offer_open(self.view, data)

    @staticmethod
    def _offer_open(view: ExperimentsWindow, data: Any) -> None:
        view.panel.inputs.set_open(Inputs((data.text,), data.options) if data else None)


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


WAITING: Final = "The figure appears here when the experiment ends."
MISSING: Final = "There is nothing to draw yet."


class Picture(QWidget):
    """An SVG or PNG file, as large as it is or as there is room; a double-click opens it."""

    def __init__(self, path: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self.svg = QSvgRenderer(str(path), self) if path.suffix == ".svg" else None
        self.pixmap = QPixmap() if self.svg else QPixmap(str(path))
        self.natural = self.svg.defaultSize() if self.svg else self.pixmap.size()
        self.setAccessibleName(f"Figure {path.stem}")
        self.setToolTip(plain_tip(f"{path}\nDouble-click to see it large in the system's viewer."))
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    @property
    def shown(self) -> bool:
        """Whether the file holds a picture."""
        return not self.natural.isEmpty()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return round(self._size(width).height())

    def sizeHint(self) -> QSize:
        return self.natural

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.heightForWidth(self.width()))

    def paintEvent(self, event: QPaintEvent) -> None:
        area = QRectF(0, 0, 0, 0)
        area.setSize(self._size(self.width()).toSizeF())
        area.moveLeft((self.width() - area.width()) / 2)
        painter = QPainter(self)
        if self.svg is not None:
            self.svg.render(painter, area)
        else:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawPixmap(area, self.pixmap, QRectF(self.pixmap.rect()))
        painter.end()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.path)))

    def _size(self, width: int) -> QSize:
        if not self.shown:
            return QSize(0, 0)
        scale = min(1.0, width / self.natural.width())
        return self.natural * scale


class Figures(QWidget):
    """Words until there are pictures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.pictures: list[Picture] = []
        self.words = QLabel(WAITING)
        self.words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.words.setWordWrap(True)
        self.column = in_column((self.words, 1), spacing=8, margins=0, parent=self)
        self.rest = QWidget()  # takes what the pictures leave free
        self.rest.hide()
        self.column.addWidget(self.rest, 1)

    def clear(self, words: str = WAITING) -> None:
        for picture in self.pictures:
            self.column.removeWidget(picture)
            picture.hide()
            picture.deleteLater()
        self.pictures = []
        self.words.setText(words)
        self.words.show()
        self.rest.hide()

    def show_files(self, paths: Sequence[Path]) -> None:
        self.clear(MISSING)
        self.pictures = [p for p in (Picture(path) for path in paths) if p.shown]
        for number, picture in enumerate(self.pictures):
            self.column.insertWidget(number, picture)
        self.words.setVisible(not self.pictures)
        self.rest.setVisible(bool(self.pictures))
