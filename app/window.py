"""The main window: puts the parts together and lets them talk; it decides nothing itself."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QLabel, QMainWindow, QSplitter

from app.columns import LEFT_PX, RIGHT_PX
from app.context import AppContext
from app.data.drop import DropFilter
from app.data.geometry_controller import GeometryController
from app.export.controller import ExportController
from app.menus import Act, Menus
from app.runs.bar import RunBar
from app.shell.help_window import HelpWindow
from app.shell.icon import app_icon
from app.shell.log import LogBook
from app.shell.log_window import LogWindow
from app.shell.settings import AppSettings
from app.tasks import Tasks
from app.theme import Theme
from app.tools.dose.controller import Doses
from app.tools.experiments.controller import Experiments
from app.tools.folder.controller import Folders
from app.tools.trust.controller import Trust
from app.tools.volume.controller import Volumes
from app.tools.volume.stacks import Stacks
from app.workspace.controller import Workspaces

RESEARCH = "Research use - not for diagnosis"
TOUR = (  # part of the window, title, what to do there
    ("browser", "Data", "Open a DICOM folder, a sinogram or k-space, or drop it here."),
    ("acquisition", "Acquisition", "Say how much is measured: fewer views leave more open."),
    ("run", "Run", "Run one method, or DC-PnPDP and DiffPIR side by side."),
    ("images", "Images", "Left drag: window. Wheel: slices. Double-click: one alone."),
    ("plots", "Curves", "See whether data and prior agree, and whether it is noise."),
)


class MainWindow(QMainWindow):
    """Closing ends a run first, without blocking; ``gone`` says that all has ended."""

    gone = Signal()

    def __init__(
        self,
        tasks: Tasks,
        settings: AppSettings,
        theme: Theme | None = None,
        autosave: Path | None = None,
        book: LogBook | None = None,
    ) -> None:
        super().__init__()
        self.tasks, self.settings, self.theme = tasks, settings, theme
        self.autosave, self.book = autosave, book or LogBook(parent=self)
        self._closing = False
        self.setWindowTitle("Dualscope")
        self.setWindowIcon(app_icon())
        context = self.context = AppContext(self, tasks, settings, autosave)
        # by the names that the tour, the bench and the tests know them under
        self.ready, self.messages = context.ready, context.messages
        self.history, self.undo = context.history, context.undo
        self.store, self.runs, self.data = context.store, context.runs, context.data
        self.browser, self.left, self.right = context.browser, context.left, context.right
        self.center, self.grid, self.panes = context.center, context.grid, context.panes
        self.setup = context.setup
        self.start_runs, self.show_run = context.start_runs, context.show_run
        self.load_engine = context.load_engine
        self._build_tools()
        self._build_layout()
        self._connect()
        self._restore()

    def _build_tools(self) -> None:
        context = self.context
        self.trust, self.experiments = Trust(context), Experiments(context)
        self.folders, self.volumes = Folders(context), Volumes(context)
        self.stacks, self.doses = Stacks(context), Doses(context)
        self.pages = (
            self.trust,
            self.experiments,
            self.folders,
            self.volumes,
            self.stacks,
            self.doses,
        )
        self.geometry_asker = GeometryController(context.data, self.tasks, self)
        self.files = ExportController(context)
        self.workspaces = Workspaces(context)
        self.help_window = HelpWindow(self)
        self.log_window = LogWindow(self.book, self)
        self.drop = DropFilter(self, self.data.open_dropped)

    def _build_layout(self) -> None:
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self.split.setChildrenCollapsible(False)
        for part in (self.left, self.center, self.right):
            self.split.addWidget(part)
        self.split.setStretchFactor(1, 1)
        self.split.setSizes([LEFT_PX, 1600 - LEFT_PX - RIGHT_PX, RIGHT_PX])
        self.setCentralWidget(self.split)
        self.run_bar = RunBar(self.runs)
        for page in self.pages:
            self.run_bar.follow(page.presenter)
        research = QLabel(RESEARCH)
        research.setAccessibleName(RESEARCH)
        research.setToolTip("What this program shows must not be used to treat a patient.")
        research.setContentsMargins(8, 0, 8, 0)
        self.statusBar().addWidget(self.run_bar, 1)
        self.statusBar().addPermanentWidget(research)
        self.statusBar().setSizeGripEnabled(False)
        self.menus = Menus(self.menuBar(), self.context, self.run_bar.buttons, self._acts())
        self._folds: dict[str, Any] = {
            **{f"left {name}": part for name, part in self.left.sections.items()},
            **{f"right {name}": part for name, part in self.right.sections.items()},
            "plots": self.center.plots,
        }
        self._splitters = {"window": self.split, "center": self.center.split, "right": self.right}

    def _acts(self) -> dict[str, Act]:
        """What the menus do beside what they know themselves."""
        context = self.context
        return {
            "open": context.ask_file,
            "open folder": context.ask_folder,
            "open volume": self.volumes.browser.ask,
            "open workspace": self.workspaces.ask_open,
            "save workspace": self.workspaces.ask_save,
            "export": self.files.export,
            "save picture": self.files.save_picture,
            "copy image": self.files.copy_image,
            "copy curves": self.files.copy_curves,
            "copy table": self.files.copy_table,
            "quit": self.close,
            "trust": self.trust.show,
            "volume": self.volumes.show,
            "geometry": lambda: self.geometry_asker.check_now(self.setup.data),
            "experiments": self.experiments.show,
            "folder": self.folders.show,
            "dose": self.doses.show,
            "help": partial(self.show_help, "workstation"),
            "shortcuts": partial(self.show_help, "shortcuts"),
            "reading": partial(self.show_help, "reading-the-plots"),
            "formulas": partial(self.show_help, "formulas"),
            "tour": self.start_tour,
            "log": self.show_log,
            "about": self.show_about,
            "theme": self.set_theme,
        }

    def _connect(self) -> None:
        self.context.opened.connect(
            lambda data: self.setWindowTitle(f"{data.screen_name} - Dualscope")
        )
        self.context.help_wanted.connect(self.show_help)
        self.tasks.busy_changed.connect(self.run_bar.set_other)
        # closing: one ends after the other, the runs last
        jobs = [page.presenter for page in self.pages]
        for one, following in pairwise([*jobs, self.volumes.browser.exporter, self.runs]):
            one.closed.connect(following.request_close)
        self.runs.closed.connect(self._on_runs_closed)

    # -- life -------------------------------------------------------------------------------

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._closing:
            event.accept()
            return
        event.ignore()
        self.files.close()  # it has something to remember
        self._save()
        self.setup.stop()
        self.grid.inspector.stop()
        self.setEnabled(False)
        for page in self.pages:
            page.close()
        if any(page.busy for page in self.pages):
            self.hide()
        self.trust.presenter.request_close()

    @Slot()
    def _on_runs_closed(self) -> None:
        self._closing = True
        for window in (self.help_window, self.log_window, self.center.plots):
            window.close()
        self.close()
        self.gone.emit()

    def _restore(self) -> None:
        """Size, splitters and folded parts as they were left."""
        geometry = self.settings.bytes_of("geometry")
        if geometry.isEmpty() or not self.restoreGeometry(geometry):
            available = self.screen().availableSize()
            self.resize(min(1600, available.width()), min(1000, available.height()))
        for name in self.settings.get("folded"):
            if name in self._folds:
                self._folds[name].set_folded(True)
        for name, split in self._splitters.items():
            split.restoreState(self.settings.bytes_of("splitters", name))

    def _save(self) -> None:
        self.settings.set_bytes("geometry", self.saveGeometry())
        self.settings.set("folded", [name for name, part in self._folds.items() if part.folded])
        for name, split in self._splitters.items():
            self.settings.set_bytes("splitters", split.saveState(), name)
        self.settings.save_now()

    # -- view and help ----------------------------------------------------------------------

    def set_theme(self, mode: str) -> None:
        self.settings.set("theme", mode)
        if self.theme is not None:
            self.theme.set_mode(mode)

    @Slot(str)
    def show_help(self, page: str) -> None:
        self.help_window.set_actions(self.menus.listing())
        self.help_window.open(page)

    def show_log(self) -> None:
        self.log_window.show()
        self.log_window.raise_()

    def show_about(self) -> None:
        from app.shell.about import AboutDialog

        dialog = AboutDialog(self, self.tasks)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def start_tour(self) -> None:
        from app.shell.welcome import WelcomeTour

        parts = {
            "browser": self.browser,
            "acquisition": self.left.sections["acquisition"],
            "run": self.left.solver.footer,
            "images": self.grid,
            "plots": self.center.plots,
        }
        self.tour = WelcomeTour(self, [(parts[name], title, words) for name, title, words in TOUR])
        self.tour.finished.connect(lambda: self.settings.set("tour_seen", True))
        self.tour.start()

    def first_tour(self) -> None:
        """Once, when the window has settled."""
        if not self.settings.get("tour_seen"):
            QTimer.singleShot(0, self.start_tour)
