"""The solvers by name, and the text form of a solver with settings."""

from __future__ import annotations

import dataclasses
from typing import Any

from engine.solvers.classical import FBP, SIRT, CGTikhonov, ZeroFilled
from engine.solvers.daps import Daps
from engine.solvers.dc_pnpdp import DcPnpdp
from engine.solvers.ddnm import Ddnm
from engine.solvers.dds import Dds
from engine.solvers.diffpir import Diffpir
from engine.solvers.sitcom import Sitcom
from engine.solvers.solver import Solver
from engine.solvers.sparse import TV, Wavelet
from engine.solvers.supervised import Supervised
from engine.spec.errors import RequestError
from engine.spec.settings import parse_value

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        DcPnpdp,
        Diffpir,
        Ddnm,
        Dds,
        Daps,
        Sitcom,
        Supervised,
        FBP,
        ZeroFilled,
        SIRT,
        CGTikhonov,
        TV,
        Wavelet,
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
