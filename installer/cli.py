"""The commands for a fresh machine, and those for whoever makes packages for others.

python -m installer                    set Dualscope up and run it on a demo
python -m installer test [OPTION ...]  set it up with the test tools and run every check;
                                       options go to pytest
python -m installer package -o OUT [--deb]
                                       make a folder OUT/dualscope that needs no Python, and a
                                       Debian package of it
python -m installer smoke FOLDER       run such a folder with everything else hidden from it
python -m installer wheel -o OUT       make the package for pip: the same bytes every time
python -m installer sbom -o FILE       write the bill of materials of this environment
python -m installer fuzz --minutes N   damaged inputs, guided by coverage where atheris is there
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from installer.console import SetUpError, child_environment, say
from installer.environment import APPLICATION, WITH_TESTS, Environment, set_up
from installer.system import provide_qt_libraries, provide_validators

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in ("package", "smoke", "wheel", "sbom", "fuzz"):
        from installer.package.command import main as package_main

        return package_main(arguments)
    if arguments and arguments[0] != "test":
        print(__doc__)
        return 0 if arguments[0] in ("-h", "--help") else 2
    env = Environment(ROOT)
    try:
        provide_qt_libraries()
        if arguments:
            provide_validators()
            set_up(env, WITH_TESTS)
            return run_tests(env, arguments[1:])
        set_up(env, APPLICATION)
        return run_demo(env)
    except SetUpError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"This folder cannot be used: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The same command takes it up again.", file=sys.stderr)
        return 130


def run_demo(env: Environment) -> int:
    output = env.root / "demo-output"
    display = has_display(sys.platform, os.environ)
    if display:
        say("Opening Dualscope on the CT demo ...")
    else:
        say(f"There is no display, so pictures of the demo go to {output} instead:")
    command = main_job(env, output, display)
    code = subprocess.run(command, cwd=env.root, env=child_environment()).returncode
    if code:
        print(f"The demo ended with exit code {code}; see above.", file=sys.stderr)
        return code
    if not display:
        say(f"The reconstruction is in {output / 'export'}.")
    say(f'From now on start Dualscope with: "{env.program("dualscope")}"')
    return 0


def main_job(env: Environment, output: Path, display: bool) -> list[str]:
    """The demo in the workstation; pictures of it where there is no display to show it on."""
    if display:
        return [str(env.program("dualscope")), "gui", "--demo", "ct"]
    return [str(env.program("python")), "-m", "app.tour", str(output), "--quick"]


def has_display(system: str, variables: Mapping[str, str]) -> bool:
    if system in ("win32", "darwin"):
        return True
    return bool(variables.get("DISPLAY") or variables.get("WAYLAND_DISPLAY"))


def run_tests(env: Environment, options: Sequence[str]) -> int:
    """Run every check, pytest last, so that its summary is what one reads."""
    python = str(env.program("python"))
    checks = {
        "ruff check": [python, "-m", "ruff", "check"],
        "ruff format --check": [python, "-m", "ruff", "format", "--check"],
        "mypy": [python, "-m", "mypy"],
        "lint-imports": [str(env.program("lint-imports")), "--no-cache", "--no-logo"],
    }
    failed = []
    for name, check in checks.items():
        say(f"Running: {name}")
        if subprocess.run(check, cwd=env.root, env=child_environment()).returncode:
            failed.append(name)
    command, variables = pytest_job(env, options)
    say("Running: pytest")
    code = subprocess.run(command, cwd=env.root, env=child_environment(**variables)).returncode
    if failed:
        say(f"Besides pytest: {' and '.join(failed)} failed, see above.")
    return code or int(bool(failed))


def pytest_job(env: Environment, options: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    # Processes of one thread each: several of many threads fight over the cores.
    workers = str(min(4, os.cpu_count() or 1))
    variables = {"QT_QPA_PLATFORM": "offscreen", "OMP_NUM_THREADS": "1"}
    return [str(env.program("python")), "-m", "pytest", "-n", workers, *options], variables
