"""The main window: puts the parts together and lets them talk; it decides nothing itself."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QFileDialog, QLabel, QMainWindow, QSplitter

from app.center import Center
from app.columns import LEFT_PX, RIGHT_PX, LeftColumn, RightColumn
from app.data.browser import DataBrowser
from app.data.drop import DropFilter
from app.data.geometry_flow import GeometryFlow
from app.data.presenter import DataPresenter
from app.data.recent import RecentFiles
from app.forms.choices import Choices, load_choices
from app.forms.history import History
from app.forms.labels import on_screen
from app.menus import Menus
from app.runs.bar import RunBar
from app.runs.events import RunFailed, RunFinished
from app.runs.presenter import RunPresenter
from app.runs.store import RunStore
from app.session.files import Files
from app.session.jobs import jobs_for, without_prior
from app.session.panes import Panes
from app.session.setup import Setup
from app.session.undo import Undo
from app.session.workspaces import Workspaces
from app.shell.help_window import HelpWindow
from app.shell.icon import app_icon
from app.shell.log import LogBook
from app.shell.log_window import LogWindow
from app.shell.messages import Messages
from app.shell.settings import AppSettings
from app.tasks import Tasks
from app.theme import Theme
from app.tools.experiments.flow import Experiments
from app.tools.folder.flow import Folders
from app.tools.trust.flow import Trust
from app.tools.volume.flow import Volumes

log = logging.getLogger("app")

RESEARCH = "Research use - not for diagnosis"


class MainWindow(QMainWindow):
    """Closing ends a run first, without blocking; ``gone`` says that all has ended."""

    ready = Signal()  # the engine is loaded: runs can start
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
        self._folds: dict[str, Any] = {}
        self.setWindowTitle("Dualscope")
        self.setWindowIcon(app_icon())
        self._build_models()
        self._build_views()
        self._connect()
        self.menus = Menus(self)
        self.menus.refresh()
        self._restore()

    # -- building ---------------------------------------------------------------------------

    def _build_models(self) -> None:
        self.history = History({}, self)
        self.undo = Undo(self.history, self)
        self.store = RunStore(self)
        self.runs = RunPresenter(self.store, self.autosave, self)
        self.recent = RecentFiles(self.tasks, parent=self)
        self.data = DataPresenter(self.tasks, self.recent, self)

    def _build_views(self) -> None:
        self.messages = Messages(self)
        self.browser = DataBrowser(self.data)
        self.left = LeftColumn(self.browser, self.history)
        self.center = Center(self.store, self.runs, self.messages)
        self.grid = self.center.grid
        self.right = RightColumn(self.store, self.undo.stack, self.grid.inspector)
        self.panes = Panes(self.grid, self.store, self.runs)
        self.center.plots.belongs = self.panes.belongs
        self.setup = Setup(self.left, self.data)
        self.geometry_flow = GeometryFlow(self.data, self.tasks, self)
        self.files = Files(self)
        self.help_window = HelpWindow(self)
        self.log_window = LogWindow(self.book, self)
        self.drop = DropFilter(self, self.data.open_dropped)
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self.split.setChildrenCollapsible(False)
        for part in (self.left, self.center, self.right):
            self.split.addWidget(part)
        self.split.setStretchFactor(1, 1)
        self.split.setSizes([LEFT_PX, 1600 - LEFT_PX - RIGHT_PX, RIGHT_PX])
        self.setCentralWidget(self.split)
        self.run_bar = RunBar(self.runs)
        research = QLabel(RESEARCH)
        research.setAccessibleName(RESEARCH)
        research.setToolTip("What this program shows must not be used to treat a patient.")
        research.setContentsMargins(8, 0, 8, 0)
        self.statusBar().addWidget(self.run_bar, 1)
        self.statusBar().addPermanentWidget(research)
        self.statusBar().setSizeGripEnabled(False)

    def _connect(self) -> None:
        data, panes, runs, solver = self.data, self.panes, self.runs, self.left.solver
        data.opened.connect(self._on_opened)
        data.failed.connect(self.messages.error)
        data.preview.connect(panes.show_preview)
        panes.slice_wanted.connect(data.show_slice)
        self.grid.link.slice_changed.connect(self.setup.set_slice)
        self.grid.link.slice_changed.connect(self.browser.set_slice)
        self.grid.link.notice.connect(self.messages.notice)
        self.browser.slice_wanted.connect(self.grid.link.set_slice)
        self.tasks.failed.connect(self.messages.error)
        self.tasks.busy_changed.connect(self.run_bar.set_other)
        self.settings.failed.connect(self.messages.error)
        solver.run_requested.connect(lambda asked: self.start_runs([asked]))
        solver.run_both_requested.connect(self.start_runs)
        runs.state_changed.connect(self._on_state)
        runs.started.connect(self._on_started)
        runs.finished.connect(self._on_finished)
        runs.failed.connect(self._on_failed)
        runs.closed.connect(self._on_runs_closed)
        self.experiments, self.folders = Experiments(self), Folders(self)
        self.volumes = Volumes(self)
        self.pages = (self.experiments, self.folders, self.volumes)
        self.experiments.presenter.closed.connect(self.folders.request_close)
        self.folders.presenter.closed.connect(self.volumes.request_close)
        self.volumes.closed.connect(runs.request_close)
        self.trust = Trust(self)
        self.trust.presenter.closed.connect(self.experiments.request_close)
        self.center.plots.wanted_changed.connect(self._show_wanted)
        self.center.bar.planes_chosen.connect(panes.set_planes)
        panes.wanted_changed.connect(self._show_wanted)
        self.right.table.shown.connect(self.show_run)
        self.right.table.note.compare_requested.connect(self.compare_without_prior)
        self.center.scrubber.chosen.connect(self._on_scrubbed)
        self.center.scrubber.live_changed.connect(self._on_live)
        self.workspaces = Workspaces(self)  # last: it fills what the others have made of new data

    # -- life -------------------------------------------------------------------------------

    def load_engine(self) -> None:
        """In the background; the window can be looked at and resized meanwhile."""
        self.runs.warm_up()
        self.tasks.start("Loading the engine …", load_choices, self._on_choices)

    def _on_choices(self, choices: Choices) -> None:
        self.left.solver.set_choices(choices)
        self.runs.labels = {method.name: method.label for method in choices.methods}
        self.menus.refresh()
        self.ready.emit()

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
        self.trust.request_close()  # the pages and runs end after it, one by one

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
        self._folds = {
            **{f"left {name}": part for name, part in self.left.sections.items()},
            **{f"right {name}": part for name, part in self.right.sections.items()},
            "plots": self.center.plots,
        }
        for name in self.settings.get("folded"):
            if name in self._folds:
                self._folds[name].set_folded(True)
        for name, split in self._splitters().items():
            split.restoreState(self.settings.bytes_of("splitters", name))
        self.set_patient_masked(bool(self.settings.get("patient_masked")))

    def _save(self) -> None:
        self.settings.set_bytes("geometry", self.saveGeometry())
        self.settings.set("folded", [name for name, part in self._folds.items() if part.folded])
        for name, split in self._splitters().items():
            self.settings.set_bytes("splitters", split.saveState(), name)
        self.settings.save_now()

    def _splitters(self) -> dict[str, QSplitter]:
        return {"window": self.split, "center": self.center.split, "right": self.right}

    # -- data -------------------------------------------------------------------------------

    @Slot(object)
    def _on_opened(self, data: Any) -> None:
        self.setWindowTitle(f"{data.screen_name} - Dualscope")
        log.info("Opened: %s.", data.name)
        self.center.scrubber.set_run(None)
        self.right.table.note.set_run(None)
        self.panes.set_data(data, data.middle)
        self.center.plots.redraw()  # with the runs of these data only
        self.setup.set_data(data)
        self.setup.set_slice(self.panes.slice)
        self.browser.set_slice(self.panes.slice)
        self.menus.refresh()

    def ask_file(self) -> None:
        self._ask(QFileDialog.FileMode.ExistingFile, "Open a file")

    def ask_folder(self) -> None:
        self._ask(QFileDialog.FileMode.Directory, "Open a folder")

    def _ask(self, mode: QFileDialog.FileMode, title: str) -> None:
        folder = self.settings.get("folders").get("open", str(Path.home()))
        dialog = QFileDialog(self, title, folder)
        dialog.setFileMode(mode)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._on_chosen)
        dialog.open()

    @Slot(str)
    def _on_chosen(self, path: str) -> None:
        self.settings.put("folders", "open", str(Path(path).parent))
        self.data.open(path)

    def check_geometry(self) -> None:
        data = self.setup.data
        if data is None or data.kind == "image":
            self.messages.notice("Only a sinogram or k-space was measured: open one first.")
        else:
            self.geometry_flow.check_now(data)

    # -- runs -------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether something computes, so that a run cannot start."""
        return self.runs.busy or self.trust.busy or any(page.busy for page in self.pages)

    @Slot(list)
    def start_runs(self, asked: list[dict[str, Any]]) -> list[str]:
        data = self.setup.data
        if data is None or self.busy:
            return []
        jobs = jobs_for(
            asked,
            data=(data.text, data.options),
            modality=data.modality,
            slices=self.left.slices.value(),
            acquisition=self.left.acquisition().value(),
            runs=self.store,
        )
        self.panes.make_room(job["solver"] for job in jobs)
        run_ids = self.runs.start(jobs)
        self.show_run(run_ids[-1] if len(asked) == 1 else run_ids[-len(asked)])
        return run_ids

    @Slot(str)
    def compare_without_prior(self, run_id: str) -> None:
        """The scan of a run again, with the method that its verdict offers."""
        if self.busy:
            self.messages.notice("Wait until the present run has ended.")
        elif (entry := self.store.get(run_id)) is not None:
            self.panes.make_room([entry.compare_with])
            self.show_run(self.runs.start([without_prior(entry)])[-1])

    @Slot(str)
    def show_run(self, run_id: str) -> None:
        """Make a run the current one: the scrubber and the extra planes are of it."""
        entry = self.store.get(run_id)
        if entry is None:
            return
        if not entry.visible:
            self.store.change(run_id, visible=True)
        self.center.scrubber.set_run(run_id)
        self.right.table.note.set_run(run_id)
        self.panes.set_current(run_id)
        self._show_wanted()

    @Slot()
    def _show_wanted(self) -> None:
        self.runs.show(self.center.plots.wanted | self.panes.wanted, self.panes.sample)

    @Slot(str)
    def _on_state(self, state: str) -> None:
        self.left.solver.set_running(state != "idle")
        self.menus.refresh()

    @Slot(object)
    def _on_started(self, started: Any) -> None:
        log.info("%s started on %d slice(s).", started.label, len(started.slices))
        for warning in started.warnings:
            self.messages.notice(on_screen(warning))

    @Slot(object)
    def _on_finished(self, ended: RunFinished) -> None:
        entry = self.store.get(ended.run_id)
        name = entry.label if entry is not None else "A run"
        log.info("%s %s after %.1f s.", name, ended.status, ended.seconds)

    @Slot(object)
    def _on_failed(self, failure: RunFailed) -> None:
        log.warning("A run failed.")  # its sentence may name a file
        self.messages.error(failure.sentence, failure.details)

    @Slot(str, int, float, object)
    def _on_scrubbed(self, run_id: str, k: int, sigma: float, images: object) -> None:
        self.panes.scrub(k, self.center.scrubber.live)

    @Slot(bool)
    def _on_live(self, live: bool) -> None:
        if live:
            self.panes.scrub(0, True)

    # -- view and help ----------------------------------------------------------------------

    def set_part_shown(self, name: str, shown: bool) -> None:
        part = {"left": self.left, "right": self.right, "plots": self.center.plots}[name]
        if name == "plots":
            self.center.plots.set_folded(not shown)
        else:
            part.setVisible(shown)

    def set_patient_masked(self, masked: bool) -> None:
        self.grid.set_patient_masked(masked)
        self.settings.set("patient_masked", masked)

    def set_theme(self, mode: str) -> None:
        self.settings.set("theme", mode)
        if self.theme is not None:
            self.theme.set_mode(mode)

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

        left, center = self.left, self.center
        acquisition = left.sections["acquisition"]
        steps = [
            (self.browser, "Data", "Open a DICOM folder, a sinogram or k-space, or drop it here."),
            (
                acquisition,
                "Acquisition",
                "Say how much is measured: fewer views leave more open.",
            ),
            (left.solver.footer, "Run", "Run one method, or DC-PnPDP and DiffPIR side by side."),
            (self.grid, "Images", "Left drag: window. Wheel: slices. Double-click: one alone."),
            (center.plots, "Curves", "See whether data and prior agree, and whether it is noise."),
        ]
        self.tour = WelcomeTour(self, steps)
        self.tour.finished.connect(lambda: self.settings.set("tour_seen", True))
        self.tour.start()

    def first_tour(self) -> None:
        """Once, when the window has settled."""
        if not self.settings.get("tour_seen"):
            QTimer.singleShot(0, self.start_tour)
