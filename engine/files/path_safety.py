r"""Where a file may send the program.

A workspace or a run record names its data, and may have been written by anybody. What it names
is only ever read, but even that can harm: a network address gives the person's password hash to
whoever answers (Windows logs in by itself), a device or pipe may never end, and a whole drive
takes an hour to search. What a person types or chooses is not checked here.
"""

from __future__ import annotations

import re
import sys
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


def check_regular(path: Path) -> None:
    """Refuse pipes and devices, which may never end; a missing file is the reader's to tell."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise RequestError(f"{path} is neither a file nor a folder.")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
