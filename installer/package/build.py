"""``python -m installer package``: the program as one folder that needs no Python.

OUT/build holds the build's own environment, made from the lock files, and what PyInstaller
leaves behind; a second build is quicker for it. OUT/dualscope is the result, put there when it
is complete.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

from engine.spec.errors import RequestError
from installer.console import run_quietly, say
from installer.environment import Environment, set_up, torch_wants_cuda
from installer.package.bundled import Refused, check, of_distribution
from installer.package.contents import ROOT
from installer.package.deb import make_deb
from installer.package.papers import LICENCES, SBOM, VERSIONS

LOCKS: Final = ("lock.txt", "lock-build.txt")
INSIDE: Final = "_internal"  # PyInstaller's name for everything but the executable
PACKAGE: Final = ROOT / "installer" / "package"


def package(out: Path, deb: bool = False) -> Path:
    """Build the folder, and the Debian package of it; where the folder is."""
    if deb and not shutil.which("dpkg-deb"):
        raise RequestError("--deb needs dpkg-deb, which Debian and Ubuntu have.")
    out = out.resolve()
    work = out / "build"
    work.mkdir(parents=True, exist_ok=True)
    env = Environment(ROOT, place=work / "environment")
    set_up(env, LOCKS)
    check_environment(env)
    python = str(env.program("python"))
    say("Drawing the icons ...")
    module = [python, "-m", "installer.package.icons", str(work / "icons")]
    run_quietly(module, "Drawing the icons", PYTHONPATH=str(ROOT))
    say("Packaging with PyInstaller (some minutes) ...")
    built = run_pyinstaller(python, work)
    strip_symbols(built)
    folder = put_in_place(built, out)
    say(f"{folder}: {megabytes(folder):.0f} MB.")
    if deb:
        say("Making the Debian package ...")
        file = make_deb(folder, out, work / "icons")
        say(f"{file}: {file.stat().st_size / 1e6:.0f} MB.")
    return folder


def check_environment(env: Environment) -> None:
    """Refuse at once what PyInstaller would take minutes to find."""
    if env.system == "linux" and torch_wants_cuda(env):
        raise RequestError(
            "The package takes torch without CUDA, and pip found none: name an index that has it, "
            "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu, and remove "
            f"{env.folder}."
        )
    installed = metadata.distributions(path=[str(env.packages)])
    try:
        check(part for one in installed for part in of_distribution(one, {}))
    except Refused as refusal:
        raise RequestError(str(refusal)) from refusal


def run_pyinstaller(python: str, work: Path) -> Path:
    """Where the finished folder (on macOS: the app) lies."""
    refusal, products = work / "refused.txt", work / "products"
    refusal.unlink(missing_ok=True)
    for old in ("papers", "products"):
        shutil.rmtree(work / old, ignore_errors=True)
    command = [python, "-I", "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    command += ["--distpath", str(products), "--workpath", str(work / "pyinstaller")]
    try:
        run_quietly(
            [*command, str(PACKAGE / "dualscope.spec")], "Packaging", DUALSCOPE_WORK=str(work)
        )
    finally:
        if refusal.is_file():
            raise RequestError(refusal.read_text(encoding="utf-8"))
    return products / ("Dualscope.app" if sys.platform == "darwin" else "dualscope")


def strip_symbols(built: Path) -> None:
    """Names for debuggers are a quarter of torch; macOS and Windows keep them elsewhere."""
    strip = shutil.which("strip")
    if sys.platform != "linux" or strip is None:
        return
    for pattern in ("torch/lib/libtorch_*.so", "libpython*.so*"):
        for library in (built / INSIDE).glob(pattern):
            run_quietly([strip, "--strip-unneeded", str(library)], "Stripping a library")


def put_in_place(built: Path, out: Path) -> Path:
    """Papers where people look for them, then the whole in place of an older one."""
    if (built / INSIDE).is_dir():  # a macOS app is sealed and keeps them inside
        for name in (LICENCES, SBOM, VERSIONS, "LICENSE"):
            os.replace(built / INSIDE / name, built / name)
    target = out / built.name
    if target.exists():
        shutil.rmtree(target)
    os.replace(built, target)
    return target


def megabytes(folder: Path) -> float:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e6
