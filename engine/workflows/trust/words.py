"""The sentences that go with every map and number: how to read it, and what it cannot tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.runs.certificate import LEVEL, STANDS_OUT, Certificate
from engine.workflows.trust.split import FLOOR


@dataclass(frozen=True)
class Words:
    title: str
    how_to_read: str
    cannot_tell: str


SPLIT: Final = Words(
    "Measured and guessed",
    "The measured part is what any image that fits the measurement must contain; the guessed part "
    "is invisible to this scan and was supplied by the prior or by the method: structures that "
    "are strong there were not seen.",
    "Guessed does not mean wrong, and measured does not mean right: the measured part also holds "
    "the noise and every error of the geometry, and where the line is drawn depends on the noise.",
)
SPREAD: Final = Words(
    "Spread over seeds",
    "Bright pixels change from seed to seed: there the method itself does not know; look at what "
    "stays the same in all seeds.",
    "It is the spread of this method with this prior, in general not the uncertainty of the "
    "posterior: where all seeds make the same mistake the spread is small.",
)
CERTIFICATE: Final = Words(
    "Data-consistency certificate",
    "The true image would have a reduced chi-square near 1: well above, the image contradicts the "
    "measurement; well below, it has taken over the noise.",
    "It looks only at what the scan sees: a structure in the null space changes no residual and is "
    "never found, and a good fit does not prove the image.",
)
PULL: Final = Words(
    "Prior pull",
    "Bright pixels are where the last denoising still moved the image away from what fits the "
    "data: there prior and measurement disagree.",
    "Where the scan is blind nothing holds against the prior, so a small pull there says nothing; "
    "an even grain is only the last noise level, and a method without a prior has no pull.",
)
ALL: Final = {"split": SPLIT, "spread": SPREAD, "certificate": CERTIFICATE, "pull": PULL}

SPLIT_RULE: Final = (
    "A direction counts as measured when a signal of the image's own SD stands above the noise "
    f"there; singular values below {100 * FLOOR**0.5:.1g} % of the largest never do. For "
    "single-coil MRI the split is the exact projection."
)


def verdict_sentence(certificate: Certificate) -> str:
    """The certificate in words."""
    c = certificate
    if c.reduced is None or c.low is None or c.high is None:
        size = f"The residual is {100 * c.relative:.2g} % of the measurement"
        return {
            "fits exactly": f"{size}: the image fits these noise-free data.",
            "does not fit": f"{size}, and these data are free of noise: the image does not fit "
            "them completely.",
        }.get(
            c.verdict,
            f"{size}; the noise level of these data is not known, so that nothing "
            "more can be said.",
        )
    seen = f"Reduced chi-square {c.reduced:.3g} over {c.degrees} measured numbers"
    ends = {
        "fits": "the image fits the measurement as well as the noise allows",
        "worse": "the image fits worse than noise explains",
        "closer": "the image is closer to the measurement than noise allows: it overfits the noise",
    }[c.verdict]
    return (
        f"{seen}: {ends} (noise explains {c.low:.3g} to {c.high:.3g}; the true image falls "
        f"outside on either side with a probability of {100 * LEVEL:g} %)."
    )


def parts_sentence(certificate: Certificate) -> str:
    """Which views or lines fit worse than the noise, or than the others."""
    c, found = certificate, certificate.suspicious
    measured = sum(value is not None for value in c.parts)
    rule = (
        "fit worse than noise explains"
        if c.reduced is not None
        else f"have more than {STANDS_OUT:g} times the usual residual"
    )
    if not found:
        return f"None of the {measured} {c.part}s {rule}."
    named = ", ".join(str(number) for number in found[:8]) + (
        " and others" if len(found) > 8 else ""
    )
    verb = rule.replace("fit ", "fits ", 1).replace("have", "has") if len(found) == 1 else rule
    return f"{len(found)} of {measured} {c.part}s {verb}: {named}."


def worst_sentence(certificate: Certificate) -> str:
    """The view or line that fits least, and by how much."""
    c = certificate
    value, number = max((value, n) for n, value in enumerate(c.parts) if value is not None)
    kind = "reduced chi-square" if c.reduced is not None else "relative residual"
    return f"The worst is {c.part} {number}, counted from 0 ({kind} {value:.3g})."


def spread_sentence(count: int, asked: int, settled: bool, error: float | None) -> str:
    if error is None:
        return f"{count} of {asked} seeds: a spread needs at least two."
    end = ", and the map has settled" if settled else ""
    return f"{count} of {asked} seeds{end}; each SD is itself uncertain by {100 * error:.0f} %."
