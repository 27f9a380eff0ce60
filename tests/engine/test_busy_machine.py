"""OpenMP's threads do not spin for long, whichever of torch and the engine is imported first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOOK = """
import json, os, threading
pools = [thread.name for thread in threading.enumerate() if thread.name == "dualscope-openmp"]
print(json.dumps([os.environ.get("GOMP_SPINCOUNT"), len(pools)]))
"""


@pytest.mark.parametrize(
    ("lines", "chosen", "expected"),
    [
        ("import engine, torch", None, ["3000", 0]),
        ("import torch, engine", None, ["3000", 1]),
        ("import dualscope, torch", None, ["3000", 0]),
        ("import torch, engine", "7", ["7", 0]),
    ],
)
def test_the_wait_of_threads_is_short(lines, chosen, expected):
    environment = {key: value for key, value in os.environ.items() if key != "GOMP_SPINCOUNT"}
    if chosen is not None:
        environment["GOMP_SPINCOUNT"] = chosen
    done = subprocess.run(
        [sys.executable, "-c", lines + "\n" + LOOK],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == expected
