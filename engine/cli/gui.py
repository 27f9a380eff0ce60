"""``dualscope gui``: opens the workstation."""

from __future__ import annotations

import argparse
import importlib
import importlib.util

from engine.spec.errors import RequestError


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help="What to open.")
    parser.add_argument("--demo", metavar="ct|mri", help="Open an embedded demo.")


def run(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("app.main") is None:
        raise RequestError(
            "This version has no workstation yet: use dualscope reconstruct demo:ct -o out.png."
        )
    return int(importlib.import_module("app.main").main(options))
