"""What other packages add: solvers, priors and readers, registered as entry points.

A package says in its pyproject.toml, for example::

    [project.entry-points."dualscope.solvers"]
    landweber = "my_package:Landweber"

``dualscope.solvers``: a subclass of Solver whose ``name`` is the entry point's, with its label and
settings class. ``dualscope.priors``: a Prior, or what makes one without arguments; a name that
begins with ``ct-`` or ``mr-`` is offered for that modality only. ``dualscope.readers``: called as a
file ends (``xyz`` for scan.xyz), a function of path and InputOptions that gives a Dataset or an
array. Our own names and suffixes come first.

Nothing of it is imported until it is asked for by name, or listed.
"""

from __future__ import annotations

import warnings
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from engine.spec.errors import RequestError

Kind = Literal["solvers", "priors", "readers"]


def registered(kind: Kind) -> dict[str, EntryPoint]:
    """By name, without importing any of them."""
    found = entry_points(group=f"dualscope.{kind}")
    return {point.name: point for point in sorted(found, key=lambda point: point.name)}


def load(kind: Kind, name: str) -> Any:
    """What the plug-in ``name`` registered; what is wrong with it is said in one sentence."""
    point = registered(kind)[name]
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # it is somebody else's code
        raise broken(kind, name, f"{type(error).__name__}: {error}") from error


def broken(kind: Kind, name: str, reason: str) -> RequestError:
    """The complaint about a plug-in, naming where it comes from."""
    value = registered(kind)[name].value
    reason = " ".join(reason.split())
    return RequestError(f"The plug-in '{name}' ({value}) of dualscope.{kind} is broken: {reason}.")


def skipped(error: Exception) -> None:
    """In a list a broken plug-in is left out, and named; the others are still offered."""
    warnings.warn(str(error), stacklevel=3)
