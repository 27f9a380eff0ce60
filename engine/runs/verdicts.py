"""What can be said about a result as soon as it is there: one sentence for each question.

Every sentence begins with its short form, up to the colon, for places with little room.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from engine.physics.cg import ConjugateGradients
from engine.physics.problem import Problem
from engine.priors.familiarity import excess
from engine.priors.prior import Prior
from engine.runs.certificate import Certificate, certify
from engine.runs.detail import supplied_detail
from engine.spec.errors import DualscopeError

UNLIKE = "Unlike the slices this prior was trained on"
LIKE = "Like the slices this prior was trained on"
PREFER = {"CT": "prefer TV, or another prior", "MR": "prefer TV or SENSE, or another prior"}
# The regularised method without a prior to compare with, of any modality.
CLASSICAL = "tv"

FAR = 2.0  # reduced chi^2: from here on it is asked whether any image fits
STEPS = 30  # of conjugate gradients towards the one that fits best

NOISE = {
    "fits": "Fits within the noise",
    "closer": "Noise was fitted",
    "worse": "Fits worse than the noise explains",
    "fits exactly": "These noise-free data are fitted",
    "does not fit": "These noise-free data are not quite fitted",
    "noise unknown": "Noise level not known",
}


# The same in the words of the one line below an image.
FIT = {
    "fits": "fits the data",
    "closer": "fits the noise, too",
    "worse": "does not fit the data",
    "fits exactly": "fits the data",
    "does not fit": "does not quite fit the data",
    "noise unknown": "how well it fits cannot be told",
}
# An image counts as still changing when its last iteration moved it by more than this share of
# its own SD: about 9 HU in a chest.
STILL = 0.02
SUMMARY = "summary"


@torch.no_grad()
def verdicts(
    problem: Problem, prior: Prior | None, image: Tensor, change: float = math.nan
) -> dict[str, str]:
    """Sentences about a result by what they are about: 'summary', 'noise', 'prior'.

    ``change`` is by how much the last iteration moved the image, in its own SD; NaN of the only
    one.

    Draws from no random stream of the run and leaves the image as it is. What cannot be found
    out (the memory is full, say) is left out: the result is as good without it.
    """
    if not bool(torch.isfinite(image).all()):
        return {}
    looks: dict[str, Callable[[], str | None]] = {
        "noise": lambda: noise_sentence(certify(problem, image), closest(problem, image)),
        "prior": lambda: prior_sentence(prior, image, problem.modality),
        SUMMARY: lambda: summary(problem, prior, image, change),
    }
    found = {}
    for name, look in looks.items():
        try:
            sentence = look()
        except (DualscopeError, RuntimeError, MemoryError):
            continue
        if sentence:
            found[name] = sentence
    first = {SUMMARY: found.pop(SUMMARY)} if SUMMARY in found else {}
    return {**first, **found}


def summary(problem: Problem, prior: Prior | None, image: Tensor, change: float) -> str:
    """One line in plain words; of several slices it tells of the worst."""
    kind, where = worst_fit(certify(problem, image))
    parts = [f"{FIT[kind]}{where}"]
    if change > STILL:
        parts.append("still changing when stopped")
    if prior is not None:
        share = max(supplied_detail(problem, image))
        parts.append(f"{100 * share:.0f} % of edge detail supplied by the prior")
    line = "; ".join(parts)
    return f"{line[0].upper()}{line[1:]}."


def prior_sentence(prior: Prior | None, image: Tensor, modality: str) -> str | None:
    """Whether the prior knows such images; None for one that was never calibrated."""
    beyond = None if prior is None else excess(prior, image)
    if beyond is None:
        return None
    foreign = int((beyond > 0).sum())
    if not foreign:
        return f"{LIKE}."
    share = f" ({foreign} of {len(image)} slices)" if len(image) > 1 else ""
    return f"{UNLIKE}{share}: {PREFER[modality]}."


def doubts_prior(found: dict[str, str]) -> bool:
    """Whether a method without this prior should be looked at, too."""
    return found.get("prior", "").startswith(UNLIKE)


def closest(problem: Problem, image: Tensor) -> float | None:
    """The reduced chi^2 that hardly any image falls below, where this one leaves far more than 1.

    By least squares from the image; of several slices the worst. Of measured k-space only: few
    views of a CT scan can be fitted whatever is wrong with them.
    """
    operator, weights = problem.operator, problem.weights
    if problem.modality != "MR" or problem.provenance.get("simulated") is not False:
        return None
    left = problem.residual(image)
    if not float(problem.reduced_chi2(left).max()) > FAR:
        return None
    gradient = operator.adjoint(left if weights is None else weights * left)
    search = ConjugateGradients(
        lambda v: operator.normal(v, weights), -gradient, torch.zeros_like(image)
    )
    fitted = image + search.run(STEPS)
    return float(problem.reduced_chi2(problem.residual(fitted)).max())


def noise_sentence(certificates: list[Certificate], at_best: float | None = None) -> str:
    """How the image fits the measurement; of several slices, the worst of them.

    ``at_best`` is the reduced chi^2 of the image that fits best, where that was looked for.
    """
    kind, where = worst_fit(certificates)
    short = f"{NOISE[kind]}{where}"
    if kind == "noise unknown":
        return f"{short}: whether noise was fitted cannot be told."
    reduced = [c.reduced for c in certificates if c.reduced is not None]
    if not reduced:
        return f"{short}: the residual is {100 * max(c.relative for c in certificates):.2g} %."
    low, high = f"{min(reduced):.3g}", f"{max(reduced):.3g}"
    said = f"{short}: reduced chi-square {low if low == high else f'{low} to {high}'}"
    if kind == "worse" and at_best is not None and at_best > FAR:
        said += (
            f"; no image fits better than {at_best:.3g}. The data do not fit the model of the scan "
            "(trajectory, coil maps, phase or motion)"
        )
    return f"{said}."


def worst_fit(certificates: list[Certificate]) -> tuple[str, str]:
    """The verdict of the worst slice, and in how many it holds: ' in 2 of 5 slices'."""
    kinds = [c.verdict for c in certificates]
    kind = max(kinds, key=lambda one: (one not in ("fits", "fits exactly"), kinds.count(one)))
    if len(kinds) > 1 and kind not in ("fits", "fits exactly", "noise unknown"):
        return kind, f" in {kinds.count(kind)} of {len(kinds)} slices"
    return kind, ""
