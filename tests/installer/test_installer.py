"""The set-up on a fresh machine, without the network: pip, apt and dpkg are stand-ins."""

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from installer import environment
from installer.console import SetUpError
from installer.environment import APPLICATION, WITH_TESTS, Environment, set_up

ROOT = Path(__file__).resolve().parents[2]
posix = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")


def installed(programs):
    return [Path(command[-1]).name for command in programs if "pip" in command]


# the Python it is started with


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 10, 14), (3, 14, 0)])
def test_another_python_is_told_in_one_sentence_which_one_to_use(version):
    start = f"import runpy, sys; sys.version_info = {version}; "
    start += "runpy.run_module('installer', run_name='__main__')"
    result = subprocess.run([sys.executable, "-c", start], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "needs Python 3.11, 3.12 or 3.13" in line
    assert f"this is Python {version[0]}.{version[1]}" in line


def test_an_old_python_can_read_the_entry_file():
    for name in ("__init__.py", "__main__.py"):
        tree = ast.parse((ROOT / "installer" / name).read_text(), feature_version=(3, 4))
        assert not any(isinstance(node, ast.JoinedStr | ast.AnnAssign) for node in ast.walk(tree))


# the environment


def test_a_fresh_set_up_makes_the_environment_and_installs_the_project_last(env, programs):
    set_up(env, APPLICATION)
    assert programs[0] == [sys.executable, "-m", "venv", str(env.folder)]
    assert installed(programs) == ["lock-cpu.txt", "lock.txt", "my checkout"]
    assert environment.is_ready(env, APPLICATION)
    assert not environment.is_ready(env, WITH_TESTS)


def test_packages_are_installed_only_as_locked(env, programs):
    set_up(env, WITH_TESTS)
    for command in programs[1:-1]:
        assert {"--require-hashes", "--no-deps"} <= set(command)


def test_a_second_run_starts_nothing(env, programs):
    set_up(env, WITH_TESTS)
    programs.clear()
    set_up(env, WITH_TESTS)
    set_up(env, APPLICATION)
    assert programs == []


def test_the_test_tools_are_added_to_a_finished_environment(env, programs):
    set_up(env, APPLICATION)
    programs.clear()
    set_up(env, WITH_TESTS)
    assert installed(programs) == ["lock-test.txt", "my checkout"]
    assert len(programs) == 2


def test_a_changed_lock_is_installed_over_a_finished_environment(env, programs):
    set_up(env, APPLICATION)
    programs.clear()
    env.lock("lock.txt").write_text("numpy==2\n")
    set_up(env, APPLICATION)
    assert installed(programs) == ["lock-cpu.txt", "lock.txt", "my checkout"]
    assert len(programs) == 3


def test_a_changed_pyproject_installs_the_project_again(env, programs):
    set_up(env, APPLICATION)
    programs.clear()
    (env.root / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    set_up(env, APPLICATION)
    assert installed(programs) == ["my checkout"]


def test_another_python_makes_the_environment_anew(env, programs, monkeypatch):
    set_up(env, APPLICATION)
    programs.clear()
    monkeypatch.setattr(sys, "base_prefix", "/another/python")
    set_up(env, APPLICATION)
    assert "venv" in programs[0]


def test_a_checkout_that_moved_makes_the_environment_anew(env, programs):
    set_up(env, APPLICATION)
    moved = Environment(env.root.rename(env.root.with_name("moved")), "linux")
    assert not environment.is_ready(moved, APPLICATION)


def test_a_damaged_stamp_counts_as_none(env, programs):
    set_up(env, APPLICATION)
    for damage in ("", "[]", '{"home"'):
        env.stamp.write_text(damage)
        assert not environment.is_ready(env, APPLICATION)


def test_a_failing_pip_leaves_no_stamp_and_the_next_run_starts_anew(env, programs, monkeypatch):
    stand_in = environment.run_quietly

    def fail(command, doing, **changes):
        stand_in(command, doing, **changes)
        if command[-1].endswith("lock.txt"):
            raise SetUpError("no network")

    monkeypatch.setattr(environment, "run_quietly", fail)
    with pytest.raises(SetUpError):
        set_up(env, APPLICATION)
    half_made = env.folder / "half-made"
    half_made.touch()
    monkeypatch.setattr(environment, "run_quietly", stand_in)
    set_up(env, APPLICATION)
    assert not half_made.exists()
    assert environment.is_ready(env, APPLICATION)


# A set-up in a process of its own: argv is the checkout, and how long its "pip" takes.
SLOW_SET_UP = """
import sys
from pathlib import Path
from installer import environment

env = environment.Environment(Path(sys.argv[1]), "linux")

def stand_in(command, doing, **changes):
    if "venv" in command:
        env.program("python").parent.mkdir(parents=True)
        env.program("python").touch()
    else:
        (env.folder / "half-made").touch()
        print("pip", flush=True)
        sys.stdin.readline()

environment.run_quietly = stand_in
environment.set_up(env, environment.APPLICATION)
"""


def start_slow_set_up(env):
    """In pip it waits for a line of its input."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_SET_UP, str(env.root)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if line == "pip\n":
            return process
    raise AssertionError("the set-up did not get to pip")


def test_a_set_up_killed_in_the_middle_is_repaired_by_the_next_run(env, programs):
    process = start_slow_set_up(env)
    process.kill()
    process.communicate()
    assert (env.folder / "half-made").exists()
    assert not environment.is_ready(env, APPLICATION)
    set_up(env, APPLICATION)
    assert not (env.folder / "half-made").exists()
    assert environment.is_ready(env, APPLICATION)


def test_of_two_runs_at_once_the_second_waits_and_finds_all_done(env, programs, monkeypatch):
    process, said = start_slow_set_up(env), []

    def say(text):
        said.append(text)
        if "Another set-up of this folder is running" in text:
            process.stdin.close()  # it goes on when the second waits

    monkeypatch.setattr(environment, "say", say)
    set_up(env, APPLICATION)
    assert process.wait(120) == 0
    process.stdout.close()
    assert programs == []
    assert any("Another set-up" in text for text in said)


@posix
def test_a_pip_that_outlives_its_set_up_is_waited_for(tmp_path):
    lock, pipe = tmp_path / "lock", tmp_path / "pipe"
    os.mkfifo(pipe)
    program = (
        "import sys; from pathlib import Path\n"
        "from installer import console, environment\n"
        f"with environment.only_one_at_a_time(Path({str(lock)!r})):\n"
        f"    console.run_quietly(['cat', {str(pipe)!r}], 'Waiting')\n"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, cwd=ROOT)
    with pipe.open("w"):  # which waits for its reader
        process.kill()
        process.wait()
        with lock.open("a") as file:
            assert not environment.try_lock(file)
    with lock.open("a") as file:
        end = time.monotonic() + 120
        while not environment.try_lock(file):
            assert time.monotonic() < end, "the lock is never let go"
            time.sleep(0.01)


# torch


def offer_torch(env, requirement):
    metadata = env.packages / "torch-2.13.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True, exist_ok=True)
    metadata.write_text(f"Name: torch\nVersion: 2.13.0\nRequires-Dist: {requirement}\n")


def test_what_cuda_needs_is_installed_when_the_torch_that_came_asks_for_it(env, programs):
    environment.make_folder(env)
    offer_torch(env, "nvidia-cublas==13.1 ; sys_platform == 'linux'")
    environment.install_packages(env, APPLICATION)
    assert installed(programs)[-1] == "lock-cuda.txt"


def test_a_torch_without_cuda_brings_none_of_it(env, programs):
    environment.make_folder(env)
    offer_torch(env, "sympy>=1.13")
    environment.install_packages(env, WITH_TESTS)
    assert installed(programs) == ["lock-cpu.txt", "lock.txt", "lock-test.txt"]


def test_where_no_torch_without_cuda_is_offered_the_set_up_goes_on(env, programs, monkeypatch):
    stand_in = environment.run_quietly

    def nothing_offered(command, doing, **changes):
        stand_in(command, doing, **changes)
        if command[-1].endswith("lock-cpu.txt"):
            raise SetUpError("No matching distribution found")

    monkeypatch.setattr(environment, "run_quietly", nothing_offered)
    set_up(env, APPLICATION)
    assert environment.is_ready(env, APPLICATION)


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_other_systems_have_one_torch(env, programs, platform):
    elsewhere = Environment(env.root, platform)
    environment.install_packages(elsewhere, APPLICATION)
    assert installed(programs) == ["lock.txt"]
