"""The data part of the left column: what is open, which series, which slice, what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from app.data.checks import ChecksList, FactsList, WarningsList
from app.data.opened import Opened
from app.data.presenter import DataPresenter
from app.data.series_list import SeriesList, SliceBar
from app.widgets import Section, in_column, in_row, plain_tip

if TYPE_CHECKING:
    from engine.data.dataset import Check


PATTERNS = (
    "Images, sinograms and k-space (*.dcm *.dicom *.ima *.nii *.nii.gz *.nrrd *.nhdr *.mha *.mhd "
    "*.png *.tif *.tiff *.npy *.npz *.mat *.h5 *.hdf5 *.hdf *.nxs *.nx *.mrc *.mrcs *.st *.ali "
    "*.cfl *.hdr *.raw *.bin *.f32 DICOMDIR)",
    "All files, also DICOM without a suffix (*)",
)


class OpenMenu(QMenu):
    """Serves the browser's button and the window's File menu alike."""

    def __init__(self, presenter: DataPresenter, parent: QWidget | None = None) -> None:
        super().__init__("Open", parent)
        self.presenter = presenter
        self.dialog: QFileDialog | None = None
        # where a person was the last time; the window knows
        self.start_folder: Callable[[], str] = lambda: ""
        self.keep_folder: Callable[[str], None] = lambda folder: None
        self.setToolTipsVisible(True)
        self.setAccessibleName("Open data")
        self.file = self._action("File…", "Open an image, a sinogram or k-space.", self.ask_file)
        self.folder = self._action(
            "Folder…", "Open a folder of DICOM files or of TIFF images.", self.ask_folder
        )
        self.addSeparator()
        self.ct = self._action(
            "CT demo", "Open a synthetic CT slice.", partial(presenter.open_demo, "ct")
        )
        self.mri = self._action(
            "MRI demo", "Open a synthetic MR slice.", partial(presenter.open_demo, "mri")
        )
        self._fixed = self.actions()
        self.aboutToShow.connect(presenter.recent.refresh)
        presenter.recent.changed.connect(self.fill)
        self.fill()

    def _action(self, text: str, tip: str, run: object) -> QAction:
        action = QAction(text, self)  # one that addAction makes is never let go by Python
        self.addAction(action)
        action.setToolTip(plain_tip(tip))
        action.triggered.connect(lambda: run())  # type: ignore[operator]
        return action

    def _line(self, text: str = "") -> None:
        line = QAction(text, self)
        line.setSeparator(True)
        self.addAction(line)

    @Slot()
    def fill(self) -> None:
        """The recent files, under what is always there."""
        for action in self.actions():
            if action not in self._fixed:
                self.removeAction(action)
                action.deleteLater()
        recent = self.presenter.recent
        entries = recent.menu_entries()
        if entries:
            self._line("Recent")
        for entry in entries:
            run = partial(self.presenter.open, entry.text, entry.options)
            self._action(entry.label.replace("&", "&&"), entry.tip, run).setEnabled(entry.enabled)
        if recent.problem:
            self._action("Recent files are not kept", recent.problem, lambda: None).setEnabled(
                False
            )
        if entries:
            self._line()
            self._action(
                "Clear recent files",
                "Forget these files; the files themselves stay.",
                recent.clear,
            )

    @Slot()
    def ask_file(self) -> None:
        dialog = self._dialog("Open a file", QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters(PATTERNS)
        dialog.open()

    @Slot()
    def ask_folder(self) -> None:
        dialog = self._dialog("Open a folder", QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.open()

    def _dialog(self, title: str, mode: QFileDialog.FileMode) -> QFileDialog:
        if self.dialog is not None:
            self.dialog.close()
        parent = self.parentWidget()
        dialog = QFileDialog(parent.window() if parent is not None else None, title)
        dialog.setFileMode(mode)
        dialog.setDirectory(self.start_folder())
        dialog.fileSelected.connect(self._on_selected)
        dialog.finished.connect(self._on_finished)
        self.dialog = dialog
        return dialog

    @Slot(str)
    def _on_selected(self, path: str) -> None:
        self.keep_folder(str(Path(path).parent))
        self.presenter.open(path)

    @Slot(int)
    def _on_finished(self, result: int) -> None:
        dialog, self.dialog = self.dialog, None
        if dialog is not None:
            dialog.deleteLater()


EMPTY = "Drop a DICOM folder here, or open the demo."
PATIENCE_MS = 150  # reading that takes less is not worth a word


class DataBrowser(QWidget):
    """Shows what the presenter has open; slices are asked for with `slice_wanted`."""

    slice_wanted = Signal(int)

    def __init__(self, presenter: DataPresenter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.presenter = presenter
        self.setAccessibleName("Data")
        self.menu = OpenMenu(presenter, self)
        self.openButton = QPushButton("Open…")
        self.openButton.setAccessibleName("Open data")
        self.openButton.setToolTip("Open a file, a folder, a demo or something opened before.")
        self.openButton.clicked.connect(self.show_menu)
        self.busy = _BusyLine()
        self.empty = self._empty_state()
        self.series = SeriesList()
        self.slices = SliceBar()
        self.facts, self.warnings = FactsList(), WarningsList()
        self.checks = ChecksList()
        self.checked = Section("Checks", self.checks)
        self.found = Section("What was found", self.facts)
        self.body = QWidget()
        self._build()
        self.series.chosen.connect(presenter.choose_series)
        self.slices.wanted.connect(self.slice_wanted)
        presenter.preview.connect(self.slices.cine.on_seen)
        presenter.opened.connect(self._on_opened)
        presenter.results_changed.connect(self._on_results)
        presenter.thumbnails.connect(self.series.set_thumbnails)
        presenter.warnings_changed.connect(self._show_warnings)
        presenter.checks_changed.connect(self._show_checks)
        presenter.failed.connect(self._on_failed)
        presenter.busy.connect(self.busy.say)
        self._show_body(False)
        if presenter.current is not None:
            self._on_opened(presenter.current)

    def sizeHint(self) -> QSize:
        return QSize(260, super().sizeHint().height())

    @Slot(int)
    def set_slice(self, number: int) -> None:
        """Show which slice is seen elsewhere; counted from 0."""
        self.slices.set_number(number)

    @Slot()
    def show_menu(self) -> None:
        self.menu.popup(self.openButton.mapToGlobal(QPoint(0, self.openButton.height())))

    def _empty_state(self) -> QWidget:
        words = QLabel(EMPTY)
        words.setWordWrap(True)
        words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.ctDemo, self.mriDemo = QPushButton("CT demo"), QPushButton("MRI demo")
        self.ctDemo.setToolTip(self.menu.ct.toolTip())
        self.mriDemo.setToolTip(self.menu.mri.toolTip())
        self.ctDemo.clicked.connect(self.menu.ct.trigger)
        self.mriDemo.clicked.connect(self.menu.mri.trigger)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self.ctDemo, self.mriDemo):
            button.setAccessibleName(f"Open the {button.text()}")
            buttons.addWidget(button)
        page = QWidget()
        in_column(words, buttons, spacing=16, margins=(8, 24, 8, 24), parent=page)
        return page

    def _build(self) -> None:
        top = in_row(self.openButton, (self.busy, 1), spacing=8)
        inner = in_column(spacing=8, margins=0, parent=self.body)
        for part in (self.series, self.slices, self.checked, self.warnings, self.found):
            inner.addWidget(part)
        inner.addStretch(1)
        in_column(top, self.empty, self.body, None, spacing=8, margins=0, parent=self)
        self.found.set_folded(True)

    def _show_body(self, on: bool) -> None:
        self.empty.setVisible(not on)
        self.body.setVisible(on)

    @Slot(object)
    def _on_opened(self, opened: Opened) -> None:
        self.series.show_series(self.presenter.listed(opened))
        self.slices.set_count(opened.count, opened.middle, opened.reading_step)
        self.facts.show_facts(opened.facts)
        self._show_checks(opened.checks)
        self._show_warnings(opened.warnings)
        self._show_body(True)

    @Slot()
    def _on_results(self) -> None:
        if self.presenter.current is not None:
            self.series.show_series(self.presenter.listed(self.presenter.current))

    @Slot(object)
    def _show_warnings(self, warnings: Sequence[str]) -> None:
        """What a check says in the list above is not said again."""
        self.warnings.show_warnings(w for w in warnings if w not in self.checks.sentences)

    @Slot(object)
    def _show_checks(self, checks: Sequence[Check]) -> None:
        """Unfolded only when there is something to read."""
        now = self.presenter.current
        noise = [fact for fact in now.dataset.facts if fact.name == "noise"] if now else []
        self.checks.show_checks(checks, noise)
        self.checked.set_title(f"Checks: {self.checks.summary}")
        self.checked.set_folded(not self.checks.has_news)
        self.checked.setVisible(bool(checks or noise))

    @Slot(str, str)
    def _on_failed(self, sentence: str, details: str) -> None:
        self.series.select_chosen()  # what is open has not changed


class _BusyLine(QLabel):
    """What is being read, beside the button, so that nothing moves when it comes and goes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("What is being read")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._words = ""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PATIENCE_MS)
        self._timer.timeout.connect(self._show)

    @Slot(str)
    def say(self, words: str) -> None:
        self._words = words
        if not words:
            self._timer.stop()
            self._show()
        elif self.text():
            self._show()
        elif not self._timer.isActive():
            self._timer.start()

    def _show(self) -> None:
        self.setToolTip(plain_tip(self._words))
        self.setText(
            self.fontMetrics().elidedText(
                self._words, Qt.TextElideMode.ElideMiddle, max(self.width(), 40)
            )
        )
