"""Conjugate gradients for a batch of independent systems."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

LinearMap = Callable[[Tensor], Tensor]

CHECK_EVERY = 5  # steps between looks whether every sample has converged


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Per-sample inner product, shaped ``[B, 1, 1, 1]``.

    Complex images are real channel pairs, so this is the real part of the conjugated
    inner product, which is all that CG on a Hermitian system needs.
    """
    return (a * b).flatten(1).sum(1).view(-1, 1, 1, 1)


class Lookout:
    """Tells when no sample moves any more, without waiting for the device.

    A GPU's answer is fetched while it goes on, and read at a later look: the steps too many
    change nothing, since samples that have converged are frozen.
    """

    def __init__(self) -> None:
        self._asked: tuple[Tensor, torch.cuda.Event] | None = None

    def all_still(self, active: Tensor) -> bool:
        if active.device.type == "cpu":
            return not active.numpy().any()
        if active.device.type != "cuda":
            return active.device.type != "meta" and not bool(active.any())
        still = False
        if self._asked is not None:
            answer, event = self._asked
            if not event.query():
                return False
            still = not bool(answer)  # in the host's memory
        answer = torch.empty((), dtype=torch.bool, pin_memory=True)
        answer.copy_(active.any(), non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        self._asked = answer, event
        return still


class ConjugateGradients:
    """CG on M x = rhs for symmetric positive definite M, every sample on its own.

    A sample whose residual falls below ``tolerance * ||rhs||`` (or is exactly solved) is
    frozen, so its result does not depend on the other samples in the batch.
    ``state`` holds all that is needed to go on later.
    """

    def __init__(
        self,
        apply: LinearMap,
        rhs: Tensor,
        start: Tensor,
        tolerance: float = 0.0,
        precondition: LinearMap | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> None:
        self.apply = apply
        self.precondition = precondition or (lambda r: r)
        self.limit = tolerance**2 * dot(rhs, rhs)
        if state is None:
            r = rhs - apply(start)
            s = self.precondition(r)
            state = {"x": start, "r": r, "p": s, "rs": dot(r, s)}
        self.x, self.r, self.p, self.rs = (state[name] for name in ("x", "r", "p", "rs"))

    @property
    def state(self) -> dict[str, Tensor]:
        return {"x": self.x, "r": self.r, "p": self.p, "rs": self.rs}

    def active(self) -> Tensor:
        """Which samples still move."""
        return (dot(self.r, self.r) > self.limit) & (self.rs > 0)

    def step(self) -> None:
        active, zero = self.active(), torch.zeros_like(self.rs)
        q = self.apply(self.p)
        curvature = dot(self.p, q)
        alpha = torch.where(active & (curvature > 0), self.rs / curvature, zero)
        self.x = self.x + alpha * self.p
        self.r = self.r - alpha * q
        s = self.precondition(self.r)
        rs = dot(self.r, s)
        beta = torch.where(active, rs / self.rs, zero)
        self.p = s + beta * self.p
        self.rs = torch.where(active, rs, self.rs)

    def run(self, iterations: int) -> Tensor:
        """At most so many steps."""
        lookout = Lookout()
        for i in range(iterations):
            if i % CHECK_EVERY == 0 and lookout.all_still(self.active()):
                break
            self.step()
        return self.x


def conjugate_gradients(
    apply: LinearMap,
    rhs: Tensor,
    start: Tensor,
    iterations: int,
    tolerance: float = 0.0,
    precondition: LinearMap | None = None,
) -> Tensor:
    """At most ``iterations`` steps of CG from ``start``."""
    return ConjugateGradients(apply, rhs, start, tolerance, precondition).run(iterations)
