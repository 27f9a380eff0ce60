"""Hooks that pytest must know before it looks into any folder, also in front of its workers.

Environment variables that change what the tests do:

DUALSCOPE_FUZZ          how many damaged files of every kind of data tests/engine/data/test_fuzz.py
                        makes (600; 3000 takes some minutes)
DUALSCOPE_ROUNDS        how many windows tests/engine/library/test_library_killed.py kills (6)
DUALSCOPE_MONKEY        how many random actions tests/app/test_monkey.py does (700)
DUALSCOPE_BUSY          1: every worker of pytest has a busy loop beside it at normal priority, so
                        that what depends on the machine's speed fails; with `-n` of the number of
                        cores, all cores are busy
DUALSCOPE_FAULT_MATRIX  the folder for the table of faults that tests/faults makes

The tests themselves set, for folders of their own: DUALSCOPE_CONFIG and DUALSCOPE_STATE (settings,
presets, runs) and DUALSCOPE_CACHE (system matrices). `python -m installer test` sets
QT_QPA_PLATFORM=offscreen (no display) and OMP_NUM_THREADS=1 (a thread for each worker).

The window's tests twenty times beside busy loops, as they are asked to hold:

    for i in $(seq 20); do
        DUALSCOPE_BUSY=1 python -m installer test -n 2 -x tests/app tests/faults/window || break
    done
"""

import os
import subprocess
import sys

import pytest
from fault_matrix import pytest_runtest_logreport, pytest_terminal_summary

__all__ = ["pytest_runtest_logreport", "pytest_terminal_summary"]

# it ends with the process that has started it, however that ends
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(10**6))"


@pytest.fixture(scope="session", autouse=True)
def busy_machine():
    """Beside the tests, when DUALSCOPE_BUSY asks for it, a loop that wants a core."""
    if os.environ.get("DUALSCOPE_BUSY", "0") == "0":
        yield
        return
    with subprocess.Popen([sys.executable, "-I", "-c", BUSY]) as loop:
        yield
        loop.kill()


@pytest.fixture(scope="session", autouse=True)
def forked_trials():
    """HDF5 files are tried in forks of one process; starting Python for each takes far longer."""
    if not hasattr(os, "fork"):
        yield
        return
    from hdf5_trials import Trials, hdf5_trial

    trials = Trials()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hdf5_trial, "launch", trials)
        yield
    trials.close()
