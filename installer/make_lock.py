"""Write the lock files afresh from pyproject.toml: ``python installer/make_lock.py``.

Needs ``uv`` on the PATH, which resolves for every system and Python at once. The four files:

lock.txt        the application
lock-test.txt   what the tests need on top
lock-build.txt  what packaged builds are made with, on top
lock-cuda.txt   what the CUDA build of torch needs on top; the CPU and macOS builds do without

They hold the newest versions that pyproject.toml allows, the same on every system. A new torch
also needs new hashes in lock-cpu.txt, which is kept by hand.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

PYTHONS = ("3.11", "3.12", "3.13")
SYSTEMS = (
    "x86_64-manylinux_2_34",
    "aarch64-manylinux_2_39",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)

CUDA_PACKAGE = re.compile(r"nvidia-|cuda-|triton$")


def compiled(*arguments: str) -> dict[str, str]:
    """Resolve pyproject.toml; the lines of each package (pin and hashes) by its name."""
    command = ["uv", "pip", "compile", "pyproject.toml", "--universal", "--generate-hashes"]
    command += ["--python-version", PYTHONS[0], "--fork-strategy", "fewest", "--no-header"]
    command += ["--only-binary", ":all:", "--no-annotate", "--quiet", *arguments]
    text = subprocess.run(
        command, cwd=HERE.parent, check=True, capture_output=True, text=True
    ).stdout
    entries: dict[str, str] = {}
    for entry in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE):
        if entry.strip():
            entries[re.split(r"[=\[]", entry, maxsplit=1)[0]] = entry
    return entries


def write(file: str, purpose: str, entries: dict[str, str]) -> None:
    header = f"# {purpose}\n# Written by installer/make_lock.py; change pyproject.toml instead.\n"
    (HERE / file).write_text(header + "".join(entries.values()), encoding="utf-8")
    print(f"{file}: {len(entries)} packages")


def check_every_system() -> None:
    """Fail unless each system and Python we support finds a ready-made file of everything."""
    files = ("lock.txt", "lock-test.txt", "lock-build.txt", "lock-cuda.txt")
    locks = [f"-r{HERE / file}" for file in files]
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"}
    for system in SYSTEMS:
        for python in PYTHONS:
            with tempfile.TemporaryDirectory() as nowhere:
                command = ["uv", "pip", "install", "--dry-run", "--quiet", "--target", nowhere]
                command += ["--python-platform", system, "--python-version", python, *locks]
                command += ["--only-binary", ":all:", "--require-hashes", "--no-deps"]
                subprocess.run(command, check=True, env=environment)
            print(f"complete for {system}, Python {python}")


def main() -> None:
    everything = compiled("--extra", "test", "--extra", "package")
    with tempfile.TemporaryDirectory() as folder:
        # one version of a package in all files
        pins = Path(folder) / "pins.txt"
        pins.write_text("".join(everything.values()), encoding="utf-8")
        application = compiled("--constraints", str(pins))
        tests = compiled("--constraints", str(pins), "--extra", "test")
        build = compiled("--constraints", str(pins), "--extra", "package")
    cuda = {name: entry for name, entry in application.items() if CUDA_PACKAGE.match(name)}
    write("lock.txt", "The application.", {n: e for n, e in application.items() if n not in cuda})
    write(
        "lock-test.txt",
        "What the tests need on top.",
        {n: e for n, e in tests.items() if n not in application},
    )
    write(
        "lock-build.txt",
        "What packaged builds are made with, on top of the application.",
        {n: e for n, e in build.items() if n not in application},
    )
    write("lock-cuda.txt", "What the CUDA build of torch needs on top (Linux).", cuda)
    check_every_system()


if __name__ == "__main__":
    main()
