"""Runs the cases of a plan that are not yet done, and keeps every one as soon as it is."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.data.dataset import Dataset
from engine.data.kspace.measured import with_noise_of_samples
from engine.data.sinogram.line_noise import with_noise_of_rays
from engine.export.outputs import default_window, physical_array
from engine.export.picture import windowed_png
from engine.files.atomic import write_bytes_atomic
from engine.physics.device import choose_device
from engine.physics.problem import Problem
from engine.priors.catalogue import load_prior
from engine.runs.prepare import Prepared, prepare, versions
from engine.solvers.presets import paper_rho_weight
from engine.spec.control import RunControl
from engine.spec.errors import RequestError
from engine.workflows.experiments.figures import write_figures
from engine.workflows.experiments.measure import Tick, one_iteration, several_runs, whole_run
from engine.workflows.experiments.plan import Case, Plan, Source, Sources, groups, make_plan
from engine.workflows.experiments.request import Request, is_supervised
from engine.workflows.experiments.store import Row, Store
from engine.workflows.experiments.summary import side_by_side, summarise

# (case, share of it that is done, a word about it)
Progress = Callable[[Case, float, str], None]


def identity(request: Request, sources: Sources, plan: Plan) -> dict[str, Any]:
    """All that the numbers depend on: a file of results belongs to exactly one of these."""
    used = {case.source.input: sources.dataset(case.source.input) for case in plan.cases}
    priors = {m: load_prior(request.prior, m).info.to_dict() for m in plan.modalities}
    if any(is_supervised(method) for case in plan.cases for method in case.methods):
        priors["supervised"] = load_prior(request.network, "CT", supervised=True).info.to_dict()
    return {
        "settings": request.to_dict() | {"device": str(choose_device(request.device))},
        "input_sha256": {name: dataset.sha256() for name, dataset in used.items()},
        "priors": priors,
        "versions": versions(),
    }


def open_runner(request: Request, folder: Path, overwrite: bool = False) -> Runner:
    """Everything read, planned and found fit; what an earlier start has done is kept."""
    sources = Sources(request)
    plan = make_plan(request, sources)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"Cannot make the folder {folder}: {error.strerror}.") from error
    experiment = request.experiment
    path = folder / f"{experiment.name}.json"
    store = Store(path, identity(request, sources, plan), overwrite)
    store.about = {"question": experiment.question, "complete": False, "left_out": plan.left_out}
    return Runner(request, sources, plan, store, folder)


class Runner:
    """One experiment; ``folder`` also receives the pictures of the first slice.

    ``kept`` is called after every case that is on the disk.
    """

    def __init__(
        self, request: Request, sources: Sources, plan: Plan, store: Store, folder: Path
    ) -> None:
        self.request, self.sources, self.plan, self.store = request, sources, plan, store
        self.folder = folder
        self.pictures = folder / f"{request.experiment.name}-images"
        self.kept: Callable[[], None] = lambda: None
        self._problem: tuple[str, list[Source], Problem] | None = None

    @staticmethod
    def key(case: Case) -> str:
        who = " + ".join(method.label for method in case.methods)
        return f"{case.scan.label} | {who} | {case.source.input} | {case.source.number}"

    def remaining(self) -> list[Case]:
        return [case for case in self.plan.cases if self.key(case) not in self.store.rows]

    def run(self, control: RunControl, progress: Progress) -> None:
        """Until all is done or ``control`` is cancelled; a case cut short leaves nothing."""
        for cases in groups(self.remaining(), self.request):
            made = self._together(cases, control, progress) if len(cases) > 1 else {}
            for case in cases:
                if control.cancelled:
                    return
                rows = made.get(self.key(case)) or self._rows(
                    case,
                    control,
                    lambda share, word, c=case: progress(c, share, word),  # type: ignore[misc]
                )
                if control.cancelled or rows is None:
                    return
                self.store.add(self.key(case), [self._named(case, row) for row in rows])
                self.kept()

    def _together(
        self, cases: list[Case], control: RunControl, progress: Progress
    ) -> dict[str, list[Row]]:
        """The rows of slices that one run makes; none if it fails, so that each says why."""

        def tick(share: float, word: str) -> None:
            done = share * len(cases)
            at = min(int(done), len(cases) - 1)
            progress(cases[at], done - at, word)

        prepared = self.prepared(cases, 0)
        rows = {}
        for case, (row, image) in zip(cases, several_runs(prepared, control, tick), strict=False):
            alone = row | {"job": row["job"] | {"slices": str(case.source.number)}}
            problem = prepared.problem.of_slice(case.source.number)
            rows[self.key(case)] = [self._finished(case, problem, alone, image)]
        return rows

    def conclude(self) -> tuple[list[Row], list[Path]]:
        """The table and the files of what is done, whether that is all or not."""
        table = summarise(self.request.experiment, self.store.rows)
        self.store.about |= {"complete": not self.remaining(), "table": table}
        self.store.write()
        figures = write_figures(
            self.request.experiment, self.store.rows, self.folder, self.pictures
        )
        return table, [self.store.path, *figures]

    def _rows(self, case: Case, control: RunControl, tick: Tick) -> list[Row] | None:
        prepared = [self.prepared([case], number) for number in range(len(case.methods))]
        if self.request.experiment.measure == "side by side":
            rows = side_by_side(prepared, control, tick)
            names = [method.label for method in case.methods]
            return (
                None
                if rows is None
                else [{"method": name, **row} for name, row in zip(names, rows, strict=True)]
            )
        once = self.request.experiment.measure == "one iteration"
        row, image = (one_iteration if once else whole_run)(prepared[0], control, tick)
        kept = None if control.cancelled else image
        return [self._finished(case, prepared[0].problem, row, kept)]

    def _finished(self, case: Case, problem: Problem, row: Row, image: Tensor | None) -> Row:
        """With its name, and with a picture of the first slice if there is to be one."""
        row = {"method": case.methods[0].label, **row}
        if image is not None and float(torch.as_tensor(problem.noise_sigma).max()) > 0:
            row["chi2"] = float(problem.reduced_chi2(problem.residual(image)))
            row["noise_found"] = problem.provenance.get("noise_found")
        wanted = case.number == 0 and "gallery" in self.request.experiment.drawings
        if wanted and image is not None:
            row |= self._keep_pictures(case, problem, image)
        return row

    def _named(self, case: Case, row: Row) -> Row:
        source = case.source
        return {"scan": case.scan.label, "input": source.input, "slice": source.number, **row}

    def prepared(self, cases: list[Case], number: int) -> Prepared:
        """A method of some slices, ready to run; the problem is shared with the methods before."""
        scan, method, source = cases[0].scan, cases[0].methods[number], cases[0].source
        sources = [case.source for case in cases]
        dataset: Dataset = self.sources.dataset(source.input)
        job = self.request.job(scan, method, source.input, source.number)
        problem = None
        if self._problem is not None and self._problem[:2] == (scan.label, sources):
            problem = self._problem[2]
        numbers = [source.number for source in sources]
        ready = prepare(job, dataset, problem, numbers=numbers)
        if scan.noise_unknown and problem is None:
            find = with_noise_of_rays if ready.problem.modality == "CT" else with_noise_of_samples
            ready = prepare(job, dataset, find(ready.problem))
        self._problem = (scan.label, sources, ready.problem)
        if method.rho_times is None:
            return ready
        weight = method.rho_times * paper_rho_weight(ready.problem)
        changed = dataclasses.replace(job, settings=job.settings | {"rho_over_sigma2": weight})
        return prepare(changed, dataset, ready.problem)

    def _keep_pictures(self, case: Case, problem: Problem, image: Tensor) -> dict[str, str]:
        """Names of the picture and of the reference's, through one window."""
        self.pictures.mkdir(exist_ok=True)
        values = physical_array(problem, image)[0]
        names = {"picture": f"{_slug(case.scan.label)}--{_slug(case.methods[0].label)}.png"}
        window = default_window(problem, values)
        if problem.reference is not None:
            truth = physical_array(problem, problem.reference)[0]
            window = default_window(problem, truth)
            names["reference"] = f"{_slug(case.scan.label)}--reference.png"
            write_bytes_atomic(self.pictures / names["reference"], windowed_png(truth, window))
        write_bytes_atomic(self.pictures / names["picture"], windowed_png(values, window))
        return names


def _slug(label: str) -> str:
    """A label as a file name: 'DC-PnPDP, 50 NFE' -> 'dc-pnpdp-50-nfe'."""
    return "-".join("".join(c if c.isalnum() else " " for c in label.lower()).split())


class Pace:
    """Work is counted in denoiser calls; the speed is that of the cases made since the start."""

    def __init__(self, runner: Runner) -> None:
        waiting = runner.remaining()
        ends = itertools.accumulate(case.work for case in waiting)
        self.total = sum(case.work for case in waiting)
        self.earlier = sum(case.work for case in runner.plan.cases) - self.total
        self._key = runner.key
        self._before = {
            runner.key(case): end - case.work for case, end in zip(waiting, ends, strict=True)
        }
        self._started = time.monotonic()

    def done(self, case: Case, share: float) -> float:
        """The work that is done when this share of a case is."""
        return self._before[self._key(case)] + share * case.work

    def fraction(self, done: float) -> float:
        """Of the whole experiment, with what an earlier start has done."""
        return (self.earlier + done) / (self.earlier + self.total)

    def seconds_left(self, done: float) -> float | None:
        return (time.monotonic() - self._started) * (self.total / done - 1) if done else None
