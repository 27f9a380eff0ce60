"""Opening an input and making pictures of it; runs off the GUI thread and knows no Qt.

The engine is imported inside the functions: it brings torch, which takes seconds to load.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from app.data.choice_dialog import COMPLEX, choices_for, may_be_kspace
from app.data.opened import (
    KIND_WORDS,
    MeasuredLines,
    MeasuredViews,
    Opened,
    Question,
    SeriesItem,
)
from app.data.patient import patient_lines, window_of
from app.forms.labels import text_of
from engine.spec.errors import DescriptionNeeded, RequestError, Sentence

if TYPE_CHECKING:
    from engine.data.dataset import Dataset, Fact
    from engine.data.kspace.dataset import KspaceDataset
    from engine.data.readers.dicom.series import Series
    from engine.data.sinogram.dataset import SinogramDataset
    from engine.spec.input_options import InputOptions

DEMO = "demo:"
DEMO_NAMES = {"CT": "CT demo", "MR": "MRI demo"}
STRIP_BINS = 512  # detector bins of a measured sinogram that are worth drawing
MANY_STACKS = "The series holds several stacks: {part} was opened. Choose another in the list."
MANY_SERIES = (
    "There are {all} series; the one with most slices, number {number}, was opened. "
    "Choose another in the list."
)


def open_data(
    text: str, options: dict[str, Any] | None = None, found: Sequence[Series] | None = None
) -> Opened:
    """Open ``text`` as the command line would; raises what the engine raises.

    ``found`` are the series of the same folder when they are known already.
    """
    from engine.spec.input_options import InputOptions

    options = dict(options or {})
    asked = InputOptions.from_dict(options)
    dataset, found, notes = _open(text, asked, found)
    header = _header(dataset)
    warnings = [*notes, *dataset.warnings]
    views = lines = None
    try:
        views, lines = _views_of(dataset), _lines_of(dataset)
    except RequestError as error:  # one bad slice: the others may be fine
        warnings.append(Sentence(error))
    series = _series_items(dataset, found, asked.dataset)
    return Opened(
        text=text,
        options=options,
        name=_safe_name(text, dataset, found, series),
        screen_name=screen_name(text, dataset.modality),
        kind=dataset.kind,
        modality=dataset.modality,
        count=dataset.count,
        image_size=dataset.image_size,
        pixel_mm=dataset.pixel_mm,
        placements=dataset.placements,
        facts=_facts(text, dataset),
        warnings=tuple(dict.fromkeys(warnings)),
        checks=tuple(dataset.checks),
        patient=patient_lines(header),
        window=window_of(header) if dataset.kind == "image" else None,
        series=series,
        views=views,
        lines=lines,
        dataset=dataset,
        found=found,
    )


def try_open(
    text: str, options: dict[str, Any], found: Sequence[Series] | None = None
) -> Opened | Question:
    """The opened data, or what must be asked first."""
    name = screen_name(text)
    try:
        opened = open_data(text, options, found)
    except DescriptionNeeded as error:
        choices = choices_for(error.missing, error.choices, _is_geometry(error))
        return Question(text, options, name, error.missing, choices)
    if may_be_kspace(opened):
        return Question(text, options, name, ("kind",), COMPLEX)
    return opened


def _is_geometry(error: DescriptionNeeded) -> bool:
    from engine.data.sinogram.scan_geometry import GeometryNeeded

    return isinstance(error, GeometryNeeded)


def preview_of(opened: Opened, number: int) -> NDArray[np.float32]:
    """Slice ``number`` in HU or as magnitude; of raw data a quick direct reconstruction."""
    return np.ascontiguousarray(opened.dataset.preview(number), dtype=np.float32)


def simulated_sinogram(
    opened: Opened, number: int, acquisition: dict[str, Any], seed: int = 0
) -> NDArray[np.float32] | None:
    """What would be measured of a CT image, ``[views, detectors]``; None for other data."""
    if opened.kind != "image" or opened.modality != "CT":
        return None
    from engine.data.sinogram.scan_picture import scan_picture
    from engine.spec.acquisition import CTAcquisition

    pixel = opened.pixel_mm[1] if opened.pixel_mm else 1.0
    settings = CTAcquisition.from_dict(acquisition)
    return scan_picture(preview_of(opened, number), pixel, settings, seed, number)


def screen_name(text: str, modality: str = "") -> str:
    if text.startswith(DEMO):
        return DEMO_NAMES.get(modality, "the demo")
    return Path(text).name or text


def _open(
    text: str, options: InputOptions, found: Sequence[Series] | None
) -> tuple[Dataset, Sequence[Series] | None, list[str]]:
    """The dataset, the series beside it, and what to say about their choice."""
    from engine.data.dataset import ImageDataset
    from engine.data.images.shrink import shrunk
    from engine.data.source import find_reader, open_input

    path = Path(text)
    if text.startswith(DEMO) or not path.exists():
        return open_input(text, options), None, []
    from engine.data.readers.dicom.reader import choose_series, holds_projections, open_dicom
    from engine.data.readers.dicom.series import find_series

    if find_reader(path) is not open_dicom or holds_projections(path, options):
        return open_input(text, options), None, []
    if found is None:
        found = find_series(path, options.modality)
    dataset = open_dicom(path, options, found)
    series, chance = choose_series(path, found, options.dataset)
    # the engine's sentence about this speaks to the command line
    dataset.warnings = [words for words in dataset.warnings if words not in chance]
    notes = [_note(series, found, options.dataset)] if chance else []
    if options.size is not None and isinstance(dataset, ImageDataset):
        dataset = shrunk(dataset, options.size)
    return dataset, found, notes


def _note(series: Series, found: Sequence[Series], wanted: str | None) -> str:
    if wanted is not None or all(one.key == series.key for one in found):
        return MANY_STACKS.format(part=series.part)
    return MANY_SERIES.format(all=len(found), number=series.number)


def _series_items(
    dataset: Dataset, found: Sequence[Series] | None, wanted: str | None
) -> tuple[SeriesItem, ...]:
    """What the list shows; a file that knows no series is one itself."""
    if found is None:
        label = f"{dataset.modality} {KIND_WORDS[dataset.kind]}, {_slices(dataset.count)}"
        return (SeriesItem(1, "", label, dataset.count, dataset.modality, chosen=True),)
    from engine.data.readers.dicom.reader import choose_series

    chosen = choose_series(Path(), found, wanted)[0]
    uids = [series.key for series in found]
    return tuple(
        SeriesItem(
            series.number,
            # some files have no UID, and a study may use one twice
            series.key if series.key and uids.count(series.key) == 1 else str(series.number),
            _label(series),
            series.count,
            series.modality,
            series.part,
            series.screen_text,
            series.refusal,
            series is chosen,
        )
        for series in found
    )


def _label(series: Series) -> str:
    modality = series.modality or "Unknown"
    number = "" if series.series_number is None else f" series {series.series_number}"
    if not series.count:
        files = len(series.files)
        return f"{modality}{number}, {files} file{'s' * (files != 1)}, no images"
    return f"{modality}{number}, {_slices(series.count)}"


def _slices(count: int) -> str:
    return f"{count} slice{'s' * (count != 1)}"


def _safe_name(
    text: str,
    dataset: Dataset,
    found: Sequence[Series] | None,
    series: tuple[SeriesItem, ...],
) -> str:
    if text.startswith(DEMO):
        return DEMO_NAMES[dataset.modality]
    if found is not None:
        item = next(item for item in series if item.chosen)
        return ", ".join(filter(None, (item.label.split(",")[0], item.part)))
    return f"{dataset.modality} {KIND_WORDS[dataset.kind]}"


def _facts(text: str, dataset: Dataset) -> tuple[Fact, ...]:
    from engine.data.dataset import Fact

    rows, columns = dataset.image_size
    facts = [
        Fact("data", f"{dataset.modality} {KIND_WORDS[dataset.kind]}", "the reader"),
        Fact("slices", str(dataset.count), "the reader"),
        Fact("image", f"{rows} x {columns}", "the reader"),
    ]
    if text.startswith(DEMO):
        facts.append(Fact("content", dataset.description, "the phantom"))
    own = {fact.name for fact in dataset.facts}
    return (*(fact for fact in facts if fact.name not in own), *dataset.facts)


def _header(dataset: Dataset) -> Any:
    """The DICOM header of the middle slice, when there is one that can be read."""
    if dataset.headers is None:
        return None
    try:
        return dataset.headers(dataset.count // 2)
    except RequestError:
        return None


def _views_of(dataset: Dataset) -> MeasuredViews | None:
    if dataset.kind != "sinogram":
        return None
    from engine.data.sinogram.view_selection import measured_arc
    from engine.spec.acquisition import CTAcquisition

    sinogram: SinogramDataset = dataset  # type: ignore[assignment]
    geometry = sinogram.geometry
    angles = np.array(geometry.angles_rad)
    start, span = measured_arc(angles)
    middle = dataset.count // 2
    rows = sinogram.read(middle)
    noise = sinogram.noise([rows], CTAcquisition(), [middle])
    origin = "from flat fields" if noise.gain else "estimated"
    step = max(1, rows.shape[1] // STRIP_BINS)
    return MeasuredViews(
        geometry.views,
        min(span, 360.0),
        start,
        geometry.kind,
        tuple(np.rad2deg(angles).tolist()),
        np.ascontiguousarray(rows[:, ::step], dtype=np.float32),
        f"{_rounded(noise.photons[0])}, {origin}" if noise.photons else "not known",
    )


def _rounded(photons: float) -> str:
    """Two digits that count, written as a person would type them."""
    return text_of(float(f"{photons:.2g}"))


def _lines_of(dataset: Dataset) -> MeasuredLines | None:
    if dataset.kind != "kspace":
        return None
    from engine.data.kspace.spokes import SpokesDataset

    if isinstance(dataset, SpokesDataset):
        paths = dataset.read_slice(dataset.count // 2).trajectory
        every = np.ones(paths.spokes, np.bool_)
        return MeasuredLines(every, dataset.coils, paths, _kspace_noise(dataset))
    kspace: KspaceDataset = dataset  # type: ignore[assignment]
    sampled = np.asarray(kspace.read_slice(dataset.count // 2).sampled, dtype=np.bool_)
    lines = np.atleast_1d(sampled.reshape(-1, sampled.shape[-1]).any(axis=0))
    return MeasuredLines(lines, kspace.coils, noise=_kspace_noise(dataset))


def _kspace_noise(dataset: Dataset) -> str:
    """Known when a slice becomes a problem, which says its maps and its scale, too."""
    from engine.physics.units import IntensityMap

    try:
        problem = dataset.problem([dataset.count // 2], {}, IntensityMap("mr"), 0)
    except RequestError as error:
        dataset.warn(Sentence(error))
        return "not known"
    sd = float(np.max(np.asarray(problem.noise_sigma)))
    return f"{sd:.2g}, {problem.noise_origin.split()[0]}" if sd > 0 else "not known"
