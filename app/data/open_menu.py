"""The menu of things to open: a file, a folder, the demos, and what was opened before."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from app.data.presenter import DataPresenter
from app.widgets import plain_tip

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
        dialog.fileSelected.connect(self.presenter.open)
        dialog.finished.connect(self._on_finished)
        self.dialog = dialog
        return dialog

    @Slot(int)
    def _on_finished(self, result: int) -> None:
        dialog, self.dialog = self.dialog, None
        if dialog is not None:
            dialog.deleteLater()
