"""What holds for all solvers: shared settings mean one thing, budgets are kept."""

import dataclasses

import pytest
from helpers import FunctionPrior, dense_problem

from engine.physics.random import make_generator
from engine.solvers.catalogue import SOLVERS, find_solver, parse_variant
from engine.solvers.presets import BUDGETS, apply_preset
from engine.spec.errors import RequestError

ONE_IMAGE_AT_A_TIME = ("sitcom",)  # counts per slice and probes its memory: see test_sitcom
WITH_BUDGETS = {name for name, solver in SOLVERS.items() if solver.budgets}
BY_METHOD = sorted(WITH_BUDGETS - set(ONE_IMAGE_AT_A_TIME))


def test_a_setting_of_several_methods_has_one_default_and_one_meaning():
    """The form keeps one value for all methods and the command line has one option."""
    seen = {}
    for solver in SOLVERS.values():
        for field in dataclasses.fields(solver.settings_class):
            said = (field.type, field.default, dict(field.metadata))
            assert seen.setdefault(field.name, said) == said, f"{field.name} of {solver.name}"
    assert {"nfe", "eta", "cg_iterations"} <= set(seen)


def budget(name, solver):
    problem = dense_problem(rows=50)
    problem.operator.matrix = problem.operator.matrix.abs()
    problem.measurement = problem.operator.forward(problem.reference)
    return problem, find_solver(solver).settings_class.pick(apply_preset(name, problem, solver))


@pytest.mark.parametrize("name", BY_METHOD)
def test_the_matched_budget_is_fifty_calls_of_the_denoiser(name):
    calls = []

    def denoise(x, sigma):
        calls.append(sigma)
        return x / (1 + sigma**2)

    problem, settings = budget("matched-50", name)
    for it in find_solver(name).iterate(
        problem, FunctionPrior(denoise), settings, make_generator(0)
    ):
        last = it
    assert len(calls) == last.nfe == 50


def test_the_recommended_budgets_are_the_published_ones():
    assert all(set(SOLVERS[name].budgets) == set(BUDGETS) for name in WITH_BUDGETS)
    assert len(WITH_BUDGETS) == 6
    for name in ("dc-pnpdp", "diffpir", "ddnm", "dds"):
        assert budget("recommended", name)[1].nfe == 100
    _, daps = budget("recommended", "daps")
    assert (daps.nfe, daps.ode_steps, len(daps.sigmas()), daps.langevin_steps) == (
        1000,
        5,
        200,
        100,
    )
    assert apply_preset("recommended", dense_problem(), "fbp") == {}
    with pytest.raises(RequestError, match="recommended, matched-50"):
        apply_preset("generous", dense_problem(), "daps")


def test_new_methods_are_found_by_their_names():
    for text, name, changes in (
        ("ddnm:renoising=sh", "ddnm", {"renoising": "sh"}),
        ("dds:dds_iterations=3", "dds", {"dds_iterations": 3}),
        ("daps:langevin_step=1e-6:tau=auto", "daps", {"langevin_step": 1e-6, "tau": None}),
    ):
        solver, values = parse_variant(text)
        assert (solver.name, values) == (name, changes)
        solver.settings_class(**values)
