"""What Debian and Ubuntu must provide: Qt's libraries, a font, validators for the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from installer.console import SetUpError, run_quietly, say

QT_PACKAGES = (
    "libegl1",
    "libgl1",
    "libglib2.0-0",
    "libxkbcommon-x11-0",
    "libxcb-cursor0",
    "libxcb-icccm4",
    "libxcb-keysyms1",
    "libxcb-shape0",
    "libdbus-1-3",
    "libfontconfig1",
    "fonts-dejavu-core",
)
VALIDATORS = ("dicom3tools", "dcmtk", "dcm2niix")


def has_apt() -> bool:
    return bool(shutil.which("dpkg-query") and shutil.which("apt-get"))


def is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def missing(packages: Sequence[str]) -> list[str]:
    """Those of the Debian packages that are not installed."""
    # Releases since 2024 have renamed some libraries: libglib2.0-0 is now libglib2.0-0t64.
    names = [*packages, *(f"{package}t64" for package in packages)]
    answer = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", *names],
        capture_output=True,
        text=True,
    ).stdout
    there = {
        line.split()[0].removesuffix("t64")
        for line in answer.splitlines()
        if line.endswith(" installed")
    }
    return [package for package in packages if package not in there]


def apt_line(packages: Sequence[str]) -> str:
    return "sudo apt-get install " + " ".join(packages)


def apt_install(packages: Sequence[str]) -> None:
    apt = ["apt-get", "--quiet", "--option", "DPkg::Lock::Timeout=120"]
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run_quietly([*apt, "update"], "apt-get update", **quiet)
    install = [*apt, "install", "--yes", "--no-install-recommends", *packages]
    run_quietly(install, "apt-get install", **quiet)


def provide_qt_libraries() -> None:
    """Install Qt's libraries where we may, else say how; never a reason to stop."""
    _provide(QT_PACKAGES, "system libraries for the window", "the window may not open")


def provide_validators() -> None:
    """Other people's DICOM programs, which the tests compare with; without them those skip."""
    _provide(VALIDATORS, "programs that check DICOM files", "the tests that use them are skipped")


def _provide(packages: Sequence[str], what: str, otherwise: str) -> None:
    wanted = missing(packages) if has_apt() else []
    if not wanted:
        return
    if not is_root():
        say(f"Some {what} are missing: {otherwise} until you type\n    {apt_line(wanted)}")
        return
    say(f"Installing {len(wanted)} {what} ...")
    try:
        apt_install(wanted)
    except SetUpError as error:
        say(f"{error}\nGoing on without: {otherwise} until you have typed\n    {apt_line(wanted)}")


def provide_venv_module() -> None:
    """Debian splits ``ensurepip`` off Python; without it no environment can be made."""
    package = f"python3.{sys.version_info.minor}-venv"
    if not has_apt():
        raise SetUpError(
            f"{sys.executable} has no ensurepip module, which a private environment needs: "
            "install the package of your system that adds it, or Python from its makers."
        )
    if not is_root():
        raise SetUpError(
            f"Python's venv module is incomplete here. Please type:\n"
            f"    {apt_line([package])}\nand then the same command again."
        )
    say("Installing Python's venv module ...")
    apt_install([package])
