"""The main window: puts the parts together and lets them talk; it decides nothing itself."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QShowEvent
from PySide6.QtWidgets import QLabel, QMainWindow, QSplitter, QStyle

from app.columns import LEFT_PX, RIGHT_PX
from app.context import AppContext
from app.data.drop import DropFilter
from app.data.geometry_controller import GeometryController
from app.data.tag_window import TagWindow
from app.export.controller import ExportController
from app.layouts.images_window import ImagesWindow
from app.layouts.layouts import Layouts
from app.layouts.rail import Rail
from app.layouts.switcher import Switcher
from app.layouts.tab_order import focus_next
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
from app.tools.run_library.controller import Library
from app.tools.trust.controller import Trust
from app.tools.volume.controller import Volumes
from app.tools.volume.stacks import Stacks
from app.widgets import scrolled
from app.workspace.controller import Workspaces

RESEARCH = "Research use - not for diagnosis"
OPEN_DATA = "Here are the open data, their series and slices; Open… takes others."
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
        self._closing = self._laid_out = False
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
        self.run_library = Library(context)
        self.help_window = HelpWindow(self)
        self.log_window = LogWindow(self.book, self)
        self.tag_window: TagWindow | None = None
        self.drop = DropFilter(self, self.data.open_dropped)

    def _build_layout(self) -> None:
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self.split.setChildrenCollapsible(False)
        self.split.setHandleWidth(3)  # three images of 512 px stand side by side in 1600
        runs = scrolled(self.right, "Runs and measurements")  # a low window has no room for all
        runs.setMinimumWidth(self.right.minimumWidth())
        rails = {
            "left": Rail("Data and settings", self.left, "left", "F2", LEFT_PX),
            "right": Rail("Runs and measurements", runs, "right", "F4", RIGHT_PX),
        }
        for part in (rails["left"], self.center, rails["right"]):
            self.split.addWidget(part)
        self.split.setStretchFactor(1, 1)
        self.layouts = Layouts(self.settings, self.split, self.grid, rails, self.center.plots)
        self.images_window: ImagesWindow | None = None
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
        }
        self._splitters = {"right": self.right}
        self.switcher = Switcher(self.layouts)
        if self.menuBar().isNativeMenuBar():  # at the top of the screen, where it has no corner
            self.statusBar().addPermanentWidget(self.switcher)
        else:
            self.menuBar().setCornerWidget(self.switcher)

    def _acts(self) -> dict[str, Act]:
        """What the menus do beside what they know themselves."""
        context = self.context
        return {
            "open": context.ask_file,
            "open folder": context.ask_folder,
            "open volume": self.volumes.browser.ask,
            "open workspace": self.workspaces.ask_open,
            "save workspace": self.workspaces.ask_save,
            "library": self.run_library.show,
            "export": self.files.export,
            "save picture": self.files.save_picture,
            "copy image": self.files.copy_image,
            "copy curves": self.files.copy_curves,
            "copy table": self.files.copy_table,
            "quit": self.close,
            "trust": self.trust.show,
            "tags": self.show_tags,
            "mpr": self.volumes.browser.show_series,
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
            "layout": self.layouts.choose,
            "fold": self.layouts.fold,
            "images": self.layouts.set_count,
            "second window": self.set_images_apart,
            "full screen": self.set_full_screen,
        }

    def _connect(self) -> None:
        self.context.opened.connect(
            lambda data: self.setWindowTitle(f"{data.screen_name} - Dualscope")
        )
        self.context.help_wanted.connect(self.show_help)
        for asking in (self.panes.why_wanted, self.right.table.note.why_requested):
            asking.connect(self.show_why)
        self.panes.current_changed.connect(self._bring_current)
        self.layouts.changed.connect(self.menus.show_layout)
        self.layouts.changed.connect(self._bring_current)
        self.layouts.folded_changed.connect(self.menus.show_folded)
        self.grid.open_wanted.connect(lambda name: self.menus.actions[name].trigger())
        self.center.back_wanted.connect(self.menus.actions["second window"].trigger)
        self.tasks.busy_changed.connect(self.run_bar.set_other)
        self.grid.link.offered = [
            ("Axial, coronal, sagittal…\tCtrl+M", "mpr", self.volumes.browser.show_series),
            ("DICOM tags…\tCtrl+T", "tags", self.show_tags),
        ]
        # closing: one ends after the other, the runs last
        jobs = [page.presenter for page in self.pages]
        for one, following in pairwise([*jobs, self.volumes.browser.exporter, self.runs]):
            one.closed.connect(following.request_close)
        self.runs.closed.connect(self._on_runs_closed)

    def show_tags(self) -> None:
        """The header of the slice; the window is made when it is first asked for."""
        if self.tag_window is None:
            view = self.tag_window = TagWindow(self.tasks, self)
            self.context.opened.connect(view.set_data)
            self.grid.link.slice_changed.connect(view.set_slice)
            self.settings.changed.connect(self._on_setting)
        self.tag_window.slice = self.grid.link.state.slice
        self.tag_window.masked = bool(self.settings.get("patient_masked"))
        self.tag_window.data = self.setup.data
        self.tag_window.show()
        self.tag_window.raise_()
        self.tag_window.refresh()

    def _on_setting(self, name: str) -> None:
        if name == "patient_masked" and self.tag_window is not None:
            self.tag_window.set_masked(bool(self.settings.get(name)))

    # -- life -------------------------------------------------------------------------------

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._closing:
            event.accept()
            return
        event.ignore()
        self.files.close()  # it has something to remember
        self._save()
        if self.images_window is not None:
            self.images_window.close()
        self.setup.stop()
        self.grid.inspector.stop()
        self.setEnabled(False)
        self.run_library.close()
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
            self.resize(first_size(self.screen().availableSize(), self._title_px()))
        for name in self.settings.get("folded"):
            if name in self._folds:
                self._folds[name].set_folded(True)
        for name, split in self._splitters.items():
            split.restoreState(self.settings.bytes_of("splitters", name))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._laid_out:  # how wide the window is, is known only now
            self._laid_out = True
            self.layouts.restore(self.width())

    def _title_px(self) -> int:
        """What the desktop puts around a window; it does not tell before the window is there."""
        return self.style().pixelMetric(QStyle.PixelMetric.PM_TitleBarHeight)

    def _save(self) -> None:
        self.settings.set_bytes("geometry", self.saveGeometry())
        self.settings.set("folded", [name for name, part in self._folds.items() if part.folded])
        for name, split in self._splitters.items():
            self.settings.set_bytes("splitters", split.saveState(), name)
        if self._laid_out:
            self.layouts.save()
        self.settings.save_now()

    def focusNextPrevChild(self, forward: bool) -> bool:
        return focus_next(self, forward) or super().focusNextPrevChild(forward)

    # -- view and help ----------------------------------------------------------------------

    def set_theme(self, mode: str) -> None:
        self.settings.set("theme", mode)
        if self.theme is not None:
            self.theme.set_mode(mode)

    @Slot()
    def _bring_current(self) -> None:
        if self.panes.current in self.grid:
            self.grid.bring(str(self.panes.current))

    def set_images_apart(self, apart: bool) -> None:
        """The images in a window of their own, on the other monitor if there is one."""
        window, self.images_window = self.images_window, None
        if apart and window is None:
            self.images_window = ImagesWindow(self.center.release_images(), self)
            self.images_window.addActions(list(self.menus.actions.values()))
            self.images_window.closed.connect(self._on_images_back)
        elif window is not None and not apart:
            self.center.take_images()
            window.close()
            window.deleteLater()

    @Slot()
    def _on_images_back(self) -> None:
        self.menus.actions["second window"].setChecked(False)

    def set_full_screen(self, full: bool) -> None:
        self.showFullScreen() if full else self.showNormal()

    @Slot(str)
    def show_help(self, page: str) -> None:
        self.help_window.set_actions(self.menus.listing())
        self.help_window.open(page)

    @Slot(str)
    def show_why(self, run_id: str) -> None:
        """Behind a verdict: what was measured and what was guessed."""
        self.show_run(run_id)
        self.trust.show()

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
        said = {name: words for name, _, words in TOUR}
        if self.setup.data is not None:
            said["browser"] = OPEN_DATA
        self.tour = WelcomeTour(self, [(parts[name], title, said[name]) for name, title, _ in TOUR])
        self.tour.finished.connect(lambda: self.settings.set("tour_seen", True))
        self.tour.start()

    def first_tour(self) -> None:
        """Once, when the window has settled."""
        if not self.settings.get("tour_seen"):
            QTimer.singleShot(0, self.start_tour)


def first_size(available: QSize, title_px: int) -> QSize:
    """With the desktop's frame no larger than the screen: the buttons of a run are at its foot."""
    return QSize(min(1600, available.width()), min(1000, available.height() - title_px))
