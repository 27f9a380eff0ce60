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


class StepFailed(DualscopeError):
    """A solver step produced NaN, infinity or diverged; names the step and the iteration."""

    def __init__(self, step: str, k: int, reason: str) -> None:
        self.step, self.k, self.reason = step, k, reason
        super().__init__(f"The {step} {reason} at iteration {k}; the last good image is kept.")
