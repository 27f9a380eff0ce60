"""What the open data mean for the fields: which panel, what may be changed, what is simulated."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Slot

from app.columns import LeftColumn
from app.data.opened import Opened
from app.data.presenter import DataPresenter
from app.forms.labels import on_screen
from engine.spec.acquisition import demo_acquisition

SETTLE_MS: Final = 400  # after the last edit, before the sinogram is simulated again


class Setup(QObject):
    """Keeps the left column in step with the open data."""

    def __init__(self, left: LeftColumn, presenter: DataPresenter) -> None:
        super().__init__(left)
        self.left, self.presenter = left, presenter
        self.data: Opened | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SETTLE_MS)
        self._timer.timeout.connect(self._simulate)
        left.acquisition_edited.connect(self._on_edited)
        left.solver.edited.connect(self._on_solver)
        left.solver.acquisition_wanted.connect(self._on_preset)
        presenter.sinogram.connect(self._on_sinogram)
        presenter.checks_changed.connect(self._on_edited)

    @property
    def simulated(self) -> bool:
        """Whether the open data are a CT image, whose scan is simulated."""
        return self.data is not None and (self.data.modality, self.data.kind) == ("CT", "image")

    def stop(self) -> None:
        self._timer.stop()

    def set_data(self, data: Opened) -> None:
        self.data = data
        left = self.left
        left.set_modality(data.modality)
        left.slices.set_count(data.count)
        if data.modality == "MR":
            self._set_mri(data)
        else:
            self._set_ct(data)
        left.solver.set_modality(data.modality)
        self._on_edited()

    def _set_ct(self, data: Opened) -> None:
        panel = self.left.ct
        if (scan := data.views) is not None:
            panel.set_measured(
                *(scan.views, scan.angular_range, scan.start_angle, scan.geometry),
                *(scan.angles_deg, scan.photons),
            )
            panel.set_sinogram(scan.sinogram, panel.kept())
        else:
            panel.set_simulated(demo_acquisition(data.text))
            panel.set_sinogram(None)

    def _set_mri(self, data: Opened) -> None:
        seed = int(self.left.solver.history["seed"])
        if data.lines is not None:
            lines = data.lines
            self.left.mri.set_measured(
                *(lines.sampled, lines.coils, seed), *(lines.trajectory, lines.noise)
            )
        else:
            self.left.mri.set_simulated(data.image_size[1], seed)

    @Slot(dict)
    def _on_preset(self, acquisition: dict[str, Any]) -> None:
        if self.data is not None and self.data.kind == "image":
            self.left.acquisition().set_values(acquisition)

    @Slot()
    def _on_solver(self) -> None:
        seed = int(self.left.solver.history["seed"])
        if self.data is not None and self.left.mri.seed != seed:
            self.left.mri.set_seed(seed)

    @Slot()
    def _on_edited(self) -> None:
        panel = self.left.acquisition()
        if self.data is None:
            self.left.solver.set_blocked("Open data first.")
            return
        problem = "" if panel.valid else panel.form.problem()
        unfit = on_screen(self.data.blocked)
        self.left.solver.set_blocked(unfit or problem, may_overrule=bool(unfit) and not problem)
        if self.data.modality == "CT":
            scan = self.data.views
            views = panel.value().get("views", scan.views if scan is not None else 20)
            pixel = self.data.pixel_mm
            self.left.solver.set_scan(views, pixel[1] if pixel else None)
            if self.simulated:
                self._timer.start()

    @Slot(int)
    def set_slice(self, number: int) -> None:
        self.left.slices.set_slice(number)
        if self.simulated:
            self._timer.start()

    @Slot()
    def _simulate(self) -> None:
        """Ask for the sinogram that a run would see."""
        if self.simulated and self.left.ct.valid:
            seed = int(self.left.solver.history["seed"])
            self.presenter.simulate(self.left.slices.slice, self.left.ct.value(), seed)

    @Slot(object)
    def _on_sinogram(self, picture: NDArray[np.float32] | None) -> None:
        if self.simulated:
            self.left.ct.set_sinogram(picture)
