"""Whose work the folder holds: every file that PyInstaller lists, traced to its maker.

What nobody answers for, or nobody may pass on, stops the build.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Final

from engine import __version__
from engine.audit.licences import FILE_WORDS, licence_of, read_locks, refused
from installer.package.contents import DATA, OWN, ROOT, SYSTEM_LIBRARIES, Entry

# GPL, whatever their metadata say; the program uses them where a person has installed them.
PLUG_INS: Final = re.compile(r"astra-toolbox|(?:.*-)?torch-radon|pyqt\d.*")
# SPDX names that the audit's list, made for Python packages, does not know.
BOOTLOADER: Final = "GPL-2.0-or-later WITH Bootloader-exception"
ALSO_FREE: Final = ("bzip2-1.0.6", "blessing", BOOTLOADER)
TEXTS: Final = Path(__file__).resolve().parent / "texts"
LGPL: Final = "LGPL-3.0-only"
# What one installed package brings along under another name.
INSIDE: Final = {
    "pyside6-essentials": ("Qt", LGPL, ("LGPL-3.0.txt", "GPL-3.0.txt")),
    "pyjpegls": ("CharLS", "BSD-3-Clause", ("CharLS.txt",)),
}

Hashes = Mapping[str, tuple[str, ...]]


class Refused(Exception):
    """The folder would hold what we may not pass on; the message says what and why."""


@dataclass(frozen=True)
class Part:
    """One piece of somebody's work, as it lies in the folder."""

    name: str
    version: str
    licence: str
    kind: str = "library"
    purl: str = ""
    sha256: str = ""
    texts: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # file name, text
    allowed: tuple[str, ...] = ()  # sha256 of each file that it may have been installed from


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def check(parts: Iterable[Part]) -> None:
    """Stop at the first part that we may not pass on, or whose licence we could not show."""
    for part in parts:
        unfree = refused(part.licence) and part.licence not in ALSO_FREE
        if unfree or PLUG_INS.fullmatch(canonical(part.name)):
            raise Refused(
                f"{part.name} {part.version} ({part.licence}) may not be packaged: its licence "
                "does not allow it beside Apache-2.0; remove it from the build environment."
            )
        if part.kind == "library" and not part.texts:
            raise Refused(f"{part.name} {part.version} came without the text of its licence.")


def bundled(entries: Iterable[Entry], work: Path, hashes: Hashes) -> list[Part]:
    """The parts that the listed files come from.

    ``work`` is where PyInstaller keeps what it makes itself.
    """
    owners = {
        os.path.realpath(str(one.locate_file(file))): one
        for one in metadata.distributions()
        for file in one.files or ()
    }
    ours = [ROOT / name for name in (*OWN, "installer", *(source for source, _ in DATA))]
    made = (*ours, Path(os.path.realpath(work)), *map(Path, _folders_of_python()))
    packages: dict[int, metadata.Distribution] = {}  # by identity: metadata are slow to read
    parts = []
    for place, source, _ in entries:
        path = Path(os.path.realpath(source))
        if str(path) in owners:
            one = owners[str(path)]
            packages[id(one)] = one
        elif not path.is_file() or any(path.is_relative_to(folder) for folder in made):
            continue  # ours, Python's, or made by PyInstaller of theirs
        elif path.name.startswith(tuple(SYSTEM_LIBRARIES)):
            parts.append(_of_library(path))
        else:
            raise Refused(f"{place} may not be packaged: nobody says whose it is ({path}).")
    for one in packages.values():
        parts += of_distribution(one, hashes)
    parts += [_ourselves(), _python(), _bootloader(), *_priors()]
    unique = {part.name: part for part in parts}
    return sorted(unique.values(), key=lambda part: part.name.casefold())


def installed_parts() -> list[Part]:
    """What this environment holds of that which everybody gets, with the hashes of the locks."""
    pins = read_locks()
    hashes = {name: tuple(sorted(pin.hashes)) for name, pin in pins.items() if pin.shipped}
    found = [_ourselves(), _python(), *_priors()]
    for name in sorted(hashes):
        try:
            found += of_distribution(metadata.distribution(name), hashes)
        except metadata.PackageNotFoundError:
            continue  # of another system
    return found


def of_distribution(one: metadata.Distribution, hashes: Hashes) -> list[Part]:
    """An installed package, and what is inside it under another name."""
    name, version = str(one.metadata["Name"]), one.version
    key = canonical(name)
    if key == "pyinstaller":
        return []  # what it leaves in the folder is its bootloader, which has an exception
    licence = licence_of(one.metadata)
    if key == "pyinstaller-hooks-contrib":
        licence = "Apache-2.0"  # of its run-time hooks, the only ones that are taken along
    if re.match(r"LGPL-3\.0-only OR ", licence):
        licence = LGPL  # of the choice that Qt leaves, ours
    known = hashes.get(key, ())
    part = Part(
        name,
        version,
        licence,
        purl=f"pkg:pypi/{key}@{version.replace('+', '%2B')}",
        sha256=known[0] if len(known) == 1 else "",  # of several files we do not know which
        allowed=known,
        texts=_texts(one, licence),
    )
    if key not in INSIDE:
        return [part]
    inner, terms, files = INSIDE[key]
    number = version if inner == "Qt" else ""
    purl = f"pkg:generic/{inner.lower()}" + (f"@{number}" if number else "")
    return [part, Part(inner, number, terms, purl=purl, texts=_stored(*files))]


def _texts(one: metadata.Distribution, licence: str) -> tuple[tuple[str, str], ...]:
    """The licence files that came with a package; where it forgot them, the licence's own."""
    found = []
    for file in one.files or ():
        path = Path(str(one.locate_file(file)))
        if file.name.lower().startswith(FILE_WORDS) and path.suffix not in (".py", ".pyc"):
            place = "/".join(part for part in file.parts if part != "..")
            found.append((place, path.read_text(encoding="utf-8", errors="replace")))
    if found:
        return tuple(found)
    if licence == LGPL:
        return _stored("LGPL-3.0.txt", "GPL-3.0.txt")
    if licence.startswith("MIT"):
        about = one.metadata
        authors = [str(about[key]) for key in ("Author", "Author-email") if key in about]
        ((name, text),) = _stored("MIT.txt")
        return ((name, f"Copyright (c) {', '.join(authors)}\n\n{text}"),)
    return ()


def _stored(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, (TEXTS / name).read_text(encoding="utf-8")) for name in names)


def _folders_of_python() -> set[str]:
    """Where a file that came with Python lies; in /usr it shares its folder with everything."""
    folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    if sys.base_prefix not in ("/usr", "/usr/local"):
        folders.add(sys.base_prefix)
    return set(map(os.path.realpath, folders))


def _ourselves() -> Part:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    purl = f"pkg:generic/dualscope@{__version__}"
    return Part(
        "Dualscope", __version__, "Apache-2.0", "application", purl, "", (("LICENSE", text),)
    )


def _python() -> Part:
    version = platform.python_version()
    places = (
        Path(sysconfig.get_path("stdlib")) / "LICENSE.txt",
        Path(sys.base_prefix) / "LICENSE.txt",
        Path(f"/usr/share/doc/python3.{sys.version_info.minor}/copyright"),  # Debian's
    )
    found = [file.read_text(encoding="utf-8") for file in places if file.is_file()]
    texts = tuple(("LICENSE.txt", text) for text in found[:1])
    purl = f"pkg:generic/python@{version}"
    return Part("Python", version, "PSF-2.0", purl=purl, texts=texts)


def _bootloader() -> Part:
    """The executable itself; the exception in PyInstaller's licence is for exactly this."""
    try:
        one = metadata.distribution("pyinstaller")
    except metadata.PackageNotFoundError as error:
        raise Refused("PyInstaller is not installed here, so nothing can be packaged.") from error
    purl = f"pkg:pypi/pyinstaller@{one.version}"
    texts = _texts(one, BOOTLOADER)
    return Part("PyInstaller bootloader", one.version, BOOTLOADER, purl=purl, texts=texts)


def _priors() -> list[Part]:
    """The networks, with what their own headers say of them."""
    found = []
    for file in sorted((ROOT / "resources" / "priors").glob("*.safetensors")):
        content = file.read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        about = header["__metadata__"]
        digest = hashlib.sha256(content).hexdigest()
        kind = "machine-learning-model"
        terms = about["licence"].partition(" ")[0]
        found.append(Part(about["name"], about["version"], terms, kind, sha256=digest))
    return found


def _of_library(path: Path) -> Part:
    """A library of the system that Python is linked to; the system's packages know more of it."""
    named = (licence for name, licence in SYSTEM_LIBRARIES.items() if path.name.startswith(name))
    licence = next(named)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    part = Part(path.name.partition(".so")[0], "", licence, sha256=digest)
    if not shutil.which("dpkg-query"):
        return part
    paths = [str(path), str(path).removeprefix("/usr")]  # as dpkg knew it before the two merged
    package = _said("dpkg-query", "--search", *paths).partition(":")[0]
    version = _said("dpkg-query", "--show", "--showformat", "${Version}", package)
    copyright_file = Path("/usr/share/doc") / package / "copyright"
    if not package or not copyright_file.is_file():
        return part
    text = copyright_file.read_text(encoding="utf-8", errors="replace")
    system = platform.freedesktop_os_release()["ID"]
    purl = f"pkg:deb/{system}/{package}@{version.replace('+', '%2B').replace('~', '%7E')}"
    return replace(part, version=version, purl=purl, texts=(("copyright", text),))


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
