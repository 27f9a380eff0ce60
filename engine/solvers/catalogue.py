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
from engine.spec import plugins
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
    """One of ours, or a plug-in's."""
    if name in SOLVERS:
        return SOLVERS[name]()
    added = plugins.registered("solvers")
    if name in added:
        return _plugin(name)()
    known = ", ".join([*SOLVERS, *added])
    raise RequestError(f"⟦solver⟧ '{name[:60]}' is not known: choose one of {known}.")


def all_solvers() -> dict[str, type[Solver]]:
    """Ours and every plug-in's that works."""
    found = dict(SOLVERS)
    for name in plugins.registered("solvers"):
        try:
            found.setdefault(name, _plugin(name))
        except RequestError as error:
            plugins.skipped(error)
    return found


def _plugin(name: str) -> type[Solver]:
    solver = plugins.load("solvers", name)
    if not (isinstance(solver, type) and issubclass(solver, Solver)):
        raise plugins.broken("solvers", name, "it is no class made from Solver")
    missing = [one for one in ("label", "settings_class") if not hasattr(solver, one)]
    if missing or getattr(solver, "name", None) != name:
        wrong = f"its {missing[0]} is missing" if missing else f"its name is not '{name}'"
        raise plugins.broken("solvers", name, wrong)
    return solver


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
