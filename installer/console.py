"""Running other programs with their noise kept back, and saying what to do when one fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence

TAIL_LINES = 15
WIDTH = 78

# What a program's last words mean for the person who waits for it; the first match counts.
ADVICE = (
    (r"No space left|Errno 28", "The disk is full: about 3 GB are needed, 8 GB with CUDA."),
    (
        r"DO NOT MATCH THE HASHES",
        "A download differs from the file this version was tested with: something between here "
        "and the package index has changed it, or it was cut short. Run the same command again.",
    ),
    (
        r"resolution|getaddrinfo|[Tt]imed out|Connection|ProxyError|SSLError|HTTPError",
        "The package index could not be reached. Check the network (behind a proxy: set "
        "HTTPS_PROXY), then run the same command again.",
    ),
    (
        r"No matching distribution",
        "Either the package index cannot be reached, or it has nothing for this computer: there "
        "are packages for Linux (x86_64 with glibc 2.34, aarch64 with glibc 2.39), macOS 14 on "
        "Apple silicon, and 64-bit Windows.",
    ),
    (r"Permission denied|Access is denied", "Close Dualscope and check who owns this folder."),
)


class SetUpError(Exception):
    """The set-up cannot go on; the message is for the person at the screen."""


def say(text: str) -> None:
    print(text, flush=True)


def advice(output: str) -> str:
    for pattern, sentence in ADVICE:
        if re.search(pattern, output):
            return sentence
    return "Run the same command again; if it fails again, report the lines above."


def child_environment(**changes: str) -> dict[str, str]:
    """Our variables, less those that lead Python to other packages or forbid it to compile."""
    unwanted = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    return {k: v for k, v in os.environ.items() if k not in unwanted} | changes


def run_quietly(command: Sequence[str], doing: str, **changes: str) -> None:
    """Run a program and show nothing of it, unless it fails: then its last lines and advice."""
    try:
        process = subprocess.Popen(
            command,
            env=child_environment(**changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            close_fds=False,  # to hand on the lock that the set-up holds
        )
    except OSError as error:
        raise SetUpError(f"{doing} failed: {command[0]} did not start ({error}).") from error
    lines = []
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            show_step(line)
        clear_step()
    if process.returncode:
        # pip lists every hash it would have taken, which pushes out what went wrong
        lines = [line for line in lines if not re.match(r"\s*Expected .*[0-9a-f]{64}", line)]
        tail = "\n".join(f"    {line}" for line in lines[-TAIL_LINES:])
        raise SetUpError(f"{tail}\n{doing} failed. {advice(tail)}")


def show_step(line: str) -> None:
    """On a terminal, show what pip is at: a long download should not look stuck."""
    steps = ("Collecting", "Downloading", "Using cached", "Installing")
    if sys.stdout.isatty() and line.strip().startswith(steps):
        print(f"  {line.strip()}".ljust(WIDTH)[:WIDTH], end="\r", flush=True)


def clear_step() -> None:
    if sys.stdout.isatty():
        print(" " * WIDTH, end="\r", flush=True)
