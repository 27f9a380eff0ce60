r"""Where a file may send the program.

A workspace or a run record names its data, and may have been written by anybody. What it names
is only ever read, but even that can harm: a network address gives the person's password hash to
whoever answers (Windows logs in by itself), a device or pipe may never end, and a whole drive
takes an hour to search. What a person types or chooses is not checked here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath

from engine.spec.errors import RequestError

SYSTEM_FOLDERS, MEMORY = ("/dev", "/proc", "/sys"), "/dev/shm"
DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\..*)?", re.IGNORECASE)
LONGEST = 200


def is_network(text: str) -> bool:
    """An address of another computer, however it is spelled ('\\\\server\\share', 'smb://…')."""
    return re.match(r"[/\\]{2}|[A-Za-z][A-Za-z0-9+.-]+://", text) is not None


def fault_of_place(text: str, network: bool = False) -> str:
    """What a file must not name, in words; ``network`` when a person has agreed to addresses."""
    if is_network(text):
        return "" if network else f"data on another computer ({_short(text)})"
    windows, path = PureWindowsPath(text), PurePosixPath(Path(text).absolute().as_posix())
    inside = any(path.is_relative_to(folder) for folder in SYSTEM_FOLDERS)
    device = sys.platform == "win32" and any(map(DEVICE.fullmatch, windows.parts))
    if device or (inside and not path.is_relative_to(MEMORY)):
        return f"a device ({_short(text)})"
    if path == path.parent or (windows.drive and len(windows.parts) == 1):
        return f"a whole drive ({_short(text)})"
    return ""


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """What the system says of a file that cannot be read, in one sentence."""
    try:
        yield
    except OSError as error:
        raise RequestError(f"Cannot read {path}: {error.strerror or error}.") from error


def check_regular(path: Path) -> None:
    """Refuse pipes and devices, which may never end; a missing file is the reader's to tell.

    Links are followed: what counts is what would be opened.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise RequestError(f"{path} is neither a file nor a folder.")


def check_apart(targets: Iterable[Path], sources: Iterable[Path]) -> None:
    """Refuse to write what is read, by whatever name or link, or a folder that holds it."""
    read = {key: source for source in sources if (key := _identity(source)) is not None}
    places = [source.resolve() for source in read.values()]
    for target in targets:
        key = _identity(target)
        if key is None:
            continue
        here, found = target.resolve(), read.get(key)
        if found is None and target.is_dir():
            inside = [_identity(entry) for entry in target.iterdir()]
            found = next((read[one] for one in inside if one in read), None) or next(
                (place for place in places if place.is_relative_to(here)), None
            )
        if found is not None:
            what = "holds" if target.is_dir() and found.resolve() != here else "is"
            raise RequestError(
                f"{target} {what} {found.name}, which this run reads: name another output "
                "(⟦overwrite⟧ does not replace inputs)."
            )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if status.st_ino else None


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
