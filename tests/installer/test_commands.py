"""What the two commands start on each system, and what people are told when something fails."""

import subprocess
import sys
from pathlib import Path

import pytest

from installer import cli, console
from installer.console import SetUpError
from installer.environment import Environment

# commands on each system


@pytest.mark.parametrize(
    ("platform", "python"),
    [
        ("linux", ".venv/bin/python"),
        ("darwin", ".venv/bin/python"),
        ("win32", ".venv/Scripts/python.exe"),
    ],
)
def test_the_environments_own_python_runs_pip_and_pytest(env, platform, python):
    here = Environment(env.root, platform)
    assert here.pip_install("x")[0] == str(env.root / python)
    command, variables = cli.pytest_job(here, ["-k", "cg"])
    assert command[0] == str(env.root / python)
    assert command[-2:] == ["-k", "cg"]
    assert variables["QT_QPA_PLATFORM"] == "offscreen"


def run_demo(env, monkeypatch, display, code=0):
    """What the demo starts, and where; its exit code."""
    started = []

    def stand_in(command, cwd, env):
        started.append((command, cwd))
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(cli.subprocess, "run", stand_in)
    monkeypatch.setattr(cli, "has_display", lambda system, variables: display)
    return started, cli.run_demo(env)


def test_with_a_display_the_workstation_opens_on_the_demo(env, monkeypatch, capsys):
    started, code = run_demo(env, monkeypatch, display=True)
    assert code == 0
    assert started == [([str(env.program("dualscope")), "gui", "--demo", "ct"], env.root)]
    assert "no display" not in capsys.readouterr().out


def test_without_a_display_it_says_so_and_leaves_pictures_and_the_reconstruction(
    env, monkeypatch, capsys
):
    started, code = run_demo(env, monkeypatch, display=False)
    output = env.root / "demo-output"
    assert code == 0
    tour = [str(env.program("python")), "-m", "app.tour", str(output), "--quick"]
    assert started == [(tour, env.root)]
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"There is no display, so pictures of the demo go to {output} instead:"
    assert said[1] == f"The reconstruction is in {output / 'export'}."


def test_a_demo_that_fails_is_the_commands_exit_code(env, monkeypatch, capsys):
    assert run_demo(env, monkeypatch, display=False, code=1)[1] == 1
    heard = capsys.readouterr()
    assert "exit code 1" in heard.err
    assert "The reconstruction" not in heard.out


def test_only_linux_can_lack_a_display():
    assert cli.has_display("win32", {})
    assert cli.has_display("darwin", {})
    assert cli.has_display("linux", {"WAYLAND_DISPLAY": "wayland-0"})
    assert not cli.has_display("linux", {"DISPLAY": ""})


@pytest.mark.parametrize(
    ("failing", "code"),
    [((), 0), (("mypy",), 1), (("lint-imports",), 1), (("pytest",), 5), (("ruff", "pytest"), 5)],
)
def test_the_test_command_fails_when_any_check_fails(env, monkeypatch, capsys, failing, code):
    order = []

    def stand_in(command, **options):
        name = command[2] if command[1] == "-m" else Path(command[0]).stem
        order.append(name)
        returncode = 5 if name in failing else 0
        return subprocess.CompletedProcess(command, returncode)

    monkeypatch.setattr(cli.subprocess, "run", stand_in)
    assert cli.run_tests(env, []) == code
    assert order == ["ruff", "ruff", "mypy", "lint-imports", "pytest"]


# failures, for people


def test_a_failing_program_shows_its_last_lines_and_what_to_do():
    program = "print('noise\\n' * 50); print('[Errno 28] No space left on device'); exit(3)"
    with pytest.raises(SetUpError) as failure:
        console.run_quietly([sys.executable, "-c", program], "Installing")
    message = str(failure.value)
    assert message.count("noise") < 20
    assert message.endswith(
        "Installing failed. The disk is full: about 3 GB are needed, 8 GB with CUDA."
    )


def test_a_changed_download_is_named_before_the_many_hashes_it_should_have_had():
    program = (
        "print('THESE PACKAGES DO NOT MATCH THE HASHES'); exit([print(f'  Expected or {i:064x}') "
    )
    program += "for i in range(99)])"
    with pytest.raises(SetUpError, match="A download differs"):
        console.run_quietly([sys.executable, "-c", program], "Installing")


def test_a_quiet_program_stays_quiet(capfd):
    console.run_quietly([sys.executable, "-c", "print('noise')"], "Installing")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("output", "word"),
    [
        ("NewConnectionError: Temporary failure in name resolution", "network"),
        ("ERROR: No matching distribution found for torch==2.13.0", "Apple silicon"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "differs"),
        ("something new", "report"),
    ],
)
def test_the_advice_fits_the_failure(output, word):
    assert word in console.advice(output)


def test_a_failed_set_up_is_the_commands_exit_code(monkeypatch, capsys):
    def fail():
        raise SetUpError("Please type: x")

    monkeypatch.setattr(cli, "provide_qt_libraries", fail)
    assert cli.main([]) == 1
    assert capsys.readouterr().err == "Please type: x\n"


def test_an_unknown_command_gets_the_two_that_exist(capsys):
    assert cli.main(["tset"]) == 2
    assert "python -m installer test" in capsys.readouterr().out
