"""``python -m installer fuzz --minutes N``: damaged inputs for everything that reads.

Runs in the environment of the tests. With atheris (``pip install atheris``; Linux, where a build
for your Python exists) the search follows the branches of our code; without, inputs are damaged
at random.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from installer.console import SetUpError, child_environment
from installer.environment import WITH_TESTS, Environment, set_up

ROOT: Final = Path(__file__).resolve().parents[1]
DRIVER: Final = Path("tests", "support", "fuzz_run.py")


def fuzz(minutes: float, targets: Sequence[str] | None) -> int:
    if not (ROOT / DRIVER).is_file():
        raise SetUpError("The fuzzers are with the tests: take the sources.")
    if minutes <= 0:
        raise SetUpError("--minutes must be more than 0.")
    env = Environment(ROOT)
    set_up(env, WITH_TESTS)
    command = [str(env.program("python")), str(ROOT / DRIVER), "--minutes", str(minutes)]
    for target in targets or ():
        command += ["--target", target]
    return subprocess.run(command, cwd=ROOT, env=child_environment()).returncode
