"""The solvers by name, and the text form of a solver with settings."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from typing import Any

import engine.solvers
from engine.solvers.solver import Solver
from engine.spec.errors import RequestError
from engine.spec.settings import parse_value

USERS = {"catalogue", "presets"}  # modules of this package that know all solvers


def solvers_in(folders: Iterable[str], package: str) -> Iterator[type[Solver]]:
    """Every class of a package's files that is a solver with a name."""
    for module in pkgutil.iter_modules(folders):
        if module.name in USERS:
            continue
        loaded = importlib.import_module(f"{package}.{module.name}")
        for thing in vars(loaded).values():
            own = isinstance(thing, type) and thing.__module__ == loaded.__name__
            if own and issubclass(thing, Solver) and "name" in vars(thing):
                yield thing


SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in sorted(
        solvers_in(engine.solvers.__path__, "engine.solvers"), key=lambda one: (one.place, one.name)
    )
}


def find_solver(name: str) -> Solver:
    if name not in SOLVERS:
        known = ", ".join(SOLVERS)
        raise RequestError(f"⟦solver⟧ '{name[:60]}' is not known: choose one of {known}.")
    return SOLVERS[name]()


def parse_variant(text: str) -> tuple[Solver, dict[str, Any]]:
    """'dc-pnpdp:dual=off:injection=none' -> the solver and its changed settings."""
    name, *changes = text.strip().split(":")
    solver = find_solver(name)
    fields = {field.name for field in dataclasses.fields(solver.settings_class)}
    values: dict[str, Any] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or key not in fields:
            raise RequestError(
                f"'{change}' in ⟦solvers⟧ '{text}' is not a setting of {name}: "
                f"write key=value with one of {', '.join(sorted(fields))}."
            )
        values[key] = parse_value(solver.settings_class, key, value.strip())
    return solver, values
