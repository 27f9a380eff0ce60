"""``dualscope inspect INPUT``: what is in it, where each number came from, what is doubtful."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engine.cli.options import add_settings, given
from engine.data.dataset import Dataset
from engine.data.readers.dicom.magic import is_dicom
from engine.data.sinogram.dataset import SinogramDataset
from engine.data.source import open_input
from engine.export.figure import picture_grid
from engine.export.outputs import check_outputs, linear_window, window_to_bytes
from engine.files.atomic import write_bytes_atomic
from engine.files.path_safety import check_apart
from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError, Sentence, shown
from engine.spec.input_options import InputOptions, give

MARKS = {"good": "+", "corrected": "~", "doubtful": "?", "blocking": "X"}  # every terminal has them
TAIL = 0.002  # of the pixels at either end, black and white in a picture


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", help="A file, a folder, demo:ct or demo:mri.")
    parser.add_argument(
        "--check-geometry",
        action="store_true",
        help="Sinograms: project the reconstruction and try other directions, flips and centres.",
    )
    parser.add_argument(
        "--picture",
        metavar="FILE.png",
        help="The middle slice as a picture; of a sinogram also without the corrections asked for.",
    )
    add_settings(parser, "what the input does not say", InputOptions)


def run(options: argparse.Namespace) -> int:
    console = Console(highlight=False)
    path = Path(options.input)
    if path.is_dir() or (path.is_file() and is_dicom(path)):
        _print_series(console, path)
    (picture,) = check_outputs([options.picture], True, (".png",)) if options.picture else (None,)
    dataset = open_input(options.input, InputOptions(**given(options, InputOptions)))
    check_apart([picture] if picture else [], [path, *dataset.files])
    if isinstance(dataset, SinogramDataset):
        with contextlib.suppress(RequestError):  # too small, or not a number: the checks say so
            dataset.check_geometry()
    _look(dataset)
    _print_dataset(console, dataset)
    if picture is not None:
        write_bytes_atomic(picture, _picture(dataset))
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
        dataset.warn(Sentence(error))


def _print_series(console: Console, path: Path) -> None:
    from engine.data.readers.dicom.series import find_series

    found = find_series(path)
    if len(found) > 1:
        console.print("Series (choose with --dataset NUMBER):")
        for series in found:
            console.print(f"  {series.label}  {series.screen_text}".rstrip(), markup=False)


def _print_dataset(console: Console, dataset: Dataset) -> None:
    rows, columns = dataset.image_size
    pixel = "unknown" if dataset.pixel_mm is None else "{:g} x {:g} mm".format(*dataset.pixel_mm)
    # as Text: brackets in a file's name are no markup
    table = Table(title=Text(dataset.description), title_justify="left", show_header=False)
    for name, value, origin in (
        ("kind", f"{dataset.modality} {dataset.kind}", ""),
        ("slices", str(len(dataset)), ""),
        ("image", f"{rows} x {columns} pixels of {pixel}", ""),
        *((fact.name, fact.value, fact.origin) for fact in dataset.facts),
    ):
        table.add_row(*map(Text, (name, value, origin)))
    console.print(table)
    _print_checks(console, dataset)
    for warning in dataset.warnings:
        console.print(f"warning: {shown(warning)}", markup=False)


def _print_checks(console: Console, dataset: Dataset) -> None:
    """The worst first, as they have to be read; what to do is said below each."""
    if not dataset.checks:
        return
    console.print("Checks before a run:")
    table = Table(show_header=False, box=None, padding=(0, 1))
    for verdict, mark in reversed(MARKS.items()):
        for check in dataset.checks:
            if check.verdict == verdict:
                words = check.sentence + (f"\n{check.fix}" if check.fix else "")
                table.add_row(f"{mark} {verdict}", Text(check.name), Text(words))
    console.print(table)


def _print_check(console: Console, dataset: Dataset) -> None:
    from engine.data.sinogram.geometry_check import cannot_tell

    if not isinstance(dataset, SinogramDataset):
        raise RequestError(f"{dataset.description} is no sinogram: there is nothing to check.")
    for proposal in dataset.check_geometry():
        changes = dataset.changes_for(proposal)
        wanted = give(changes).removeprefix("give ") if changes else ""
        console.print(f"residual {proposal.residual:7.4f}  {proposal.words}  {wanted}".rstrip())
    console.print(cannot_tell(dataset.geometry))


def _picture(dataset: Dataset) -> bytes:
    """The middle slice; of a sinogram that is corrected, before and after in one window."""
    number = dataset.count // 2
    panes = [(f"slice {number}", dataset.preview(number))]
    if isinstance(dataset, SinogramDataset) and dataset.repair.words():
        words = ", ".join(dataset.repair.words())
        before = dataset.uncorrected().preview(number)
        panes = [("as the detector wrote it", before), (f"corrected: {words}", panes[0][1])]
    low, high = np.quantile(panes[-1][1], [TAIL, 1 - TAIL])
    window = linear_window(float(low), float(high))
    return picture_grid([[(text, window_to_bytes(values, window)) for text, values in panes]])
