"""The one family of exceptions that is meant for the person at the screen.

Anything else that escapes the engine is a bug, and is shown as one.
"""

from __future__ import annotations


class DualscopeError(Exception):
    """A message a person can act on: what was wrong, where, and what to do."""


class RequestError(DualscopeError):
    """The request itself was wrong: a bad option, a missing or broken file (exit code 2)."""


class StepFailed(DualscopeError):
    """A solver step produced NaN, infinity or diverged; names the step and the iteration."""

    def __init__(self, step: str, k: int, reason: str) -> None:
        self.step, self.k, self.reason = step, k, reason
        super().__init__(f"The {step} {reason} at iteration {k}; the last good image is kept.")
