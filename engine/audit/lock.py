"""Installed packages against the lock files of the installer."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from engine.audit.licences import licence_of
from engine.files.folders import RESOURCES
from engine.spec.errors import RequestError

FOLDER: Final = RESOURCES.parent / "installer"
# What everybody gets; the CPU build of torch; what its CUDA build needs; what only tests need.
SHIPPED: Final = "lock.txt"
MAYBE_SHIPPED: Final = ("lock-cpu.txt", "lock-cuda.txt")
TESTS: Final = "lock-test.txt"
# The project itself, and pip, which the environment brings along.
OWN: Final = ("dualscope", "pip")
LARGEST: Final = 16 << 20


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    licence: str


@dataclass
class Pin:
    """The versions that were tested; several where torch comes in several builds."""

    versions: set[str] = field(default_factory=set)
    wanted: bool = False  # must be installed on this system
    shipped: bool = False
    hashed: bool = True


def installed(paths: Iterable[str] | None = None) -> dict[str, Package]:
    """Everything this Python would import from, by canonical name; the first found counts."""
    found: dict[str, Package] = {}
    where = sys.path if paths is None else list(paths)
    for one in metadata.distributions(path=where):
        about = one.metadata
        if about is None or not about["Name"]:
            continue  # the rest of a package that was removed
        name = canonicalize_name(about["Name"])
        found.setdefault(name, Package(name, str(about["Version"]), licence_of(about)))
    return found


def read_locks(folder: Path = FOLDER) -> dict[str, Pin]:
    """The pins of all lock files, by canonical name."""
    if not (folder / SHIPPED).is_file():
        raise RequestError(
            f"There is no lock file {folder / SHIPPED}: name its folder with --lock."
        )
    pins: dict[str, Pin] = {}
    for file in (SHIPPED, *MAYBE_SHIPPED, TESTS):
        path = folder / file
        if not path.is_file():
            continue
        for requirement, hashed in _entries(path):
            pin = pins.setdefault(canonicalize_name(requirement.name), Pin())
            pin.versions |= {one.version for one in requirement.specifier if one.operator == "=="}
            here = requirement.marker is None or requirement.marker.evaluate()
            pin.wanted |= file == SHIPPED and here
            pin.shipped |= file != TESTS
            pin.hashed &= hashed
    return pins


def _entries(path: Path) -> Iterable[tuple[Requirement, bool]]:
    try:
        if path.stat().st_size > LARGEST:
            raise RequestError(f"{path} is too large to be a lock file.")
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RequestError(f"{path} cannot be read as a lock file.") from error
    for entry in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE):
        if not entry.strip() or entry.startswith("#"):
            continue
        said, *rest = entry.replace("\\\n", " ").split(" --hash=")
        try:
            yield Requirement(said.partition("#")[0].strip()), bool(rest)
        except InvalidRequirement as error:
            raise RequestError(f"{path}: '{said.strip()[:80]}' is not a pinned package.") from error


def same_version(installed: str, pinned: Iterable[str]) -> bool:
    """Equal, apart from the label of a build ('2.13.0+cpu' is a build of 2.13.0)."""
    try:
        found = Version(installed)
        known = [Version(text) for text in pinned]
    except InvalidVersion:
        return installed in pinned
    plain = Version(found.public)
    return any(found == one or (not one.local and plain == one) for one in known)
