"""The ``dualscope`` command.

Whatever takes time to load is imported inside `main`, where Ctrl-C is looked after.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

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
    "completion": ("engine.cli.completion", "print what completes words in bash, zsh or fish"),
}

SEE_WHERE = "Set DUALSCOPE_TRACEBACK=1 to see where."
DONE, FAILED, WRONG_REQUEST, CANCELLED = 0, 1, 2, 130


def build_parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """All commands by name; the options of those in ``names`` only, to start quickly."""
    import importlib

    from engine import __version__
    from engine.cli.parser import Parser

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
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["gui"]
    signals = Signals()
    signals.leave_at_once()
    import importlib
    import traceback

    from engine.physics.memory import keep_freed_memory
    from engine.spec.errors import DualscopeError, RequestError, as_user_error, bug_message

    keep_freed_memory()
    try:
        chosen = [arguments[0]] if arguments[0] in COMMANDS else []
        options = build_parser(chosen).parse_args(arguments)
        command = importlib.import_module(COMMANDS[options.command][0])
        signals.interrupt()
        return int(command.run(options))
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
        failure = as_user_error(error)
        if isinstance(failure, DualscopeError):
            print(f"dualscope: {failure}", file=sys.stderr)
        else:
            print(f"dualscope: {bug_message(error)} {SEE_WHERE}", file=sys.stderr)
        if os.environ.get("DUALSCOPE_TRACEBACK"):
            traceback.print_exc()
        return FAILED
    finally:
        signals.give_back()


class Signals:
    """What Ctrl-C and SIGTERM do; commands that can stop more gently take both over."""

    def __init__(self) -> None:
        self.old: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():  # Python's rule for signals
            self.old = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
        if self.old.get(signal.SIGINT) is not signal.default_int_handler:
            self.old.pop(signal.SIGINT, None)  # somebody ignores it, or has plans of his own

    def leave_at_once(self) -> None:
        """While the program loads nothing has begun that would have to be tidied up."""

        def leave(number: int, frame: object) -> None:
            os.write(2, b"dualscope: cancelled.\n")
            os._exit(CANCELLED)

        for number in self.old:
            signal.signal(number, leave)

    def interrupt(self) -> None:
        """From now on SIGTERM tidies up as Ctrl-C does."""
        for number in self.old:
            signal.signal(number, signal.default_int_handler)  # also asyncio knows this one

    def give_back(self) -> None:
        for number, handler in self.old.items():
            signal.signal(number, handler)
