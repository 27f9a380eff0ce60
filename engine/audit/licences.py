"""Whose work the program stands on, under which licence, and whether we may ship it."""

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

from engine.files.folders import RESOURCES
from engine.spec.errors import RequestError

# Run-time dependencies as pyproject.toml names them (a test compares the two).
DEPENDENCIES: Final = (
    "torch",
    "numpy",
    "scipy",
    "numba",
    "h5py",
    "pydicom",
    "python-gdcm",
    "pyjpegls",
    "pylibjpeg",
    "pylibjpeg-openjpeg",
    "nibabel",
    "safetensors",
    "packaging",
    "platformdirs",
    "pillow",
    "rich",
    "PySide6-Essentials",
    "pyqtgraph",
    "qasync",
    "distributed",
    "cryptography",
)
LONGEST: Final = 200_000  # characters of a licence text worth showing
# Licences that let us pass a package on beside Apache-2.0; LGPL as Qt is: a library of its own.
ALLOWED: Final = re.compile(
    r"apache.*|(?:new |modified |[02-4]-clause )?bsd\b.*|0bsd|(?:the )?mit\b.*|x11|isc\b.*|psf.*"
    r"|python.*|(?:gnu )?(?:lgpl|lesser general public|library or lesser general).*|mpl[- ]?2.*"
    r"|mozilla public license 2.*|hpnd.*|historical permission.*|zlib.*|libpng.*|bsl-1\.0|boost.*"
    r"|(?:the )?unlicense.*|cc0.*|public domain|ncsa.*|gpl-[23].* with gcc-exception.*"
    r"|nvidia proprietary.*|licenseref-nvidia.*",
    re.IGNORECASE,
)
COPYLEFT: Final = re.compile(
    r"\bA?GPL(?!.* with gcc-exception)|affero|gnu general public", re.IGNORECASE
)
NOT_STATED: Final = "not stated"
FILE_WORDS: Final = ("license", "licence", "copying", "notice")


@dataclass(frozen=True)
class Licence:
    package: str
    version: str
    licence: str


def licences() -> list[Licence]:
    """Of every dependency that is installed, by name."""
    found = []
    for name in sorted(DEPENDENCIES, key=str.casefold):
        try:
            about = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        found.append(Licence(name, about["Version"], licence_of(about)))
    return found


def refused(licence: str) -> bool:
    """Whether a licence forbids shipping the package; one that is unknown does, too.

    Of alternatives (OR) one must be allowed, of parts (AND, or several classifiers) every one.
    """
    text = re.sub(r"[()]", " ", licence).strip()
    if not text or text == NOT_STATED:
        return True
    if "(" in licence and re.search(r"\bOR\b", licence) and re.search(r"\bAND\b", licence):
        # an expression with both is judged part by part: strict, and rare
        return any(map(_forbidden, re.split(r"\s+(?:OR|AND)\s+", text)))
    alternatives = re.split(r"\s+OR\s+", text)
    return all(
        any(_forbidden(part) for part in re.split(r"\s+AND\s+|,\s*", alternative))
        for alternative in alternatives
    )


def _forbidden(name: str) -> bool:
    name = " ".join(name.split())
    return ALLOWED.fullmatch(name) is None or COPYLEFT.search(name) is not None


def licence_text(package: str) -> str:
    """The texts that came with the package, one after the other."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        files = []
    texts = []
    for file in files:
        if any(file.name.lower().startswith(word) for word in FILE_WORDS):
            try:
                texts.append(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if sum(map(len, texts)) > LONGEST:
                break
    whole = "\n\n".join(text.strip() for text in texts if text)[:LONGEST]
    return whole or "This package came without the text of its licence; its site has it."


def licence_of(about: metadata.PackageMetadata) -> str:
    """The new field, else the old classifier, else the first line of the old field."""
    if expression := _field(about, "License-Expression"):
        return expression
    kinds = [
        entry.rpartition(" :: ")[2]
        for entry in about.get_all("Classifier") or []
        if entry.startswith("License :: ")
    ]
    if kinds:
        return ", ".join(kinds)
    return _field(about, "License").partition("\n")[0] or NOT_STATED


def _field(about: metadata.PackageMetadata, name: str) -> str:
    return str(about[name]).strip() if name in about else ""


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
    hashes: set[str] = field(default_factory=set)  # sha256 of every file that may be installed


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
            f"There is no lock file {folder / SHIPPED}: name its folder with ⟦lock⟧."
        )
    pins: dict[str, Pin] = {}
    for file in (SHIPPED, *MAYBE_SHIPPED, TESTS):
        path = folder / file
        if not path.is_file():
            continue
        for requirement, hashes in _entries(path):
            pin = pins.setdefault(canonicalize_name(requirement.name), Pin())
            pin.versions |= {one.version for one in requirement.specifier if one.operator == "=="}
            here = requirement.marker is None or requirement.marker.evaluate()
            pin.wanted |= file == SHIPPED and here
            pin.shipped |= file != TESTS
            pin.hashed &= bool(hashes)
            pin.hashes |= hashes
    return pins


def _entries(path: Path) -> Iterable[tuple[Requirement, set[str]]]:
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
        hashes = {one.strip().removeprefix("sha256:") for one in rest}
        try:
            yield Requirement(said.partition("#")[0].strip()), hashes
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
