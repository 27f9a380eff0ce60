"""A parser for people: a page of help, one sentence of complaint, and the nearest word."""

from __future__ import annotations

import argparse
import difflib
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from engine.spec.errors import RequestError

WIDTH, COLUMN = 100, 30


class HelpAll(argparse.Action):
    """``--help-all`` prints what ``--help`` prints where no options were chosen for it."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="Show every option.")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(argparse.ArgumentParser.format_help(parser), end="")
        parser.exit()


class Parser(argparse.ArgumentParser):
    """Complains in one sentence instead of a page of usage.

    With ``show`` its help is a page of the options that people use.
    """

    shown: Mapping[str, Sequence[str]]
    examples: tuple[str, ...] = ()
    line = ""
    add_plugins: Callable[[Sequence[str]], None] | None = None

    def __init__(self, *args: Any, **others: Any) -> None:
        super().__init__(*args, **others)
        self.shown = {}

    def show(
        self, line: str, options: Mapping[str, Sequence[str]], examples: Iterable[str]
    ) -> None:
        """``options`` by heading; ``line`` shows how they stand together."""
        self.line, self.shown, self.examples = line, options, tuple(examples)
        self.add_argument("--help-all", action=HelpAll)

    def format_help(self) -> str:
        if not self.shown:
            return super().format_help()
        lines = [f"usage: {self.prog} {self.line}", "", self.description or ""]
        for heading, names in self.shown.items():
            lines += ["", f"{heading}:"]
            for name in names:
                lines += self._line(self._action(name))
        lines += ["", "examples:", *(f"  {self.prog} {example}" for example in self.examples)]
        return "\n".join([*lines, "", f"All options: {self.prog} --help-all", ""])

    def _action(self, name: str) -> argparse.Action:
        return next(one for one in self._actions if name in (one.dest, *one.option_strings))

    def _line(self, action: argparse.Action) -> list[str]:
        words = ", ".join(action.option_strings)
        value = "" if action.nargs == 0 else str(action.metavar)
        left = f"  {words} {value}".rstrip() if words else f"  {value}"
        said = textwrap.wrap(_shortly(action.help or ""), WIDTH - COLUMN)
        if len(left) >= COLUMN - 1:
            return [left, *(" " * COLUMN + one for one in said)]
        first, *rest = said or [""]
        return [left.ljust(COLUMN) + first, *(" " * COLUMN + one for one in rest)]

    # -- complaints ---------------------------------------------------------------------------

    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{message} (see {self.prog} --help)")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Complain here, where the options are known, and not in the parser above.

        Plug-ins that the arguments name bring options of their own.
        """
        if self.add_plugins is not None and args is not None:
            self.add_plugins(args)
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            wrong = next((word for word in unknown if word.startswith("-")), "")
            if not wrong:
                self.error(f"unexpected argument '{unknown[0]}'")
            wrong = wrong.partition("=")[0]
            near = nearest(wrong, self._option_string_actions)
            self.error(f"unrecognised option {wrong}{near}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no command '{value}'{nearest(value, action.choices)}")
        known, name = ", ".join(map(str, action.choices)), "/".join(action.option_strings)
        self.error(f"{name or action.metavar} '{value}' is not known: choose one of {known}")


def nearest(word: str, known: Iterable[str]) -> str:
    """': did you mean ...?', where one is near."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f": did you mean {near[0]}?" if near else ""


def _shortly(help: str) -> str:
    """The first statement of a help text, and the default."""
    text, _, default = help.replace("%%", "%").partition("Default: ")
    first = text.strip()
    for mark in (". ", ": ", "; "):
        first = first.partition(mark)[0]
    first = first.rstrip(".")
    default = default.strip().rstrip(".")
    if default and default != "automatic":
        return f"{first} ({default})" if first else f"Default: {default}"
    return first
