"""Finding a prior by name or path."""

from __future__ import annotations

from pathlib import Path

from engine.files.folders import RESOURCES
from engine.physics.units import IntensityMap
from engine.priors.analytic import GaussianPrior, TVPrior
from engine.priors.prior import Prior
from engine.priors.trained_scan import trained_scan
from engine.spec import plugins
from engine.spec.errors import RequestError

ANALYTIC = ("tv", "gaussian")
# The trained prior that 'auto' takes, when it is there.
BEST = {"CT": "ct-small", "MR": "mr-base"}
KINDS = {"CT": "hu", "MR": "mr"}
# Networks for one scan, which denoise nothing: 'auto' of --solver supervised, and no other's.
SUPERVISED = {"CT": "svct20-unet"}


def bundled() -> dict[str, Path]:
    """The trained priors in the box, by name."""
    return {path.stem: path for path in sorted((RESOURCES / "priors").glob("*.safetensors"))}


def list_priors(modality: str) -> list[str]:
    """Names that ``load_prior`` accepts for a modality, best first.

    Plug-ins are listed without loading them: one whose name begins with the other modality's
    prefix is left out.
    """
    other = {"CT": "mr-", "MR": "ct-"}[modality]
    added = [name for name in plugins.registered("priors") if not name.startswith(other)]
    known = [*_trained(modality), *ANALYTIC]
    return known + [name for name in added if name not in known]


def _trained(modality: str) -> list[str]:
    prefix = modality.lower() + "-"
    trained = [name for name in bundled() if name.startswith(prefix)]
    return sorted(trained, key=lambda name: name != BEST[modality])


def list_supervised(modality: str) -> list[str]:
    """Names of bundled networks for --solver supervised."""
    return [name for name in bundled() if name == SUPERVISED.get(modality)]


def load_prior(name: str, modality: str, supervised: bool | None = False) -> Prior:
    """A prior by name or file; 'auto' is the best there is for the modality.

    ``supervised`` asks for a network that corrects FBP images in place of a denoiser; with None,
    for a method that uses neither, both will do.
    """
    name = chosen_name(name, modality, supervised)
    prior = find_prior(name, modality)
    if prior.info.intensity.kind != KINDS[modality]:
        raise RequestError(f"⟦prior⟧ {name} is not for {modality} images.")
    corrects = trained_scan(prior.info) is not None
    if corrects and supervised is False:
        raise RequestError(
            f"{name} was trained to correct FBP images, not to denoise: "
            "use it with ⟦solver⟧ supervised."
        )
    if supervised and not corrects:
        raise RequestError(
            f"{name} was trained to denoise, not to correct FBP images: ⟦solver⟧ "
            "supervised needs a network from 'dualscope prior train --supervised'."
        )
    return prior


def chosen_name(name: str, modality: str, supervised: bool | None = False) -> str:
    """What 'auto' stands for; any other name stands for itself."""
    return _best(modality, bool(supervised)) if name == "auto" else name


def _best(modality: str, supervised: bool) -> str:
    names = list_supervised(modality) if supervised else [*_trained(modality), *ANALYTIC]
    if not names:
        raise RequestError(
            "There is no supervised network in the box: train one with 'dualscope prior train "
            "--supervised' and name it with ⟦prior⟧."
        )
    return names[0]


def prior_file(name: str) -> Path:
    """Where a trained prior would be."""
    return bundled().get(name, Path(name))


def find_prior(name: str, modality: str) -> Prior:
    """By name or file, whatever it is for; ``modality`` shapes the analytic ones."""
    is_ct = modality == "CT"
    intensity = IntensityMap("hu", 1000.0) if is_ct else IntensityMap("mr")
    channels = 1 if is_ct else 2
    if name == "tv":
        return TVPrior(intensity, channels)
    if name == "gaussian":
        return GaussianPrior(intensity, channels, mean=-0.4 if is_ct else 0.0)
    path = prior_file(name)
    if not path.is_file():
        if name in plugins.registered("priors"):
            return _plugin(name)
        raise RequestError(
            f"⟦prior⟧ '{name}' is neither a file nor one of {', '.join(list_priors(modality))}."
        )
    from engine.priors.safetensors_file import load_prior_file

    return load_prior_file(path)


def _plugin(name: str) -> Prior:
    """A registered prior, or what a registered class or function without arguments makes."""
    made = plugins.load("priors", name)
    if not isinstance(made, Prior):
        try:
            made = made()
        except Exception as error:  # it is somebody else's code
            raise plugins.broken("priors", name, f"{type(error).__name__}: {error}") from error
    if not isinstance(made, Prior):
        raise plugins.broken("priors", name, "it gives no Prior")
    return made
