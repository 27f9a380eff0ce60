"""The one family of exceptions that is meant for the person at the screen.

Anything else that escapes the engine is a bug, and is shown as one.
"""

from __future__ import annotations


class DualscopeError(Exception):
    """A message a person can act on: what was wrong, where, and what to do."""


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
            "There is not enough memory for this: take fewer slices (--slice) or a smaller image, "
            "or compute with --device cpu if the graphics card's ran out."
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Python, torch's CPU allocator and its GPU back ends each say it in their own way."""
    words = str(error).lower()
    said = any(part in words for part in ("out of memory", "can't allocate memory"))
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and said)


def told(error: Exception) -> Exception:
    """The same error as a sentence, where it is one of the machine's and not a bug's."""
    if is_out_of_memory(error):
        return OutOfMemory()
    if isinstance(error, OSError):
        return DualscopeError(
            f"Cannot use {error.filename or 'a file'}: {error.strerror or error}."
        )
    return error


def unforeseen(error: BaseException) -> str:
    """What a person is told of a bug; the details say the rest."""
    return f"This stopped because of a fault in Dualscope ({type(error).__name__})."


class StepFailed(DualscopeError):
    """A solver step produced NaN, infinity or diverged; names the step and the iteration."""

    def __init__(self, step: str, k: int, reason: str) -> None:
        self.step, self.k, self.reason = step, k, reason
        super().__init__(f"The {step} {reason} at iteration {k}; the last good image is kept.")
