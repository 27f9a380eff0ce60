"""Command-line options made from settings classes, and jobs made from options."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from engine.physics.device import DEVICES
from engine.priors.network_prior import PRECISIONS
from engine.runs.run import Run
from engine.solvers.catalogue import SOLVERS, find_solver
from engine.solvers.presets import BUDGETS, PRESETS
from engine.spec import plugins
from engine.spec.acquisition import (
    CTAcquisition,
    MRIAcquisition,
    RestorationAcquisition,
    acquisition_of,
)
from engine.spec.errors import RequestError, option_name
from engine.spec.input_options import InputOptions
from engine.spec.job import Job
from engine.spec.settings import Settings, parse_value, value_type

PRESET_NAMES = (*PRESETS, *BUDGETS)
SHARED = frozenset({"fine_grid", "noise"})  # options of CT and of MRI scans alike


def add_settings(
    parser: argparse.ArgumentParser,
    title: str,
    *groups: type[Settings],
    leave_out: frozenset[str] = frozenset(),
) -> None:
    """An option for every field of the groups, each once; unset ones stay None."""
    section = parser.add_argument_group(title)
    seen: set[str] = set(leave_out)
    for cls in groups:
        for field in dataclasses.fields(cls):
            if field.name in seen:
                continue
            seen.add(field.name)
            section.add_argument(
                option_name(field.name),
                dest=field.name,
                metavar=_metavar(cls, field),
                help=_help(field),
            )


def _metavar(cls: type[Settings], field: dataclasses.Field) -> str:
    if field.metadata["choices"]:
        return "|".join(field.metadata["choices"])
    kind = value_type(cls, field.name)[0]
    return {bool: "on|off", int: "N", float: "X"}.get(kind, "TEXT")


def _help(field: dataclasses.Field) -> str:
    return f"{field.metadata['help']} Default: {_default(field)}.".replace("%", "%%")


def _default(field: dataclasses.Field) -> str:
    if field.default is None:
        return "automatic"
    if isinstance(field.default, bool):
        return "on" if field.default else "off"
    if isinstance(field.default, (int, float)):
        return f"{field.default:g} {field.metadata['unit']}".strip()
    return str(field.default)


def given(options: argparse.Namespace, *groups: type[Settings]) -> dict[str, Any]:
    """The options that were typed, as values of their fields."""
    values: dict[str, Any] = {}
    for cls in groups:
        for field in dataclasses.fields(cls):
            text = getattr(options, field.name, None)
            if text is not None:
                values[field.name] = parse_value(cls, field.name, text)
    return values


def solver_settings_classes() -> list[type[Settings]]:
    return [solver.settings_class for solver in SOLVERS.values()]


# the options that people use, by heading; each command adds its own
SHOWN_INPUT = ("--slice", "--kind", "--unit", "--pixel-mm")
SHOWN = {
    "CT": ("--views", "--angular-range", "--photons"),
    "MRI": ("--acceleration", "--mask"),
    "method": ("--prior", "--preset", "--nfe", "--rho", "--cg-iterations", "--seed", "--device"),
}


def solver_help() -> str:
    return f"One of {', '.join(SOLVERS)}."


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Everything that `reconstruct` and `compare` share."""
    solvers = " ".join(f"{one.name}: {one.help}" for one in SOLVERS.values())
    parser.epilog = f"{parser.epilog or ''} Solvers: {solvers}".strip()
    what = parser.add_argument_group("input")
    what.add_argument(
        "input",
        nargs="?",
        metavar="INPUT",
        help="A file, a folder, demo:ct, demo:mri or demo:ct-volume.",
    )
    what.add_argument(
        "--slice", metavar="N|A:B[:S]", dest="slices", help="Slices to take. Default: all."
    )
    add_settings(parser, "what the input does not say", InputOptions)
    add_settings(parser, "CT acquisition", CTAcquisition)
    add_settings(parser, "MRI acquisition", MRIAcquisition, leave_out=SHARED)
    add_settings(parser, "restoration", RestorationAcquisition)
    add_settings(parser, "solver settings", *solver_settings_classes())
    how = parser.add_argument_group("run")
    how.add_argument(
        "--preset", metavar="|".join(PRESET_NAMES), help="Settings of the paper, or a budget."
    )
    how.add_argument("--seed", metavar="N", help="Random seed. Default: 0.")
    how.add_argument(
        "--prior", metavar="NAME", help="The denoiser. Default: the best for the input."
    )
    how.add_argument(
        "--deidentify",
        action="store_true",
        help="Name neither patient nor file in the outputs and the record.",
    )
    how.add_argument(
        "--ignore-checks",
        action="store_true",
        help="Run data that a check (see dualscope inspect) calls unfit for a run.",
    )
    how.add_argument("--device", metavar="|".join(DEVICES), help="Where to compute. Default: auto.")
    add_precision(how)
    # the command line's own parser asks it before it reads the arguments
    parser.add_plugins = partial(add_plugin_settings, parser)  # type: ignore[attr-defined]


def add_plugin_settings(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Options for the settings of those plug-in solvers that the arguments name."""
    words = [word for text in arguments for word in re.split("[=,]", text)]
    names = {word.split(":")[0].strip() for word in words} - set(SOLVERS)
    if not any(text.startswith("--solver") for text in arguments):
        return
    for name in names & set(plugins.registered("solvers")):
        known = frozenset(action.dest for action in parser._actions)
        cls = find_solver(name).settings_class
        add_settings(parser, f"settings of {name}", cls, leave_out=known)


def add_precision(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--precision",
        metavar="|".join(PRECISIONS),
        help="Of the denoiser: bf16 is faster on processors and GPUs that have it, and rounds "
        "more. Default: fp32.",
    )


def job_from(options: argparse.Namespace, solver: str) -> Job:
    """The job that was asked for; a wrong value raises RequestError before anything is read."""
    if options.input is None:
        raise RequestError("INPUT is missing: name a file, or demo:ct or demo:mri.")
    described = given(options, InputOptions)
    InputOptions(**described)
    one_of("--device", options.device, DEVICES)
    one_of("--precision", options.precision, PRECISIONS)
    one_of("--preset", options.preset, PRESET_NAMES)
    path = options.input
    return Job(
        input=path if path.startswith("demo:") else str(Path(path).absolute()),
        options=described,
        slices=options.slices,
        acquisition=acquisition_of(path, acquisition_values(options)),
        solver=solver,
        preset=options.preset,
        settings=given(options, find_solver(solver).settings_class),
        prior=options.prior or "auto",
        seed=number("--seed", options.seed, int) or 0,
        device=options.device or "auto",
        precision=options.precision or "fp32",
        deidentify=options.deidentify,
        ignore_checks=options.ignore_checks,
    )


def acquisition_values(options: argparse.Namespace) -> dict[str, Any]:
    """CT, MRI or restoration options; two of them at once are a contradiction."""
    kinds = {CTAcquisition: "CT", MRIAcquisition: "MRI", RestorationAcquisition: "--task"}
    asked = {kind: values for kind in kinds if (values := given(options, kind))}
    if RestorationAcquisition not in asked and len(asked) > 1:
        # what both kinds of scan take belongs to the one that is asked for
        asked = {kind: values for kind, values in asked.items() if set(values) - SHARED} or {
            CTAcquisition: asked[CTAcquisition]
        }
    if len(asked) > 1:
        (one, first), (two, second) = list(asked.items())[:2]
        raise RequestError(
            f"{option_name(next(iter(first)))} is for {kinds[one]} and "
            f"{option_name(next(iter(second)))} for {kinds[two]}: give one or the other."
        )
    for kind, values in asked.items():
        kind(**values)
        if kind is RestorationAcquisition and "task" not in values:
            raise RequestError(f"{option_name(next(iter(values)))} needs a --task.")
        return values
    return {}


def unused_options(options: argparse.Namespace, *solvers: str) -> list[str]:
    """Solver options that were typed but that none of the solvers takes."""
    own = [find_solver(name).settings_class for name in solvers]
    known = {field.name for cls in own for field in dataclasses.fields(cls)}
    typed = given(options, *solver_settings_classes(), *own)
    return [option_name(name) for name in typed if name not in known]


def one_of(option: str, value: str | None, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        raise RequestError(f"{option} '{value}' is not known: choose {', '.join(choices)}.")


def number(option: str, text: str | None, kind: type) -> Any:
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        raise RequestError(f"{option} must be a number, not '{text}'.") from None


def progress_bar(quiet: bool = False) -> Progress:
    """A bar with the time left; its tasks have a ``note``. Silent unless on a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),  # also while the total is not known
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),  # may name a file
    )
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal)


def follow(run: Run, quiet: bool = False) -> None:
    """Run to the end, showing where it is and how it goes."""
    with progress_bar(quiet) as bar:
        task = bar.add_task(run.solver.label, total=None, note="")
        for it in run:
            note = f"sigma {it.sigma:.3g}  |Ax-y| {float(it.residual_x.mean()):.3g}"
            if "psnr" in it.metrics:
                note += f"  {it.metrics['psnr']:.2f} dB"
            bar.update(task, total=it.K, completed=it.k, note=note)
