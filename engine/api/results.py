"""Results as a person wants them: arrays in physical units, files, pictures in a notebook."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor

from engine.api.keywords import img, in_keywords
from engine.data.dataset import Dataset
from engine.export import comparison
from engine.export.figure import comparison_figure
from engine.export.outputs import (
    OUTPUT_SUFFIXES,
    OUTPUT_UNITS,
    check_outputs,
    physical_array,
    write_outputs,
)
from engine.export.outputs import Result as Written
from engine.export.picture import windowed_png
from engine.export.report import charts
from engine.export.report_tables import metrics_table, whole_norm
from engine.files.record import RunRecord
from engine.physics.fourier import to_complex
from engine.physics.problem import Problem
from engine.runs.run import Run as EngineRun
from engine.spec.errors import DualscopeError, RequestError

Window = tuple[float, float]
NO_DISPLAY = "There is no display to show the image on: save it, as with result.save('image.png')."
STYLE = (
    "<style>.dualscope .charts{display:grid;max-width:880px;gap:8px;"
    "grid-template-columns:repeat(auto-fit,minmax(320px,1fr))}.dualscope .legend{display:none}"
    ".dualscope img{image-rendering:auto;min-width:256px}</style>"
)


def physical(problem: Problem, image: Tensor) -> NDArray:
    """float32 ``[H, W]``, or ``[N, H, W]`` of several slices, in HU or the input's MR scale."""
    values = physical_array(problem, image)
    return values[0] if len(values) == 1 else values


class Result:
    """A reconstruction: its image and how it came about."""

    def __init__(self, run: EngineRun, dataset: Dataset | None = None) -> None:
        if run.image is None:
            raise DualscopeError("There is no image yet: the run has not finished an iteration.")
        self.problem: Problem = run.problem
        self.record: RunRecord = run.record
        self.tensor: Tensor = run.image  # [N, C, H, W] in the prior's units
        self._run, self._dataset = run, dataset

    @cached_property
    def image(self) -> NDArray:
        """float32 ``[H, W]`` or ``[N, H, W]``: HU (CT), magnitude in the input's scale (MR)."""
        return physical(self.problem, self.tensor)

    @cached_property
    def complex_image(self) -> NDArray:
        """The same of MR with its phase, complex64."""
        if self.problem.modality != "MR":
            raise RequestError("A CT image has no phase: use image.")
        values = to_complex(self.problem.physical(self.tensor))[:, 0].cpu().numpy()
        return values[0] if len(values) == 1 else values

    @property
    def reference(self) -> NDArray | None:
        """The true image, when the problem has one."""
        truth = self.problem.reference
        return None if truth is None else physical(self.problem, truth)

    @property
    def history(self) -> dict[str, NDArray]:
        """One value per iteration: 'sigma', 'nfe', 'residual_z', 'gap', 'dual', 'psnr' ..."""
        rows = self.record.history
        names = [name for name in (rows[0] if rows else {}) if name != "seconds"]
        return {name: np.array([whole_norm(row.get(name)) for row in rows]) for name in names}

    @property
    def metrics(self) -> dict[str, float]:
        """'psnr', 'ssim' ... against the reference; empty without one."""
        return dict(next(iter(self.record.metrics.values()), {}))

    @property
    def verdicts(self) -> dict[str, str]:
        """Sentences about the result: does it fit the noise, does the prior know such images."""
        return dict(self.record.verdicts)

    @property
    def status(self) -> str:
        """'done', 'finished early', 'cancelled' or 'failed'."""
        return self.record.status

    def save(
        self,
        *paths: str | Path,
        overwrite: bool = False,
        window: Window | None = None,
        unit: str = "hu",
        deidentify: bool = False,
    ) -> list[str]:
        """Write files by their suffix, or a folder of DICOM; ``.json`` is the record.

        ``window`` is (centre, width), for pictures; ``unit="mu"`` writes attenuation in 1/mm
        where the format can hold it. Returns what a format could not keep, in sentences.
        """
        with in_keywords():
            suffixes = (*OUTPUT_SUFFIXES, ".json")
            files = check_outputs([str(path) for path in paths], overwrite, suffixes, folders=True)
            if not files:
                raise RequestError("save() needs a path, such as result.save('image.png').")
            if unit not in OUTPUT_UNITS:
                raise RequestError(f"unit must be one of {', '.join(OUTPUT_UNITS)}, not {unit!r}.")
            hidden = deidentify or bool(self.record.job.get("deidentify"))
            record = replace(self.record, job=self.record.job | {"deidentify": hidden})
            written = self._written(record, window, hidden, unit)
            images = [path for path in files if path.suffix.lower() != ".json"]
            notes = write_outputs(images, written, overwrite) if images else []
            self.record.outputs = record.outputs = [str(path) for path in images]
            for path in files:
                if path not in images:
                    record.write(path)
            return notes

    def show(self) -> None:
        """The image: in the notebook, or in a window until that is closed."""
        notebook = sys.modules.get("IPython")
        if notebook is not None and getattr(notebook.get_ipython(), "kernel", None) is not None:
            notebook.display.display(self)
            return
        screens = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
        if sys.platform.startswith("linux") and not any(os.environ.get(s) for s in screens):
            warnings.warn(NO_DISPLAY, stacklevel=2)  # the result is worth more than its picture
            return
        words = f"{self._run.solver.label}: {self._words()}"
        # the engine knows no window; the app, where it is installed, has one
        self._window = import_module("app.picture_window").show(self._repr_png_(), words)

    def _written(
        self,
        record: RunRecord | None = None,
        window: Window | None = None,
        deidentify: bool = False,
        unit: str = "hu",
    ) -> Written:
        last = self._run.last
        about = (record or self.record, self._dataset, window, deidentify, last, unit)
        return Written(self.problem, self.tensor, *about)

    def _words(self) -> str:
        said = [f"{name.upper()} {self.metrics[name]:.4g}" for name in ("psnr",) if self.metrics]
        seconds = self.record.timings.get("total", 0.0)
        return ", ".join([self.status, *said, f"{seconds:.1f} s"])

    def __repr__(self) -> str:
        unit = "HU" if self.problem.modality == "CT" else "input's scale"
        lines = [f"{self._run.solver.label} {self.image.shape}, {unit}: {self._words()}"]
        return "\n".join([*lines, *(f"  {sentence}" for sentence in self.verdicts.values())])

    def _repr_png_(self) -> bytes:
        row = np.concatenate(list(np.atleast_3d(self.image.T).T), axis=1)
        return windowed_png(row, self._written().shown_window(), zoom=2 if len(row) < 200 else 1)

    def _repr_html_(self) -> str:
        text = "<br>".join(escape(line) for line in repr(self).splitlines())
        curves = charts([(self._run.solver.label, self._run)])
        return f'<div class="dualscope">{STYLE}<p>{text}</p>{img(self._repr_png_())}{curves}</div>'


class Comparison:
    """Several methods on one problem: a table, a figure, and each result by its label."""

    def __init__(self, runs: Sequence[tuple[str, EngineRun]], dataset: Dataset | None) -> None:
        self._runs = list(runs)
        self.results = {label: Result(run, dataset) for label, run in runs if run.image is not None}

    def __getitem__(self, label: str) -> Result:
        return self.results[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row a method: 'solver', 'psnr', 'ssim', 'nfe', 'residual', 'seconds', 'status'."""
        return [{"solver": label} | comparison.row(run) for label, run in self._runs]

    def save(
        self, *paths: str | Path, overwrite: bool = False, window: Window | None = None
    ) -> None:
        """Write a figure (.png), the numbers (.json) or a report with both (.html)."""
        with in_keywords():
            names = [str(path) for path in paths]
            for path in check_outputs(names, overwrite, (".png", ".json", ".html")):
                comparison.write(path, [label for label, _ in self._runs], self._engine, window)

    @property
    def _engine(self) -> list[EngineRun]:
        return [run for _, run in self._runs]

    def __repr__(self) -> str:
        out = Console(file=io.StringIO(), width=110)
        out.print(comparison.table([label for label, _ in self._runs], self._engine))
        assert isinstance(out.file, io.StringIO)
        return out.file.getvalue().rstrip()

    def _repr_png_(self) -> bytes | None:
        panes = [
            (label, result.metrics.get("psnr"), result.tensor)
            for label, result in self.results.items()
        ]
        return comparison_figure(self._engine[0].problem, panes, None) if panes else None

    def _repr_html_(self) -> str:
        messages = [run.record.message for run in self._engine]
        figure = self._repr_png_()
        shown = "" if figure is None else img(figure)
        parts = (metrics_table(self._runs, messages), shown, charts(self._runs))
        return f'<div class="dualscope">{STYLE.replace("display:none", "")}{"".join(parts)}</div>'
