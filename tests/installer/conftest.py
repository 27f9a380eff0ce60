"""A checkout to set up, and stand-ins for the programs that the set-up runs."""

import pytest

from installer import environment
from installer.environment import Environment

LOCKS = ("lock.txt", "lock-test.txt", "lock-cpu.txt", "lock-cuda.txt")


@pytest.fixture
def env(tmp_path):
    """A checkout in a folder with a space, on Linux."""
    root = tmp_path / "my checkout"
    (root / "installer").mkdir(parents=True)
    (root / "pyproject.toml").write_text("[project]\n")
    for name in LOCKS:
        (root / "installer" / name).write_text(f"{name.removesuffix('.txt')}==1\n")
    return Environment(root, "linux")


@pytest.fixture
def programs(env, monkeypatch):
    """What the set-up runs, in order, instead of running it."""
    started = []

    def stand_in(command, doing, **changes):
        started.append(command)
        if "venv" in command:
            env.program("python").parent.mkdir(parents=True)
            env.program("python").touch()

    monkeypatch.setattr(environment, "run_quietly", stand_in)
    return started
