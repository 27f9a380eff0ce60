"""Which input several files together mean; looks into them, so it runs off the GUI thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.data.readers.dicom.magic import is_dicom
from engine.spec.errors import RequestError

ONE = "Drop one file, one folder, or the DICOM files of one folder."
# Files that only describe or complete the one beside them.
COMPANIONS = {".json": None, ".hdr": (".cfl",), ".raw": (".mhd", ".nhdr"), ".bin": (".mhd",)}
DICOM_NAMES = (".dcm", ".dicom", ".ima")


def input_of(paths: Sequence[str]) -> str:
    """The file or folder to open; a RequestError says why there is none."""
    files = [Path(path) for path in paths]
    main = [file for file in files if not _completes(file, files)]
    if len(main) == 1:
        return str(main[0])
    if any(file.is_dir() for file in files):
        raise RequestError(f"{len(files)} things were dropped, a folder among them. {ONE}")
    folders = {file.parent for file in files}
    if len(folders) > 1:
        raise RequestError(f"{len(files)} files of {len(folders)} folders were dropped. {ONE}")
    if not all(is_dicom(file) or file.suffix.lower() in DICOM_NAMES for file in files):
        raise RequestError(f"{len(files)} files were dropped and not all are DICOM. {ONE}")
    return str(folders.pop())


def _completes(file: Path, files: Sequence[Path]) -> bool:
    """Whether another of the files has the same name and is what this one belongs to."""
    suffix = file.suffix.lower()
    if suffix not in COMPANIONS:
        return False
    wanted = COMPANIONS[suffix]
    return any(
        other != file
        and other.with_suffix("") == file.with_suffix("")
        and (wanted is None or other.suffix.lower() in wanted)
        for other in files
    )
