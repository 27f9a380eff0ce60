"""What a metric profile is: a domain to compare in, and the formulas to compare with."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from engine.physics.operator import Operator
from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError

log = logging.getLogger(__name__)

NETWORK = "squeeze"  # the published CT evaluation's choice
_AT_ONCE = 8  # images through the network together, to bound the memory


def lpips_available() -> bool:
    """Whether the package lpips and its backbone are on this machine.

    The package fetches a missing backbone from the network by itself, which nobody asked for
    here: the user's own first use of lpips does that.
    """
    if importlib.util.find_spec("lpips") is None:
        return False
    return any(Path(torch.hub.get_dir(), "checkpoints").glob("squeezenet1_1*"))


@lru_cache(maxsize=1)
def _network() -> Any | None:
    try:
        return importlib.import_module("lpips").LPIPS(net=NETWORK, verbose=False).eval()
    except Exception as error:
        # Without it the other metrics still count.
        log.warning("LPIPS is left out: its network cannot be loaded (%s).", error)
        return None


@torch.no_grad()
def lpips(prediction: Tensor, reference: Tensor) -> float | None:
    """Mean LPIPS of single-channel images ``[B, 1, H, W]`` in [-1, 1], or None without it.

    The package is looked for at run time and never required.
    """
    network = _network() if lpips_available() else None
    if network is None:
        return None
    scores = [
        network(_colour(p), _colour(r)).flatten()
        for p, r in zip(prediction.split(_AT_ONCE), reference.split(_AT_ONCE), strict=True)
    ]
    return float(torch.cat(scores).mean())


def _colour(image: Tensor) -> Tensor:
    return image.to("cpu", torch.float32).expand(-1, 3, -1, -1)


@dataclass(frozen=True)
class Description:
    """What a profile's numbers mean, for the run record and the help."""

    name: str
    modality: str
    domain: str
    data_range: str
    clip: str
    crop: str
    reduction: str
    psnr: str
    ssim: str
    nrmse: str
    implementation: str = "engine.metrics 1 (own code, tested against the named libraries)"


@dataclass(frozen=True)
class Pair:
    """Two image stacks ``[B, 1, H, W]`` ready to compare.

    ``prediction`` and ``reference`` are in the profile's domain, after clipping;
    ``*_physical`` are proportional to a physical quantity and unclipped, for NRMSE and MAE.
    """

    prediction: Tensor
    reference: Tensor
    data_range: Tensor  # [B]
    prediction_physical: Tensor
    reference_physical: Tensor
    rows: Tensor  # which slices of the stack that was given are not left out
    where: Tensor | None = None  # [B, 1, H, W]: the pixels that count; None: all

    def inside(self, where: Tensor) -> Pair | None:
        """The same with the pixels that count; None when no slice has any."""
        where = where.to(self.rows.device)
        where = where[self.rows] if len(where) > 1 else where.expand(len(self.rows), -1, -1, -1)
        some = where.flatten(1).any(dim=1)
        if not bool(some.any()):
            return None
        return Pair(
            self.prediction[some],
            self.reference[some],
            self.data_range[some],
            self.prediction_physical[some],
            self.reference_physical[some],
            self.rows[some],
            where[some],
        )


class Profile(ABC):
    """One way to compute metrics."""

    about: ClassVar[Description]

    def describe(self) -> dict[str, str]:
        """Domain, range, clip, crop, reduction and formulas, for the run record."""
        return asdict(self.about)

    @abstractmethod
    def prepare(
        self,
        prediction: Tensor,
        reference: Tensor,
        intensity: IntensityMap | None,
        data_range: float | None,
        rows: Tensor | None = None,
    ) -> Pair:
        """Normalised tensors to the profile's domain.

        ``rows``: the slices that are not left out, from an earlier pair with this reference;
        finding them waits for the device.
        """

    @abstractmethod
    def psnr(self, pair: Pair) -> Tensor: ...

    @abstractmethod
    def ssim(self, pair: Pair) -> Tensor: ...

    def nrmse(self, pair: Pair) -> Tensor:
        return nrmse_per_image(pair.prediction_physical, pair.reference_physical).mean()

    def extras(self, pair: Pair) -> dict[str, float | None]:
        """What only this profile reports."""
        return {}

    def perceptual(self, pair: Pair) -> dict[str, float | None]:
        """LPIPS on values mapped from [0, range] to the [-1, 1] its network expects."""
        peak = pair.data_range.reshape(-1, 1, 1, 1)
        images = (pair.prediction.minimum(peak), pair.reference.minimum(peak))
        return {"lpips": lpips(*(image / peak * 2 - 1 for image in images))}


def rows_of(keep: Tensor, name: str) -> Tensor:
    """The numbers of the slices of a reference that say anything; refuses one without any."""
    rows = keep.nonzero()[:, 0]
    if not len(rows):
        raise RequestError(
            f"The reference is blank, so the metric profile {name} has nothing to compare."
        )
    return rows


def nrmse_per_image(prediction: Tensor, reference: Tensor) -> Tensor:
    """||prediction - reference|| / ||reference|| of each image of a batch."""
    error = (prediction - reference).flatten(1).norm(dim=1)
    return error / reference.flatten(1).norm(dim=1)


@torch.no_grad()
def relative_residual(operator: Operator, x: Tensor, y: Tensor) -> float:
    """||A x - y|| / ||y||, over the whole batch; infinity when y is zero and A x is not."""
    residual = float((operator.forward(x) - y).norm())
    size = float(y.norm())
    if size == 0:
        return 0.0 if residual == 0 else math.inf
    return residual / size
