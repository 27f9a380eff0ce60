"""SITCOM (Alkhouri et al. 2024) in sigma form: optimise the denoiser's input by back-propagation.

At every noise level the input v of the denoiser is moved by a few Adam steps until the denoised
image D(v; sigma) fits the measurement; that image is noised to the next level. The last D(v) is
the answer: no iterate is chosen by looking at the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from engine.physics.problem import Problem
from engine.physics.random import Generators, normal_like
from engine.physics.system_matrix import available_memory_bytes
from engine.priors.prior import Prior
from engine.solvers.diagnostics import Guard, Stopwatch, sampling_iteration
from engine.solvers.iteration import Iteration
from engine.solvers.solver import Resume, ScheduleSettings, Solver, karras_sigmas
from engine.spec.errors import RequestError
from engine.spec.settings import setting

# On top of what is counted, the backward pass holds a few maps of gradients at a time; peaks
# measured with the bundled priors are 1.1 to 1.2 times the count.
HEADROOM = 1.25


def backward_bytes(prior: Prior, x: Tensor, sigma: float) -> int:
    """Memory that the graph of D(x; sigma) would keep, counted without keeping it.

    One denoiser call, outside of the method's budget, in which every tensor is dropped as soon
    as its size is noted. What several operations keep is counted once for each.
    """
    total = 0

    def note(tensor: Tensor) -> None:
        nonlocal total
        if tensor.requires_grad:  # parameters are there anyway
            total += tensor.numel() * tensor.element_size()

    def refuse(_: None) -> Tensor:
        raise AssertionError("the counted graph keeps nothing to go back through")

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, refuse):
        image = prior(x.detach().clone().requires_grad_(), sigma)
    if not image.requires_grad:
        raise RequestError(f"The prior {prior.info.name} cannot be differentiated.")
    return total


def free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return available_memory_bytes()


def check_memory(prior: Prior, x: Tensor, sigma: float, allowed_gb: float | None) -> None:
    """Refuse a backward pass that would not fit, and say what would."""
    needed = HEADROOM * backward_bytes(prior, x, sigma)
    allowed = free_bytes(x.device) if allowed_gb is None else allowed_gb * 1e9
    if needed <= allowed:
        return
    height, width = x.shape[-2:]
    share = (allowed / needed) ** 0.5
    raise RequestError(
        f"Back-propagation through this prior needs {needed / 1e9:.2g} GB for one slice of "
        f"{height} x {width} and {allowed / 1e9:.2g} GB are "
        f"{'free' if allowed_gb is None else 'allowed'}: slices up to about "
        f"{int(share * height)} x {int(share * width)} would fit, or a smaller prior."
    )


# How far Adam may move a pixel at one noise level, in the units of a variance-preserving model:
# ten steps of the published 0.02 and 0.004. Fewer steps are longer, so that a small budget
# still reaches the measurement.
REACH = {"CT": 0.2, "MR": 0.04}


@dataclass(frozen=True)
class SitcomSettings(ScheduleSettings):
    """A budget of ``nfe`` calls buys nfe / (inner_steps + 1) noise levels."""

    inner_steps: int = setting(
        4,
        "Adam steps per noise level; each level costs one denoiser call more than this, "
        "so that fewer levels fit into the same NFE.",
        low=1,
        high=10_000,
        label="Adam steps per level",
    )
    learning_rate: float | None = setting(
        None,
        "Step of Adam in units of a variance-preserving model; it grows with the noise level "
        "by sqrt(1 + sigma^2). By default 0.2 (CT) or 0.04 (MR) divided by the inner steps.",
        above=0,
        label="Learning rate",
    )
    proximity: float = setting(
        0.0,
        "Penalty on moving the denoiser's input: larger stays nearer to the noisy image.",
        low=0,
        label="Proximity penalty",
    )
    stop_at_noise: bool = setting(
        True,
        "End when the residual is as small as the measurement noise, if that is known: going on "
        "would fit the noise. With SITCOM this ends the steps of a noise level.",
        before=False,
        label="Stop at the noise",
    )
    memory_gb: float | None = setting(
        None,
        "Memory the backward pass may take; by default what is free.",
        above=0,
        unit="GB",
        label="Memory",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nfe <= self.inner_steps:
            raise RequestError(
                f"⟦nfe⟧ {self.nfe} is too few for ⟦inner_steps⟧ {self.inner_steps}: "
                f"one noise level takes {self.inner_steps + 1}."
            )

    def sigmas(self, problem: Problem | None = None) -> list[float]:
        levels = self.nfe // (self.inner_steps + 1)
        return karras_sigmas(levels, self.sigma_max, self.last_level(), self.schedule_rho)


class Sitcom(Solver):
    name, label = "sitcom", "SITCOM"
    help = "Moves the denoiser's input, through the network, until its output fits."
    place, colour, dash = 60, "#F0E442", (2, 2)
    budgets: ClassVar = {  # 50 levels, one call more each than steps
        "recommended": {"nfe": 550, "inner_steps": 10},
        "matched-50": {"nfe": 50, "inner_steps": 4},
    }
    settings_class = SitcomSettings

    def iterate(  # type: ignore[override]
        self,
        problem: Problem,
        prior: Prior,
        settings: SitcomSettings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        levels = settings.sigmas()
        sigmas = [*levels, 0.0]
        if resume is None:
            done, clean = 0, settings.starting_image(problem, generator)
            noisy = clean + sigmas[0] * normal_like(clean, generator)
            calls = torch.zeros(len(clean), dtype=torch.int64)
        else:
            done, clean, noisy = resume.k, resume.state["x"], resume.state["noisy"]
            calls = resume.state["calls"]
        check_memory(prior, noisy[:1], sigmas[0], settings.memory_gb)
        fit, guard = Fit(problem, settings), Guard(noisy)

        for k in range(done, len(levels)):
            sigma, clock = sigmas[k], Stopwatch(noisy.device)
            seen, clean_last = noisy, clean
            z, clean, used = fit(settings.seen(prior, k), noisy, sigma, clock)
            calls = calls + used.to(calls.device)
            noisy = clean + sigmas[k + 1] * normal_like(clean, generator)
            guard.check(k + 1, denoiser=z, optimisation=clean, renoising=noisy)
            yield sampling_iteration(
                problem,
                k=k + 1,
                total=len(levels),
                sigma=sigma,
                z=z,
                x=clean,
                state={"x": clean, "noisy": noisy, "calls": calls},
                seconds=clock.seconds,
                nfe=int(calls.max()),
                v=seen,
                v_tilde=seen,
                centre=clean_last,
            )


class Adam:
    """Kingma and Ba 2015, for one tensor; torch's own takes seconds to load its compiler."""

    def __init__(self, rate: float, beta1: float = 0.9, beta2: float = 0.999) -> None:
        self.rate, self.beta1, self.beta2 = rate, beta1, beta2
        self.steps = 0
        self.first: Tensor | float = 0.0
        self.second: Tensor | float = 0.0

    def step(self, gradient: Tensor) -> Tensor:
        """What to subtract."""
        self.steps += 1
        self.first = self.beta1 * self.first + (1 - self.beta1) * gradient
        self.second = self.beta2 * self.second + (1 - self.beta2) * gradient.square()
        mean = self.first / (1 - self.beta1**self.steps)
        square = self.second / (1 - self.beta2**self.steps)
        return self.rate * mean / (square.sqrt() + 1e-8)


class Fit:
    """The inner optimisation of one problem, slice by slice.

    One at a time bounds the memory of the backward pass and keeps a slice independent of its
    neighbours.
    """

    def __init__(self, problem: Problem, settings: SitcomSettings) -> None:
        self.problem, self.settings = problem, settings
        self.rate = settings.learning_rate or REACH[problem.modality] / settings.inner_steps
        count = len(problem.measurement)
        self.operators = [problem.operator.of_slice(i) for i in range(count)]
        noise = torch.as_tensor(problem.noise_sigma).cpu().double().reshape(-1).expand(count)
        self.enough = [0.0] * count
        if settings.stop_at_noise and bool((noise > 0).any()):
            self.enough = [float(sd) ** 2 * self._measured(i) for i, sd in enumerate(noise)]

    def _measured(self, i: int) -> int:
        """How many numbers of a measurement can depend on the image: an MRI mask hides some."""
        operator, y = self.operators[i], self.problem.measurement
        probe = torch.randn((1, *operator.image_shape), generator=torch.Generator().manual_seed(0))
        return int((operator.forward(probe.to(y)) != 0).sum())

    def __call__(
        self, prior: Prior, noisy: Tensor, sigma: float, clock: Stopwatch
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The denoised image before and after fitting, and the denoiser calls of each slice."""
        parts = [self._one(prior, noisy[i : i + 1], sigma, i, clock) for i in range(len(noisy))]
        before, after, calls = zip(*parts, strict=True)
        return torch.cat(before), torch.cat(after), torch.tensor(calls)

    def _one(
        self, prior: Prior, start: Tensor, sigma: float, i: int, clock: Stopwatch
    ) -> tuple[Tensor, Tensor, int]:
        settings, v, before = self.settings, start, start
        adam = Adam(self.rate * (1 + sigma**2) ** 0.5)
        for step in range(settings.inner_steps):
            with clock("denoiser"), torch.enable_grad():  # a run switches gradients off
                v = v.detach().requires_grad_()
                z = prior(v, sigma)
            before = z.detach() if step == 0 else before
            with clock("data"):
                misfit, slope = self._misfit(z.detach(), i)
            if misfit < self.enough[i]:
                return before, z.detach(), step + 1
            with clock("denoiser"):
                (gradient,) = torch.autograd.grad(z, v, slope)
            v = v.detach()
            v = v - adam.step(gradient + 2 * settings.proximity * (v - start))
        with clock("denoiser"):
            after = prior(v, sigma)
        return before, after, settings.inner_steps + 1

    def _misfit(self, z: Tensor, i: int) -> tuple[float, Tensor]:
        """||A z - y||^2_W of slice i, and its gradient."""
        operator, weights = self.operators[i], self.problem.weights
        residual = operator.forward(z) - self.problem.measurement[i : i + 1]
        weighted = residual if weights is None else weights[i : i + 1] * residual
        return float((weighted * residual).sum()), 2 * operator.adjoint(weighted)
