"""Named settings: the paper's, those of its published code, and budgets of denoiser calls."""

from __future__ import annotations

import math
from typing import Any

from engine.physics.problem import Problem
from engine.solvers.catalogue import SOLVERS
from engine.solvers.solver import BUDGETS
from engine.spec.errors import RequestError

# rho = 1e-5 / sigma^2 in the published code, whose back-projection is scaled by pi / (2 views)
# and whose lengths are in pixels: see `paper_rho_weight`.
PAPER_RHO = 1e-5

PRESETS = ("paper-svct", "paper-lact", "paper-mri", "paper-code")


def budget(name: str, solver: str) -> dict[str, Any]:
    """A solver's settings in one of the budgets; nothing for one that calls no denoiser."""
    return dict(SOLVERS[solver].budgets.get(name, {})) if solver in SOLVERS else {}


def paper_rho_weight(problem: Problem) -> float:
    """The paper's limited-angle w for the true adjoint and lengths in mm.

    With A^T scaled by c = pi / (2 views), (c A^T A + rho) means rho / c for the true adjoint;
    lengths in mm multiply A^T A by the squared pixel size.
    """
    views = problem.operator.measurement_shape[1]
    pixel = problem.pixel_mm[0] if problem.pixel_mm else 1.0
    return PAPER_RHO * (2 * views / math.pi) * pixel**2


def apply_preset(name: str | None, problem: Problem, solver: str = "") -> dict[str, Any]:
    """The settings of a preset; a solver takes those it knows. Budgets depend on the solver."""
    if name is None:
        return {}
    if name in BUDGETS:
        return budget(name, solver)
    if name in PRESETS and not problem.operator.is_scan:
        raise RequestError(f"⟦preset⟧ {name} is for scans, not for a blurred or reduced image.")
    is_ct = problem.modality == "CT"
    common: dict[str, Any] = {"nfe": 50, "sigma_max": 2.0, "sigma_min": 0.002, "zeta": 1.0}
    if name == "paper-svct" and is_ct:
        return common | {"cg_iterations": 20}
    if name == "paper-lact" and is_ct:
        return common | {
            "cg_iterations": 100,
            "preconditioner": "filtered",
            "rho_over_sigma2": paper_rho_weight(problem),
        }
    if name == "paper-mri" and not is_ct:
        return common | {"sigma_max": 0.5}  # for MR images, of SD 0.2: see help/solvers.md
    if name == "paper-code" and is_ct:
        return common | {
            "cg_iterations": 50,
            "cg_warm_start": False,
            "preconditioner": "none",
            "rho": 0.0,
            "clip_init": True,
            "symmetry": False,
            "paired_below": 0.0,
            "sh_padding": "zero",
            "sh_aggregate": "batch_mean",
        }
    if name in PRESETS:
        raise RequestError(f"⟦preset⟧ {name} is not for {problem.modality} data.")
    known = (*PRESETS, *BUDGETS)
    raise RequestError(f"⟦preset⟧ '{name}' is not known: choose one of {', '.join(known)}.")
