"""A network trained for one scan: the FBP image in, a better image out, in one call.

A reference for methods that were trained for no scan at all: what does it gain where it was
trained, and what does it lose elsewhere? It is plain post-processing, and not the ProCT of the
paper.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.physics.problem import Problem
from engine.physics.random import Generators
from engine.priors.prior import Prior
from engine.solvers.classical import report
from engine.solvers.diagnostics import Guard, Stopwatch
from engine.solvers.iteration import Iteration
from engine.solvers.solver import Resume, Solver
from engine.spec.settings import Settings


class Supervised(Solver):
    """F(FBP); nothing afterwards makes the image agree with the measurement."""

    name, label, modalities = "supervised", "Supervised U-Net", ("CT",)
    help = "FBP corrected by a network that was trained for this very scan."
    place, colour, dash = 70, "#D55E00", (8, 3)
    settings_class = Settings
    supervised = True

    def iterate(  # type: ignore[override]
        self,
        problem: Problem,
        prior: Prior,
        settings: Settings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        if resume is not None:
            return
        clock = Stopwatch(problem.measurement.device)
        with clock("data"):
            fbp = problem.operator.pseudo_inverse(problem.measurement)
        with clock("denoiser"):
            x = prior(fbp, 0.0)  # it knows no noise level
        Guard(fbp).check(1, pseudo_inverse=fbp, network=x)
        done = report(problem, 1, 1, x, {"x": x}, clock.seconds)
        done.nfe = 1
        yield done
