"""The cost of an iteration: ratios of the same round, and memory that is seen."""

import sys

import pytest
import torch

from engine.physics.memory import PeakMemory
from engine.workflows.experiments.summary import relative


def test_ratios_pair_the_rounds():
    """A machine that is three times slower in one round changes no ratio."""
    speed = [1.0, 3.0, 1.0, 10.0, 1.0]
    base = [{"rounds": [{"total": s} for s in speed]}]
    mine = [{"rounds": [{"total": 1.02 * s} for s in speed]}]
    assert relative(mine, base) == pytest.approx(1.02)
    assert relative(mine, []) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a CPU process")
def test_peak_memory_sees_what_is_freed_again():
    with PeakMemory(torch.device("cpu")) as nothing:
        pass
    if nothing.gb is None:
        pytest.skip("this system does not let a process reset its peak")
    with PeakMemory(torch.device("cpu")) as peak:
        torch.ones(50_000_000)
    assert 0.15 < peak.gb < 0.4
    assert nothing.gb < 0.05
