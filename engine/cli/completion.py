"""``dualscope completion bash|zsh|fish``: a script that completes commands, options and values."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.cli import COMMANDS, build_parser
from engine.priors.catalogue import list_priors, list_supervised
from engine.solvers.catalogue import SOLVERS

CHOICES = re.compile(r"[a-z0-9-]+(\|[a-z0-9-]+)+")  # as a metavar shows them
HOW = (
    'Once: bash: eval "$(dualscope completion bash)" in ~/.bashrc; zsh: the same with zsh in '
    "~/.zshrc; fish: dualscope completion fish > ~/.config/fish/completions/dualscope.fish"
)


@dataclass(frozen=True)
class Option:
    names: tuple[str, ...]
    help: str
    values: tuple[str, ...]
    has_value: bool


@dataclass(frozen=True)
class Level:
    """A command, or a command of a command: ``path`` are the words that lead to it."""

    path: tuple[str, ...]
    commands: dict[str, str]  # with their help
    options: tuple[Option, ...]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HOW
    parser.add_argument("shell", metavar="bash|zsh|fish", choices=("bash", "zsh", "fish"))


def run(options: argparse.Namespace) -> int:
    found = list(levels(build_parser([*COMMANDS])))
    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](found), end="")
    return 0


def levels(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Level]:
    commands, options, below = {}, [], {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = dict(action.choices)
            commands = {one.dest: one.help or "" for one in action._choices_actions}
        elif action.option_strings:
            help = (action.help or "").replace("%%", "%").partition(". ")[0].rstrip(".")
            names = tuple(action.option_strings)
            options.append(Option(names, help, _values(action), action.nargs != 0))
    yield Level(path, commands, tuple(options))
    for name, sub in below.items():
        yield from levels(sub, (*path, name))


def _values(action: argparse.Action) -> tuple[str, ...]:
    if action.choices is not None:
        return tuple(map(str, action.choices))
    if "--solver" in action.option_strings:
        return tuple(SOLVERS)
    if "--prior" in action.option_strings:
        return tuple(n for m in ("CT", "MR") for n in (*list_priors(m), *list_supervised(m)))
    shown = str(action.metavar)
    return tuple(shown.split("|")) if CHOICES.fullmatch(shown) else ()


def bash(found: list[Level]) -> str:
    """``$at`` are the commands so far; without an answer bash completes names of files."""
    walk, words, values = [], [], []
    for level in found:
        at = " ".join(level.path)
        walk += [f'      "{at}:{name}") at="{at} {name}";;' for name in level.commands]
        names = " ".join(name for option in level.options for name in option.names)
        words.append(f'    "{at}") options="{names}"; commands="{" ".join(level.commands)}";;')
        for option in level.options:
            if option.has_value:
                asked = "|".join(f'"{at}:{name}"' for name in option.names)
                values.append(f'    {asked}) values="{" ".join(option.values)}"; has=1;;')
    walk = [line.replace('at=" ', 'at="') for line in walk]
    return "\n".join(
        [
            "_dualscope() {",
            '  local now="${COMP_WORDS[COMP_CWORD]}" last="${COMP_WORDS[COMP_CWORD-1]}"',
            '  local at="" word options="" commands="" values="" has=""',
            '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            '    case "$at:$word" in',
            *walk,
            "    esac",
            "  done",
            '  case "$at:$last" in',
            *values,
            "  esac",
            '  case "$at" in',
            *words,
            "  esac",
            "  COMPREPLY=()",
            '  if [ -n "$has" ]; then',
            '    [ -z "$values" ] || COMPREPLY=($(compgen -W "$values" -- "$now"))',
            '  elif [ "${now:0:1}" = - ]; then',
            '    COMPREPLY=($(compgen -W "$options" -- "$now"))',
            '  elif [ -n "$commands" ]; then',
            '    COMPREPLY=($(compgen -W "$commands" -- "$now"))',
            "  fi",
            "}",
            "complete -o default -F _dualscope dualscope",
            "",
        ]
    )


def zsh(found: list[Level]) -> str:
    """zsh runs what is written for bash."""
    return f"autoload -U +X bashcompinit && bashcompinit\n{bash(found)}"


def fish(found: list[Level]) -> str:
    lines = []
    for level in found:
        seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in level.path)
        below = " ".join(level.commands)
        here = seen or "__fish_use_subcommand"
        if seen and below:
            here += f"; and not __fish_seen_subcommand_from {below}"
        for name, help in level.commands.items():
            lines.append(f"complete -c dualscope -f -n '{here}' -a {name} -d {_quoted(help)}")
        for option in level.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            value = f" -xa {_quoted(' '.join(option.values))}" if option.values else " -r"
            more = value if option.has_value else ""
            lines.append(
                f"complete -c dualscope -n '{here}' {names}{more} -d {_quoted(option.help)}"
            )
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
