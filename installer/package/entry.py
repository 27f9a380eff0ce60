"""What the packaged executable runs: the command line, the workstation, and its own helpers.

A process that the program starts of itself is ``sys.executable -m MODULE``, as with Python;
here it is answered for the program's own modules only, so the executable is no interpreter.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from collections.abc import Sequence

OWN = ("engine.", "app.")


def helper(arguments: Sequence[str]) -> list[str]:
    """The module of ours that another process of the program asks for, and its arguments."""
    if len(arguments) > 1 and arguments[0] == "-m" and arguments[1].startswith(OWN):
        return list(arguments[1:])
    return []


def request(arguments: Sequence[str], system: str = sys.platform) -> list[str]:
    """macOS names a document that is to be opened, and nothing else."""
    if system == "darwin" and len(arguments) == 1 and os.path.exists(arguments[0]):
        return ["gui", arguments[0]]
    return list(arguments)


def main() -> None:
    multiprocessing.freeze_support()
    if wanted := helper(sys.argv[1:]):
        sys.argv[1:] = wanted[1:]
        runpy.run_module(wanted[0], run_name="__main__", alter_sys=True)
        return
    from engine.cli import main as dualscope

    sys.exit(dualscope(request(sys.argv[1:])))


if __name__ == "__main__":
    main()
