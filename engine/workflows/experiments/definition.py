"""What an experiment is: scans, methods and the paper's figures, nothing that computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# (scan, method) -> the paper's figures by name, such as 'psnr'
Figures = Mapping[tuple[str, str], Mapping[str, float]]
Measure = Literal["run", "one iteration", "side by side"]
Drawing = Literal["gallery", "sweep", "history", "spectra", "rounds"]


@dataclass(frozen=True)
class Axis:
    """Where a scan or a method stands along a sweep."""

    label: str
    at: float


@dataclass(frozen=True)
class Scan:
    """How the images are measured, and the preset of settings that goes with it."""

    label: str
    modality: str | None  # 'CT', 'MR', or None for whichever the inputs are
    acquisition: Mapping[str, Any]
    preset: str | None = None
    axis: Axis | None = None
    series: str = ""  # scans of one series share a chart
    noise_unknown: bool = False  # the methods are told only what the measurement says of its noise


@dataclass(frozen=True)
class Method:
    """A solver with its changes and its budget.

    ``variant`` is the text that ``dualscope compare --solvers`` takes. ``rho_times`` sets
    rho = W / sigma^2 with W this many times the paper's limited-angle value, which depends on
    the scan.
    """

    label: str
    variant: str
    nfe: int | None = None  # None: the method calls no denoiser
    axis: Axis | None = None
    curve: str = ""  # methods of one curve differ along the axis only
    rho_times: float | None = None


@dataclass(frozen=True)
class Experiment:
    """``settings`` go to every method that has them; ``count`` slices are taken by default.

    ``varies_nfe``: the budgets are part of the question, so that none may replace them.
    """

    name: str
    question: str
    scans: tuple[Scan, ...]
    methods: tuple[Method, ...]
    drawings: tuple[Drawing, ...]
    measure: Measure = "run"
    count: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    paper: Figures = field(default_factory=dict)
    varies_nfe: bool = False
