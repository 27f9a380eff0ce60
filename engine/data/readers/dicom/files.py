"""Finding DICOM files: a file, a folder with all its folders, or what a DICOMDIR lists."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pydicom

from engine.data.readers.dicom.magic import is_dicom
from engine.data.readers.dicom.scan import open_file, quiet_pydicom
from engine.spec.errors import RequestError

SUFFIXES = (".dcm", ".dicom", ".ima")
MAX_FILES = 100_000
DIRECTORY_CLASS = re.compile(rb"1\.2\.840\.10008\.1\.3\.10(?![0-9.])")
REFERENCE = 0x00041500  # ReferencedFileID


def find_files(path: Path) -> tuple[list[Path], list[str]]:
    """The files to look into, in a fixed order, and what to say about the others."""
    if path.is_dir():
        return files_in_folder(path), []
    if not path.is_file():
        raise RequestError(f"{path} is neither a file nor a folder.")
    if path.name.upper() == "DICOMDIR" or is_directory_file(path):
        return files_of_dicomdir(path)
    return [path], []


def files_in_folder(folder: Path) -> list[Path]:
    found = list(islice(walk_folder(folder), MAX_FILES + 1))
    if len(found) > MAX_FILES:
        raise RequestError(f"{folder} holds more than {MAX_FILES} DICOM files: give a part.")
    return found


def walk_folder(folder: Path) -> Iterator[Path]:
    """All regular files below that say they are DICOM, or are named so."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            if name.upper() == "DICOMDIR" or not _is_file(path):
                continue
            if is_dicom(path) or name.lower().endswith(SUFFIXES):
                yield path


def _is_file(path: Path) -> bool:
    """False also for what may not even be looked at."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_directory_file(path: Path) -> bool:
    """A DICOMDIR by another name: the class in its meta header tells."""
    try:
        with path.open("rb") as stream:
            return DIRECTORY_CLASS.search(stream.read(512)) is not None
    except OSError:
        return False


def files_of_dicomdir(path: Path) -> tuple[list[Path], list[str]]:
    """The files a DICOMDIR names, as far as they exist and lie beside or below it."""
    with quiet_pydicom(path), open_file(path) as stream:
        data = pydicom.dcmread(stream, force=True, stop_before_pixels=True)
        records = list(data.get("DirectoryRecordSequence") or [])
        names = [_parts(record[REFERENCE].value) for record in records if REFERENCE in record]
    root = path.parent.resolve()
    files: dict[Path, None] = {}
    missing = outside = 0
    for parts in names[:MAX_FILES]:
        file = _inside(root, parts)
        if file is None:
            outside += 1
        elif file.is_file():
            files[path.parent / file.relative_to(root)] = None
        else:
            missing += 1
    warnings = []
    if outside:
        warnings.append(f"{outside} files named by the DICOMDIR are outside its folder; refused.")
    if missing:
        warnings.append(f"{missing} files named by the DICOMDIR are not there.")
    if not files:
        raise RequestError(f"{path} is a DICOMDIR that names no file which is there.")
    return list(files), warnings


def _parts(value: object) -> list[str]:
    return [value] if isinstance(value, str) else [str(part) for part in value or []]  # type: ignore[attr-defined]


def _inside(root: Path, parts: list[str]) -> Path | None:
    """``root``/parts, links resolved; None when that is not below ``root``."""
    if not parts or any(not p or p in (".", "..") or set(p) & set("/\\:\0") for p in parts):
        return None
    for names in (parts, [part.lower() for part in parts]):
        file = root.joinpath(*names).resolve()
        if not file.is_relative_to(root):
            return None
        if file.is_file():
            break
    return file
