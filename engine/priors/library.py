"""Finding a prior by name."""

from __future__ import annotations

from engine.errors import RequestError
from engine.priors.gaussian import GaussianPrior
from engine.priors.prior import IntensityMap, Prior
from engine.priors.tv import TVPrior

ANALYTIC = ("tv", "gaussian")


def list_priors(modality: str) -> list[str]:
    """Names that ``load_prior`` accepts for a modality, best first."""
    return list(ANALYTIC)


def load_prior(name: str, modality: str) -> Prior:
    """A prior by name; 'auto' is the best there is for the modality."""
    is_ct = modality == "CT"
    intensity = IntensityMap("hu", 1000.0) if is_ct else IntensityMap("mr")
    channels = 1 if is_ct else 2
    if name == "auto":
        name = list_priors(modality)[0]
    if name == "tv":
        return TVPrior(intensity, channels)
    if name == "gaussian":
        return GaussianPrior(intensity, channels, mean=-0.4 if is_ct else 0.0)
    raise RequestError(
        f"--prior '{name}' is not known: choose one of {', '.join(list_priors(modality))}."
    )
