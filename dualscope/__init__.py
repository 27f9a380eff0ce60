"""Dualscope from Python: NumPy arrays in, NumPy arrays out, in physical units.

    import dualscope as ds

    problem = ds.simulate("demo:ct", views=20)
    result = ds.reconstruct(problem, solver="dc-pnpdp", nfe=50)
    result.save("slice.dcm", "slice.png")

CT images are in HU, MR images in the scale of their input; lengths are in mm, angles in degrees
(counter-clockwise), line integrals without a unit (attenuation in 1/mm, times mm). Settings are
called as on the command line: ``--cg-iterations 20`` is ``cg_iterations=20``. Whatever a person
can mend is a `DualscopeError`. Importing this module loads no torch; using it does.

Data and problems
    `open` a file, `simulate` a scan of an image, or give arrays to the operators `ct` and `mri`.
Reconstructions
    `reconstruct` at once, `run` iteration by iteration, `compare` several methods.
Your own
    Subclass `Operator`, `Prior` or `Solver` and pass the object; a torch denoiser
    ``(x, sigma) -> x`` serves as a prior. Packages register theirs by name with the entry points
    ``dualscope.solvers``, ``dualscope.priors`` and ``dualscope.readers``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine import __version__

if TYPE_CHECKING:
    from engine.api.data import Data, load_prior, open, simulate
    from engine.api.operators import ArrayOperator, ct, mri
    from engine.api.results import Comparison, Result
    from engine.api.runs import Run, Step, compare, reconstruct, run
    from engine.physics.operator import Operator
    from engine.physics.problem import Problem
    from engine.physics.units import IntensityMap
    from engine.priors.prior import Prior, PriorInfo
    from engine.solvers.data_step import DataStep
    from engine.solvers.dc_pnpdp import DcPnpdpSettings
    from engine.solvers.homogenize import homogenize
    from engine.solvers.iteration import Iteration
    from engine.solvers.solver import DiffusionSettings, Solver
    from engine.spec.errors import DualscopeError
    from engine.spec.settings import Settings, setting

__all__ = [
    "ArrayOperator",
    "Comparison",
    "Data",
    "DataStep",
    "DcPnpdpSettings",
    "DiffusionSettings",
    "DualscopeError",
    "IntensityMap",
    "Iteration",
    "Operator",
    "Prior",
    "PriorInfo",
    "Problem",
    "Result",
    "Run",
    "Settings",
    "Solver",
    "Step",
    "__version__",
    "compare",
    "ct",
    "homogenize",
    "load_prior",
    "mri",
    "open",
    "reconstruct",
    "run",
    "setting",
    "simulate",
]

# where each name lives; imported when it is first asked for
_HOMES = {
    "engine.api.data": ("Data", "load_prior", "open", "simulate"),
    "engine.api.operators": ("ArrayOperator", "ct", "mri"),
    "engine.api.results": ("Comparison", "Result"),
    "engine.api.runs": ("Run", "Step", "compare", "reconstruct", "run"),
    "engine.spec.errors": ("DualscopeError",),
    "engine.solvers.iteration": ("Iteration",),
    "engine.physics.operator": ("Operator",),
    "engine.physics.units": ("IntensityMap",),
    "engine.priors.prior": ("Prior", "PriorInfo"),
    "engine.physics.problem": ("Problem",),
    "engine.spec.settings": ("Settings", "setting"),
    "engine.solvers.data_step": ("DataStep",),
    "engine.solvers.dc_pnpdp": ("DcPnpdpSettings",),
    "engine.solvers.homogenize": ("homogenize",),
    "engine.solvers.solver": ("DiffusionSettings", "Solver"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(home), name)
            return value
    raise AttributeError(f"module 'dualscope' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
