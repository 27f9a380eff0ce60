"""Nothing where no coil sees anything.

Where all coil maps are zero the measurement says nothing of the image, and a prior alone would
paint there. Classical methods leave zero; a prior followed by the projection onto images that are
zero there does so, too. Every solver then stays at zero outside: a data step changes nothing
there, and a dual variable that starts at zero has nothing to gather. (Samples of DAPS keep the
small noise of their last Langevin step.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.physics.operator import Operator
from engine.priors.prior import Prior


class SupportedPrior(Prior):
    """P D(x), with P the projection onto images that are zero where ``support`` is."""

    def __init__(self, prior: Prior, support: Tensor) -> None:
        self.prior, self.support, self.info = prior, support, prior.info

    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        seen = self.support.to(x)
        if len(seen) not in (1, len(x)):  # more samples than slices: keep what any slice has
            seen = seen.amax(dim=0, keepdim=True)
        return self.prior(x, sigma) * seen

    def anywhere(self) -> Prior:
        return self.prior.anywhere()

    def to(self, device: torch.device | str) -> SupportedPrior:
        return SupportedPrior(self.prior.to(device), self.support.to(device))


def with_support(prior: Prior, operator: Operator) -> Prior:
    """The prior, held at zero where no coil sees anything of the image.

    Not outside the field of view of CT: a body may be there, and zero is not air there.
    """
    support = operator.support() if operator.geometry is None else None
    return prior if support is None else SupportedPrior(prior, support.to(torch.float32))
