"""Freed memory is used again, where the C library can be told so."""

import platform
import subprocess
import sys

import pytest

# A process of its own: what it is told stays with it. In every round five arrays of 16 MB live
# together and are freed; the faults are those of the rounds after the first.
FAULTS = """
import resource
import numpy as np
from engine.physics.memory import give_memory_back, keep_freed_memory
{told}
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(2_000_000) for _ in range(5)]
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(told):
    command = [sys.executable, "-c", FAULTS.format(told=told)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc only")
def test_freed_memory_is_used_again_without_asking_the_system():
    assert faults("keep_freed_memory()") < 1000 < faults("")
