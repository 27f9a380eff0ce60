"""The cases of an experiment in the order they are run, and what had to be left out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.data.dataset import Dataset
from engine.data.source import open_input, parse_slices
from engine.priors.catalogue import KINDS, find_prior, list_supervised
from engine.solvers.catalogue import SOLVERS, find_solver
from engine.solvers.solver import Solver
from engine.spec.errors import RequestError, Sentence, marked
from engine.spec.input_options import InputOptions
from engine.workflows.experiments.definition import Method, Scan
from engine.workflows.experiments.request import Request, is_supervised


@dataclass(frozen=True)
class Case:
    """What is run and saved as a whole: one slice, by one method or by all side by side."""

    scan: Scan
    methods: tuple[Method, ...]
    source: Source
    number: int  # of the slice among those chosen
    work: int  # denoiser calls, for the time that is left

    @property
    def label(self) -> str:
        who = self.methods[0].label if len(self.methods) == 1 else "all methods"
        return f"{self.scan.label}, {who}, slice {self.number + 1}"


@dataclass(frozen=True)
class Plan:
    cases: list[Case]
    modalities: list[str]
    left_out: list[str]  # sentences


def make_plan(request: Request, sources: Sources) -> Plan:
    """Cases that share a problem, or are computed together, follow each other."""
    left_out: dict[str, None] = {}  # in order, each sentence once
    cases: list[Case] = []
    modalities: dict[str, None] = {}
    methods = _present(request, left_out)
    for scan in request.scans:
        modality = sources.modality(scan.modality)
        chosen = sources.chosen(modality)
        fitting = tuple(m for m in methods if modality in _solver(m).modalities)
        if not chosen:
            left_out[f"{scan.label} is left out: no input is {modality} data."] = None
        elif not _prior_fits(request.prior, modality):
            reason = f"{scan.label} is left out: ⟦prior⟧ is not for {modality} images."
            left_out[Sentence(reason)] = None
        else:
            modalities[modality] = None
            of_scan: list[Case] = []
            for number, source in enumerate(chosen):
                of_scan += _cases_of(request, scan, fitting, source, number)
            if request.together > 1:
                # method by method, the quick ones first: the table is soon worth reading
                of_scan.sort(key=lambda case: (case.work, methods.index(case.methods[0])))
            cases += of_scan
    if not cases:
        raise RequestError(f"Nothing to do: {' '.join(map(marked, left_out))}")
    return Plan(cases, list(modalities), list(left_out))


def _cases_of(
    request: Request, scan: Scan, methods: tuple[Method, ...], source: Source, number: int
) -> list[Case]:
    for method in methods:
        request.job(scan, method, source.input, source.number)  # complain before long work
    together = request.experiment.measure == "side by side"
    groups = [methods] if together else [(method,) for method in methods]
    return [
        Case(scan, group, source, number, sum(request.budget(m) or 1 for m in group))
        for group in groups
        if group
    ]


def groups(cases: Sequence[Case], request: Request) -> Iterator[list[Case]]:
    """Cases that one run can make: neighbours that differ in the slice alone."""
    alone = request.experiment.measure != "run"
    for _, alike in itertools.groupby(cases, lambda c: (c.scan, c.methods, c.source.input)):
        while some := list(itertools.islice(alike, 1 if alone else request.together)):
            yield some


def _present(request: Request, left_out: dict[str, None]) -> list[Method]:
    present = []
    for method in request.experiment.methods:
        name = method.variant.split(":")[0]
        if name not in SOLVERS:
            left_out[f"{method.label} is left out: there is no solver '{name}'."] = None
        elif is_supervised(method) and request.network == "auto" and not list_supervised("CT"):
            reason = (
                f"{method.label} is left out: there is no network in the box. Train one with "
                "'dualscope prior train --supervised' and name it with ⟦network⟧."
            )
            left_out[Sentence(reason)] = None
        else:
            present.append(method)
    return present


def _solver(method: Method) -> Solver:
    return find_solver(method.variant.split(":")[0])


def _prior_fits(name: str, modality: str) -> bool:
    if name == "auto":
        return True
    return find_prior(name, modality).info.intensity.kind == KINDS[modality]


# Other phantoms than the demonstration's and those of the bundled priors' training.
FIRST_PHANTOM = 101
DEMOS = {"CT": "demo:ct", "MR": "demo:mri"}


@dataclass(frozen=True)
class Source:
    """One slice of an input."""

    input: str
    number: int


class Sources:
    """Opens each input once; phantoms are made for the modalities that are asked for."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.datasets: dict[str, Dataset] = {}
        self._given = [(name, self.dataset(name)) for name in request.inputs]

    def dataset(self, name: str) -> Dataset:
        if name not in self.datasets:
            self.datasets[name] = open_input(name, InputOptions.from_dict(self.request.options))
        return self.datasets[name]

    def modality(self, wanted: str | None) -> str:
        """The modality of a scan that takes any: that of the first input, or CT."""
        if wanted is not None:
            return wanted
        return self._given[0][1].modality if self._given else "CT"

    def chosen(self, modality: str) -> list[Source]:
        """``slice_count`` slices, spread evenly over what was given; none if nothing fits."""
        count = self.request.slice_count
        if not self._given:
            seeds = range(FIRST_PHANTOM, FIRST_PHANTOM + count)
            return [Source(f"{DEMOS[modality]}:{seed}", 0) for seed in seeds]
        offered = [
            Source(name, number)
            for name, dataset in self._given
            if dataset.modality == modality
            for number in parse_slices(self.request.slices, len(dataset))
        ]
        if count >= len(offered):
            return offered
        return [offered[(2 * i + 1) * len(offered) // (2 * count)] for i in range(count)]
