"""The one family of exceptions that is meant for the person at the screen, and how it speaks.

Anything else that escapes the engine is a bug, and is shown as one. A sentence names settings by
their field, ``⟦cg_iterations⟧``; the command line calls it ``--cg-iterations``, Python
``cg_iterations``, and the window has a label for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Self


def shown(text: object) -> str:
    r"""One line without anything that a terminal or a window obeys instead of showing it.

    Control, escape and bidirectional characters, and bytes of no alphabet, become ``\x1b`` and
    the like.
    """
    return "".join(
        sign
        if sign.isprintable()
        else sign.encode("unicode_escape", "surrogatepass").decode("ascii")
        for sign in str(text)
    )


Say = Callable[[str], str]  # what somebody calls the setting of this name

_SETTING: Final = re.compile("⟦([a-z][a-z0-9_]*)⟧")


def option_name(setting: str) -> str:
    """The command line's words: ``cg_iterations`` -> ``--cg-iterations``."""
    return "--" + setting.replace("_", "-")


COMMAND_LINE: Final[Say] = option_name
PYTHON: Final[Say] = str  # a keyword is written as the setting itself


class Sentence(str):
    """A sentence in the command line's words that others can still say in theirs."""

    marked: str

    def __new__(cls, said: str | BaseException) -> Self:
        self = super().__new__(cls, words(said))
        self.marked = marked(said)
        return self


def marked(said: str | BaseException) -> str:
    """With its settings still marked, to make a longer sentence of it."""
    text = said.args[0] if isinstance(said, DualscopeError) and said.args else said
    return text.marked if isinstance(text, Sentence) else str(text)


def quoting(said: str | BaseException) -> Sentence:
    """A sentence that may quote a file, without what a terminal would obey."""
    return Sentence(shown(marked(said)))


def words(said: str | BaseException, say: Say = COMMAND_LINE) -> str:
    """A sentence or an error in somebody's words."""
    return _SETTING.sub(lambda match: say(match[1]), marked(said))


def named_in(said: str | BaseException) -> list[str]:
    """The settings that a sentence or an error names."""
    return _SETTING.findall(marked(said))


class DualscopeError(Exception):
    """A message a person can act on: what was wrong, where, and what to do.

    It may quote names of files and tags, so whatever a terminal would obey is taken out here,
    where nobody can forget it.
    """

    def __init__(self, sentence: str | BaseException = "") -> None:
        super().__init__(quoting(sentence))


class RequestError(DualscopeError):
    """The request itself was wrong: a bad option, a missing or broken file (exit code 2)."""


class DescriptionNeeded(RequestError):
    """The input does not say enough of itself; ``missing`` names the input options that would.

    ``choices`` are the values to choose from, where one option is missing and they are known.
    """

    def __init__(
        self, sentence: str, missing: tuple[str, ...], choices: tuple[str, ...] = ()
    ) -> None:
        self.missing, self.choices = missing, choices
        super().__init__(sentence)


class OutOfMemory(DualscopeError):
    """Memory ran out, the machine's or the graphics card's."""

    def __init__(self) -> None:
        super().__init__(
            "There is not enough memory for this: take fewer slices (⟦slice⟧) or a smaller image, "
            "or compute with ⟦device⟧ cpu if the graphics card's ran out."
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Python, torch's CPU allocator and its GPU back ends each say it in their own way."""
    words = str(error).lower()
    said = any(part in words for part in ("out of memory", "can't allocate memory"))
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and said)


def as_user_error(error: Exception) -> Exception:
    """The same error as a sentence, where it is one of the machine's and not a bug's."""
    if is_out_of_memory(error):
        return OutOfMemory()
    if isinstance(error, OSError):
        return DualscopeError(
            f"Cannot use {error.filename or 'a file'}: {error.strerror or error}."
        )
    return error


def bug_message(error: BaseException) -> str:
    """What a person is told of a bug; the details say the rest."""
    return f"This stopped because of a fault in Dualscope ({type(error).__name__})."


class StepFailed(DualscopeError):
    """A solver step produced NaN, infinity or diverged; names the step and the iteration."""

    def __init__(self, step: str, k: int, reason: str) -> None:
        self.step, self.k, self.reason = step, k, reason
        super().__init__(f"The {step} {reason} at iteration {k}; the last good image is kept.")
