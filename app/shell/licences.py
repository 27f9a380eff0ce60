"""Whose work the program stands on, and under which licence. No Qt here."""

from __future__ import annotations

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
    "platformdirs",
    "pillow",
    "rich",
    "PySide6-Essentials",
    "pyqtgraph",
    "qasync",
)
LONGEST: Final = 200_000  # characters of a licence text worth showing
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
        found.append(Licence(name, about["Version"], _licence_of(about)))
    return found


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


def _licence_of(about: metadata.PackageMetadata) -> str:
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
    return _field(about, "License").partition("\n")[0] or "not stated"


def _field(about: metadata.PackageMetadata, name: str) -> str:
    return str(about[name]).strip() if name in about else ""
