"""``dualscope inspect INPUT``: what is in it, where each number came from, what is doubtful."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from engine.commands.options import add_settings, given
from engine.data.dataset import Dataset
from engine.data.input_options import InputOptions
from engine.data.readers.dicom_magic import is_dicom
from engine.data.source import open_input
from engine.errors import RequestError
from engine.priors.prior import IntensityMap


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", help="A file, a folder, demo:ct or demo:mri.")
    parser.add_argument(
        "--check-geometry",
        action="store_true",
        help="Sinograms: project the reconstruction and try other directions, flips and centres.",
    )
    add_settings(parser, "what the input does not say", InputOptions)


def run(options: argparse.Namespace) -> int:
    console = Console(highlight=False)
    path = Path(options.input)
    if path.is_dir() or (path.is_file() and is_dicom(path)):
        _print_series(console, path)
    dataset = open_input(options.input, InputOptions(**given(options, InputOptions)))
    _look(dataset)
    _print_dataset(console, dataset)
    if options.check_geometry:
        _print_check(console, dataset)
    return 0


def _look(dataset: Dataset) -> None:
    """K-space says its noise, maps and scale when a slice of it becomes a problem."""
    if dataset.kind != "kspace":
        return
    try:
        dataset.problem([len(dataset) // 2], {}, IntensityMap("mr"), 0)
    except RequestError as error:
        dataset.warn(str(error))


def _print_series(console: Console, path: Path) -> None:
    from engine.data.readers.dicom_series import find_series

    found = find_series(path)
    if len(found) > 1:
        console.print("Series (choose with --dataset NUMBER):")
        for series in found:
            console.print(f"  {series.label}  {series.screen_text}".rstrip(), markup=False)


def _print_dataset(console: Console, dataset: Dataset) -> None:
    rows, columns = dataset.image_size
    pixel = "unknown" if dataset.pixel_mm is None else "{:g} x {:g} mm".format(*dataset.pixel_mm)
    table = Table(title=dataset.description, title_justify="left", show_header=False)
    for name, value, origin in (
        ("kind", f"{dataset.modality} {dataset.kind}", ""),
        ("slices", str(len(dataset)), ""),
        ("image", f"{rows} x {columns} pixels of {pixel}", ""),
        *((fact.name, fact.value, fact.origin) for fact in dataset.facts),
    ):
        table.add_row(name, value, origin)
    console.print(table)
    for warning in dataset.warnings:
        console.print(f"warning: {warning}")


def _print_check(console: Console, dataset: Dataset) -> None:
    from engine.data.geometry_check import cannot_tell
    from engine.data.sinogram import SinogramDataset

    if not isinstance(dataset, SinogramDataset):
        raise RequestError(f"{dataset.description} is no sinogram: there is nothing to check.")
    for proposal in dataset.check_geometry():
        changes = dataset.changes_for(proposal)
        wanted = " ".join(f"--{k.replace('_', '-')} {_typed(v)}" for k, v in changes.items())
        console.print(f"residual {proposal.residual:7.4f}  {proposal.words}  {wanted}".rstrip())
    console.print(cannot_tell(dataset.geometry))


def _typed(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value + 0.0:g}" if isinstance(value, float) else str(value)
