"""One colour and one dash pattern per run, the same on the screen, in plots and in reports.

Colour says the method, so that it means the same everywhere; runs of one method are told apart
by their dashes. Both come from the method itself; these are the rules beside them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

Dash = tuple[float, ...]

# colours of Okabe and Ito, which colour-blind readers can tell apart
GREEN, BLUE, VERMILLION = "#009E73", "#0072B2", "#D55E00"
NAIVE: Final = "naive"
NAIVE_STYLE: Final[tuple[str, Dash]] = (VERMILLION, (2, 3))
# For the second and later runs of a method; dots are kept for second quantities of one run.
REPEATS: Final[tuple[Dash, ...]] = ((9, 3), (9, 3, 3, 3), (15, 5), (4, 4), (9, 3, 3, 3, 3, 3))


def method_of(job: dict[str, Any]) -> str:
    """DC-PnPDP with plain white noise injected is the paper's 'naive' variant."""
    solver, settings = str(job.get("solver", "dc-pnpdp")), job.get("settings") or {}
    return NAIVE if solver == "dc-pnpdp" and settings.get("injection") == "awgn" else solver


def dash_for(own: Dash, taken: Collection[Dash]) -> Dash:
    """The method's own pattern, or the next that no other run of its colour uses."""
    order = [own, *(dash for dash in REPEATS if dash != own)]
    return next((dash for dash in order if dash not in taken), order[len(taken) % len(order)])
