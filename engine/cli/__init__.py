"""The ``dualscope`` command."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from engine import __version__
from engine.physics.memory import keep_freed_memory
from engine.spec.errors import DualscopeError, RequestError, told, unforeseen

# name -> (module, one line of help); modules are imported only when their command runs
COMMANDS = {
    "gui": ("engine.cli.gui", "open the workstation"),
    "reconstruct": ("engine.cli.reconstruct", "reconstruct one input"),
    "inspect": ("engine.cli.inspect", "say what an input holds, and what is doubtful"),
    "batch": ("engine.cli.batch", "reconstruct a folder of inputs, or watch it"),
    "compare": ("engine.cli.compare", "run several solvers on the same problem"),
    "experiment": ("engine.cli.experiment", "repeat an experiment of the paper"),
    "trust": ("engine.cli.trust", "show where a result is measured and where it is guessed"),
    "verify": ("engine.cli.verify", "run a record again and say whether the bits match"),
    "prior": ("engine.cli.prior", "list priors and show what they are"),
    "bench": ("engine.cli.bench", "measure speed ratios side by side"),
    "doctor": ("engine.cli.doctor", "what is here, what is missing, how to get it"),
    "audit": ("engine.cli.audit", "check versions, known holes and licences, offline"),
}

SEE_WHERE = "Set DUALSCOPE_TRACEBACK=1 to see where."
DONE, FAILED, WRONG_REQUEST, CANCELLED = 0, 1, 2, 130


class Parser(argparse.ArgumentParser):
    """Complains in one sentence instead of a page of usage."""

    add_plugins: Callable[[Sequence[str]], None] | None = None

    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{message} (see {self.prog} --help)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Plug-ins that the arguments name bring options of their own."""
        if self.add_plugins is not None and args is not None:
            self.add_plugins(args)
        return super().parse_known_args(args, namespace)


def build_parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """All commands by name; the options of those in ``names`` only, to start quickly."""
    parser = Parser(
        prog="dualscope",
        description="Diffusion-prior reconstruction of CT and MRI. Research use only.",
    )
    parser.add_argument("--version", action="version", version=f"dualscope {__version__}")
    commands = parser.add_subparsers(dest="command", parser_class=Parser, metavar="COMMAND")
    for name, (module, line) in COMMANDS.items():
        sub = commands.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        if name in names:
            importlib.import_module(module).add_options(sub)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments:
        arguments = ["gui"]
    keep_freed_memory()
    try:
        chosen = [arguments[0]] if arguments[0] in COMMANDS else []
        options = build_parser(chosen).parse_args(arguments)
        with ended_like_ctrl_c():
            return int(importlib.import_module(COMMANDS[options.command][0]).run(options))
    except RequestError as error:
        print(f"dualscope: {error}", file=sys.stderr)
        return WRONG_REQUEST
    except DualscopeError as error:
        print(f"dualscope: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("dualscope: cancelled.", file=sys.stderr)
        return CANCELLED
    except BrokenPipeError:
        # The reader of our output (head, less) has left: nothing more to say, nowhere to say it.
        sys.stderr.close()
        return FAILED
    except Exception as error:
        failure = told(error)
        if isinstance(failure, DualscopeError):
            print(f"dualscope: {failure}", file=sys.stderr)
        else:
            print(f"dualscope: {unforeseen(error)} {SEE_WHERE}", file=sys.stderr)
        if os.environ.get("DUALSCOPE_TRACEBACK"):
            traceback.print_exc()
        return FAILED


@contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """SIGTERM tidies up as Ctrl-C does; commands that can stop more gently take both over."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # Python's rule for signals
        yield
        return
    old = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)
