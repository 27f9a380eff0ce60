"""The commands for whoever makes packages: package, smoke, wheel, sbom, fuzz."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.spec.errors import DualscopeError, RequestError
from installer.console import SetUpError

FAILED, WRONG_REQUEST, CANCELLED = 1, 2, 130


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        if options.command == "package":
            from installer.package.build import package

            package(Path(options.out), options.deb)
            return 0
        if options.command == "wheel":
            from installer.wheel import make_wheel

            print(make_wheel(Path(options.out)))
            return 0
        if options.command == "sbom":
            from installer.package.bundled import installed_parts
            from installer.package.papers import write_sbom

            write_sbom(Path(options.out), installed_parts())
            return 0
        if options.command == "fuzz":
            from installer.fuzz import fuzz

            return fuzz(options.minutes, options.target)
        from installer.package.smoke import smoke

        return smoke(Path(options.folder))
    except RequestError as error:
        print(error, file=sys.stderr)
        return WRONG_REQUEST
    except (SetUpError, DualscopeError) as error:
        print(error, file=sys.stderr)
        return FAILED
    except OSError as error:
        print(f"Cannot use {error.filename}: {error.strerror}.", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("\nStopped. The same command takes it up again.", file=sys.stderr)
        return CANCELLED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m installer")
    commands = parser.add_subparsers(dest="command", required=True)
    package = commands.add_parser("package", help="make a folder that needs no Python")
    package.add_argument("-o", "--out", required=True, metavar="OUT", help="where it is made")
    package.add_argument("--deb", action="store_true", help="make a Debian package of it, too")
    smoke = commands.add_parser("smoke", help="run such a folder with everything else hidden")
    smoke.add_argument("folder", metavar="FOLDER", help="OUT/dualscope, or OUT/Dualscope.app")
    wheel = commands.add_parser("wheel", help="make the package for pip, reproducibly")
    wheel.add_argument("-o", "--out", required=True, metavar="OUT", help="a folder")
    bill = commands.add_parser("sbom", help="write the bill of materials of this environment")
    bill.add_argument("-o", "--out", required=True, metavar="FILE", help="such as sbom.cdx.json")
    tries = commands.add_parser("fuzz", help="try damaged inputs on everything that reads")
    tries.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    tries.add_argument("--target", action="append", metavar="NAME", help="this one; repeatable")
    return parser
