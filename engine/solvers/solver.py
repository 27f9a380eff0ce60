"""What a solver is, and the settings that all diffusion-prior solvers share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from engine.physics.problem import Problem
from engine.physics.random import Generators, normal_like
from engine.priors.adapted import augmented
from engine.priors.prior import Prior
from engine.solvers.data_step import DataStepSettings
from engine.solvers.discrepancy import pixel_noise
from engine.solvers.iteration import Iteration
from engine.spec.errors import RequestError
from engine.spec.settings import Settings, setting


def karras_sigmas(steps: int, sigma_max: float, sigma_min: float, rho: float = 7.0) -> list[float]:
    """``steps`` levels, first sigma_max, last sigma_min; dense where the noise is low."""
    if steps == 1:
        return [float(sigma_max)]
    high, low = sigma_max ** (1 / rho), sigma_min ** (1 / rho)
    return [(high + i / (steps - 1) * (low - high)) ** rho for i in range(steps)]


LAST_LEVEL = 0.002
WORTH = 1 / 3  # of a pixel's noise


@dataclass(frozen=True)
class Resume:
    """Where a run stood: iterations done and the tensors of ``Iteration.state``."""

    k: int
    state: dict[str, Tensor]


# Denoiser calls: those that a method's authors recommend, and the same for all methods.
BUDGETS = ("recommended", "matched-50")
USUAL_BUDGETS = {"recommended": {"nfe": 100}, "matched-50": {"nfe": 50}}


class Solver(ABC):
    """A reconstruction method: a generator of Iterations that does not know CT from MRI."""

    name: ClassVar[str]
    label: ClassVar[str]
    help: ClassVar[str] = ""  # one sentence
    settings_class: ClassVar[type[Settings]]
    needs_prior: ClassVar[bool] = True
    supervised: ClassVar[bool] = False  # its prior is a network for one scan, not a denoiser
    modalities: ClassVar[tuple[str, ...]] = ("CT", "MR")
    place: ClassVar[int] = 100  # in a list of solvers; those of one place stand by their names
    # How it is drawn, in Okabe and Ito's colours, which colour-blind readers can tell apart; the
    # dashes are in widths of the pen. Without a colour the window takes one that is its own.
    colour: ClassVar[str] = ""
    dash: ClassVar[tuple[float, ...]] = ()
    budgets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # its settings in each of BUDGETS

    @abstractmethod
    def iterate(
        self,
        problem: Problem,
        prior: Prior | None,
        settings: Settings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        """Yield after every outer iteration; between two yields the run may be stopped."""


@dataclass(frozen=True)
class ScheduleSettings(Settings):
    """The noise schedule and the start, common to all methods with a diffusion prior."""

    shown_first = ("nfe", "rho", "rho_over_sigma2", "cg_iterations", "sigma_max", "sigma_min")

    nfe: int = setting(
        50,
        "Denoiser calls: more steps, finer result, longer run.",
        low=1,
        high=100_000,
        label="NFE (denoiser calls)",
    )
    sigma_max: float = setting(
        2.0,
        "First noise level: larger forgets more of the starting image.",
        above=0,
        high=1000,
        label="sigma, first",
    )
    sigma_min: float | None = setting(
        None,
        "Last noise level: smaller keeps more of the finest measured detail. Without a number "
        "0.002; DC-PnPDP and DiffPIR end sooner where the noise of the measurement is known: "
        "when the prior outweighs the measurement tenfold.",
        above=0,
        high=1000,
        before=LAST_LEVEL,
        label="sigma, last",
    )
    schedule_rho: float = setting(
        7.0,
        "Karras exponent: larger spends more steps at low noise.",
        low=1,
        high=100,
        label="Karras exponent",
    )
    init: str = setting(
        "pseudo-inverse",
        "Starting image: FBP or zero-filled, Gaussian noise of SD sigma_max, or zeros.",
        choices=("pseudo-inverse", "gaussian", "zeros"),
        label="Starting image",
    )
    clip_init: bool = setting(
        False, "Clip the starting image to [-1, 1] in the prior's units.", label="Clip the start"
    )
    symmetry: bool = setting(
        True,
        "Show the denoiser the image mirrored and shifted by a few pixels, differently in every "
        "iteration, so that its errors average out. Priors that do not know mirrored images "
        "see it as it is.",
        label="Mirror and shift",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma_min is not None and self.sigma_min > self.sigma_max:
            raise RequestError(
                f"⟦sigma_min⟧ ({self.sigma_min:g}) must not exceed ⟦sigma_max⟧ "
                f"({self.sigma_max:g})."
            )

    def last_level(self, problem: Problem | None = None) -> float:
        """The number that was given, or the smallest that a scan without noise is worth."""
        return min(LAST_LEVEL, self.sigma_max) if self.sigma_min is None else self.sigma_min

    def sigmas(self, problem: Problem | None = None) -> list[float]:
        last = self.last_level(problem)
        return karras_sigmas(self.nfe, self.sigma_max, last, self.schedule_rho)

    def seen(self, prior: Prior, k: int) -> Prior:
        """The prior as iteration ``k`` asks it."""
        return augmented(prior, k) if self.symmetry and prior.info.symmetric else prior

    def starting_image(self, problem: Problem, generator: Generators) -> Tensor:
        image = problem.operator.pseudo_inverse(problem.measurement)
        if self.init == "zeros":
            image = torch.zeros_like(image)
        elif self.init == "gaussian":
            image = self.sigma_max * normal_like(image, generator)
        return image.clamp(-1, 1) if self.clip_init else image


@dataclass(frozen=True)
class DiffusionSettings(ScheduleSettings, DataStepSettings):
    """Of the methods that also take the shared data step."""

    paired_below: float = setting(
        0.5,
        "Below this noise level every noise is added twice, in two iterations, the second time "
        "with its sign turned: what the denoiser leaves of the first, the second takes away. "
        "Zero always adds fresh noise.",
        low=0,
        high=1000,
        label="Noise in pairs below",
    )

    def last_level(self, problem: Problem | None = None) -> float:
        """A third of what the noise leaves in a pixel: there rho is nine times A^T W A's mean.

        In powers of two, so that slices computed together mostly have the level of their own;
        where they do not, all have that of the least noisy.
        """
        level = super().last_level(problem)
        if problem is None or self.sigma_min is not None or not self.follows_noise(problem):
            return level
        worth = WORTH * float(pixel_noise(problem).min())
        if worth > level:
            level *= 2 ** round(math.log2(worth / level))
        return min(level, self.sigma_max)

    def noise(
        self, k: int, sigma: float, x: Tensor, generator: Generators, last: Tensor | None
    ) -> Tensor:
        """Standard normal noise number ``k``, for level ``sigma``; ``last`` is the one before."""
        if k % 2 == 1 and sigma < self.paired_below and last is not None:
            return -last
        return normal_like(x, generator)
