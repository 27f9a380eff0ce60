"""Finding a prior by name or path."""

from __future__ import annotations

from pathlib import Path

from engine.errors import RequestError
from engine.paths import RESOURCES
from engine.priors.gaussian import GaussianPrior
from engine.priors.prior import IntensityMap, Prior
from engine.priors.tv import TVPrior

ANALYTIC = ("tv", "gaussian")
# The trained prior that 'auto' takes, when it is there.
BEST = {"CT": "ct-small", "MR": "mr-small"}
KINDS = {"CT": "hu", "MR": "mr"}


def bundled() -> dict[str, Path]:
    """The trained priors in the box, by name."""
    return {path.stem: path for path in sorted((RESOURCES / "priors").glob("*.safetensors"))}


def list_priors(modality: str) -> list[str]:
    """Names that ``load_prior`` accepts for a modality, best first."""
    prefix = modality.lower() + "-"
    trained = [name for name in bundled() if name.startswith(prefix)]
    return sorted(trained, key=lambda name: name != BEST[modality]) + list(ANALYTIC)


def load_prior(name: str, modality: str) -> Prior:
    """A prior by name or file; 'auto' is the best there is for the modality."""
    prior = find_prior(list_priors(modality)[0] if name == "auto" else name, modality)
    if prior.info.intensity.kind != KINDS[modality]:
        raise RequestError(f"--prior {name} is not for {modality} images.")
    return prior


def find_prior(name: str, modality: str) -> Prior:
    """By name or file, whatever it is for; ``modality`` shapes the analytic ones."""
    is_ct = modality == "CT"
    intensity = IntensityMap("hu", 1000.0) if is_ct else IntensityMap("mr")
    channels = 1 if is_ct else 2
    if name == "tv":
        return TVPrior(intensity, channels)
    if name == "gaussian":
        return GaussianPrior(intensity, channels, mean=-0.4 if is_ct else 0.0)
    path = bundled().get(name, Path(name))
    if not path.is_file():
        raise RequestError(
            f"--prior '{name}' is neither a file nor one of {', '.join(list_priors(modality))}."
        )
    from engine.priors.safetensors_file import load_prior_file

    return load_prior_file(path)
