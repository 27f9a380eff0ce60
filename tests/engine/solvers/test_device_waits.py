"""How often the host waits for the device in an iteration.

There may be no GPU here, so it is seen from the operations: a value that the host asks for is
``_local_scalar_dense`` or ``tolist``.
"""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from engine.data.source import open_input
from engine.metrics.profiles import Quick, default_profile
from engine.physics.random import make_generator
from engine.priors.catalogue import load_prior
from engine.solvers.catalogue import SOLVERS
from engine.spec.input_options import InputOptions

WAITS = (
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
)
# SITCOM decides after each of its inner steps whether another one follows.
PER_INNER_STEP = {"sitcom"}
SCANS = {
    "CT": ("demo:ct", {"views": 12, "photons": 1e5}),
    "MR": ("demo:mri", {"acceleration": 4.0, "coils": 3, "kspace_noise": 0.02}),
}
DIRECT = {"fbp", "zero-filled"}  # one step
NEEDS_A_NETWORK = {"supervised"}
CASES = [
    (modality, name)
    for modality in SCANS
    for name, solver in SOLVERS.items()
    if modality in solver.modalities and name not in DIRECT | NEEDS_A_NETWORK
]


class Waits(TorchDispatchMode):
    """Counts what the host waits for."""

    def __init__(self, monkeypatch) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        fetch = Tensor.tolist

        def tolist(tensor):
            self.seen["tolist"] += 1
            return fetch(tensor)

        monkeypatch.setattr(Tensor, "tolist", tolist)

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        if function in WAITS:
            self.seen[str(function)] += 1
        return function(*args, **(kwargs or {}))


def _steps(modality: str, name: str):
    scan, asked = SCANS[modality]
    dataset = open_input(scan, InputOptions(size=32))
    prior = load_prior("gaussian", dataset.modality, False)
    problem = dataset.problem([0], asked, prior.info.intensity, 0)
    solver = SOLVERS[name]()
    settings = solver.settings_class.pick({"nfe": 20, "iterations": 4})
    used = prior if solver.needs_prior else None
    return problem, solver.iterate(problem, used, settings, [make_generator(0)])


@pytest.mark.parametrize(("modality", "name"), CASES)
def test_an_iteration_waits_once_for_its_numbers_and_once_for_its_metrics(
    modality, name, monkeypatch
):
    problem, steps = _steps(modality, name)
    quick = Quick(default_profile(modality), problem.reference, problem.intensity)
    with torch.no_grad():
        first = next(steps)
        quick(first.image)  # what is made once
        with Waits(monkeypatch) as solver:
            step = next(steps)
        if name not in PER_INNER_STEP:
            # the guard against absurd values, and one look whether it has converged
            assert solver.seen["tolist"] <= 2
            assert sum(solver.seen.values()) - solver.seen["tolist"] <= 1
        with Waits(monkeypatch) as metrics:
            quick(step.image)
            step.norms  # noqa: B018
        assert metrics.seen == {"tolist": 2}
        assert step.norms["gap"] == step.gap.flatten().tolist()
