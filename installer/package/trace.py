"""Which files a program opens, by strace: a packaged one must not lean on its builder's machine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

# A call that succeeded, with the path it was given.
CALL: Final = re.compile(r'(?:open|openat|execve)\((?:[^"]*, )?"(/[^"]*)".*\) = \d')
SYSTEM: Final = (
    *("/bin/", "/sbin/", "/lib/", "/lib64/", "/usr/", "/etc/", "/proc/", "/sys/", "/dev/"),
    *("/var/", "/run/"),
)
# Python has a home below /usr, too.
PYTHONS: Final = re.compile(r"/site-packages/|/dist-packages/|/python3[.\d]*/|/python3[.\d]*$")


def traced(command: Sequence[str], file: Path) -> list[str]:
    """The same command under strace; as it is where there is none."""
    strace = shutil.which("strace")
    if strace is None:
        return list(command)
    calls = ["-e", "trace=open,openat,execve", "--seccomp-bpf"]  # stops at these calls only
    return [strace, "-f", "-qq", *calls, "-o", str(file), *command]


def foreign_files(trace: Path, own: Iterable[Path]) -> list[str]:
    """What was opened and is neither the program's own nor the system's, each once."""
    mine = tuple(f"{folder}/" for folder in own)
    found: dict[str, None] = {}
    with trace.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            call = CALL.search(line)
            if call is None or f"{call[1]}/".startswith(mine):
                continue
            if not call[1].startswith(SYSTEM) or PYTHONS.search(call[1]):
                found[call[1]] = None
    return list(found)
