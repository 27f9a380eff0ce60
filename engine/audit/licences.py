"""Whose work the program stands on, under which licence, and whether we may ship it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from typing import Final

# Run-time dependencies as pyproject.toml names them (a test compares the two).
DEPENDENCIES: Final = (
    "torch",
    "numpy",
    "scipy",
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
