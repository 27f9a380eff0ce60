"""The lock files pin everything, once, with hashes."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("lock.txt", "lock-test.txt", "lock-build.txt", "lock-cpu.txt", "lock-cuda.txt")


def pins(name):
    text = (ROOT / "installer" / name).read_text(encoding="utf-8")
    return {
        entry.split("==")[0]: entry
        for entry in re.split(r"^(?=\w)", text, flags=re.MULTILINE)
        if not entry.startswith("#")
    }


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_a_version_and_hashes(name):
    assert pins(name)
    for entry in pins(name).values():
        assert re.match(r"[\w.-]+==[\w.+]+ ", entry)
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)


def test_the_lock_covers_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def names(requirements):
        return {re.match(r"[\w-]+", line)[0].lower() for line in requirements}

    assert names(project["dependencies"]) <= pins("lock.txt").keys()
    assert names(project["optional-dependencies"]["test"]) <= pins("lock-test.txt").keys()
    assert names(project["optional-dependencies"]["package"]) <= pins("lock-build.txt").keys()
    # the project is installed without a build environment of its own
    assert "setuptools" in pins("lock.txt")


def test_no_package_is_locked_twice_except_torch_which_agrees_with_itself():
    names = [package for name in LOCKS for package in pins(name)]
    assert sorted(names) == sorted([*set(names), "torch"])
    version = pins("lock.txt")["torch"].split()[0]
    assert pins("lock-cpu.txt")["torch"].split()[0] == f"{version}+cpu"
