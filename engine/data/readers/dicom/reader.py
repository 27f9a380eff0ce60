"""DICOM files as a Dataset: which series, in which order, with which numbers.

``find_series`` lists what there is, for a browser; ``open_dicom`` opens one series.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pydicom

from engine.data.dataset import Dataset, ImageDataset, Placement
from engine.data.readers.dicom.complex_images import (
    NAMES,
    PhaseScale,
    combine,
    find_partner,
    main_component,
    phase_scale,
)
from engine.data.readers.dicom.files import walk_folder
from engine.data.readers.dicom.geometry import Stack
from engine.data.readers.dicom.image import SliceImage
from engine.data.readers.dicom.integrity import check_pixels, check_series, look_at, settled_stack
from engine.data.readers.dicom.multiframe import flatten
from engine.data.readers.dicom.pixels import read_slice
from engine.data.readers.dicom.scan import PROJECTION_ROWS, open_file, quiet_pydicom, read_header
from engine.data.readers.dicom.series import Series, find_series
from engine.spec.errors import RequestError, Sentence, marked
from engine.spec.input_options import InputOptions

__all__ = ["Series", "find_series", "open_dicom"]


def open_dicom(path: Path, options: InputOptions, found: Sequence[Series] | None = None) -> Dataset:
    """Images, or the projections of DICOM-CT-PD when that is what the files are.

    A folder with both opens as what its first file is, unless ``options.kind`` says which.
    ``found`` are the series of ``path`` when they are known: its headers are not read again.
    """
    if found is None and holds_projections(path, options):
        from engine.data.readers.ct_pd.reader import open_ct_pd

        return open_ct_pd(path, options)
    if options.kind == "kspace":
        raise RequestError(f"{path}: DICOM files hold images or projections, not ⟦kind⟧ kspace.")
    all_series = find_series(path, options.modality) if found is None else found
    series, warnings = choose_series(path, all_series, options.dataset)
    modality = options.modality.upper() if options.modality else series.modality
    if modality == "CT" and options.unit not in (None, "hu"):
        raise RequestError(f"{path}: DICOM CT images are in HU, not in ⟦unit⟧ {options.unit}.")
    if modality == "CT" and all(image.is_localizer for image in series.slices):
        raise RequestError(f"{path} holds a CT localizer, which is a projection and not a slice.")
    slices, component = series.slices, ""
    if modality == "MR":
        slices, component = main_component(slices)
    stack = settled_stack(slices, modality)
    dataset = _dataset(path, stack, modality, options)
    dataset.warnings += warnings + series.warnings
    check_series(dataset, series, stack)
    if modality != series.modality:
        meaning = "HU" if modality == "CT" else "MR signal"
        dataset.warnings.append(
            f"These are {series.modality or 'unknown'} images; their numbers are taken as "
            f"{meaning} because the modality was set to {modality}."
        )
    check_pixels(dataset, stack.slices, modality)
    look_at(dataset)
    if modality == "MR":
        _complete(path, dataset, stack, component, series, all_series, options)
    return dataset


def holds_projections(path: Path, options: InputOptions) -> bool:
    """Whether ``path`` is to be read as a sinogram."""
    return options.kind == "sinogram" or (options.kind is None and starts_with_projection(path))


def starts_with_projection(path: Path) -> bool:
    """Whether the file, or the first DICOM file of the folder, is a CT projection."""
    first = next(walk_folder(path), None) if path.is_dir() else path
    if first is None or not first.is_file():
        return False
    try:
        return PROJECTION_ROWS in read_header(first).values
    except RequestError:
        return False


def choose_series(
    path: Path, all_series: Sequence[Series], wanted: str | None
) -> tuple[Series, list[str]]:
    """The series named by number or UID, else the one with most slices, and that this was so."""
    if wanted is not None:
        for series in all_series:
            if wanted == str(series.number):
                if series.refusal is not None:
                    raise RequestError(series.refusal)
                return series, []
        stacks = [series for series in all_series if wanted == series.key]
        if stacks:
            return choose_stack(stacks)
        raise RequestError(
            f"{path} has no series '{wanted}': give a number from 1 to {len(all_series)} "
            "or a SeriesInstanceUID."
        )
    images = [series for series in all_series if series.slices]
    if not images:
        reason = all_series[0].refusal or ""
        if len(all_series) > 1 or all_series[0].files != (path,):
            reason = f"{path} holds no CT or MR images ({len(all_series)} series): {marked(reason)}"
        raise RequestError(reason)
    chosen = max(images, key=lambda s: sum(not image.is_localizer for image in s.slices))
    if len(all_series) == 1:
        return chosen, []
    others = (
        f"There are {len(all_series)} series; number {chosen.number} with {chosen.count} slices "
        f"was opened. Choose another with ⟦dataset⟧ 1 to {len(all_series)} or its "
        "SeriesInstanceUID."
    )
    return chosen, [Sentence(others)]


def choose_stack(stacks: Sequence[Series]) -> tuple[Series, list[str]]:
    """Of a series named by its UID the stack with most slices, and that there are others."""
    chosen = max(stacks, key=lambda series: series.count)
    if chosen.refusal is not None:
        raise RequestError(chosen.refusal)
    if len(stacks) == 1:
        return chosen, []
    others = (
        f"The series holds {len(stacks)} stacks; number {chosen.number} ({chosen.part}) was "
        f"opened. Choose another with ⟦dataset⟧ {stacks[0].number} to {stacks[-1].number}."
    )
    return chosen, [Sentence(others)]


def _dataset(path: Path, stack: Stack, modality: str, options: InputOptions) -> ImageDataset:
    slices, first = stack.slices, stack.slices[0]
    spacing = first.spacing_mm
    if spacing is None and options.pixel_mm is not None:
        spacing = options.pixel_mm, options.pixel_mm
    dataset = ImageDataset(
        modality=modality,
        description=path.name or path.absolute().name,
        count=len(slices),
        image_size=first.size,
        pixel_mm=spacing,
        files=tuple(dict.fromkeys(image.pixels.path for image in slices)),
        placements=_placements(stack),
        headers=lambda number: read_full_header(slices[number]),
        read=lambda number: read_slice(slices[number], modality),
    )
    dataset.add_fact("modality", modality, "option" if options.modality else "SOPClassUID")
    if spacing is not None:
        origin = "PixelSpacing" if first.spacing_mm else "option"
        dataset.add_fact("pixel", f"{spacing[0]:g} x {spacing[1]:g} mm", origin)
    if stack.spacing_mm is not None:
        dataset.add_fact("slice spacing", f"{stack.spacing_mm:.4g} mm", "ImagePositionPatient")
    if dataset.placements and (thickness := dataset.placements[0].thickness_mm) is not None:
        origin = first.thickness_origin or "ImagePositionPatient"
        dataset.add_fact("slice thickness", f"{thickness:g} mm", origin)
    return dataset


def _placements(stack: Stack) -> tuple[Placement, ...] | None:
    places = []
    for image in stack.slices:
        if image.placement is None:
            return None
        place = image.placement
        if place.thickness_mm is None and stack.spacing_mm is not None:
            place = replace(place, thickness_mm=stack.spacing_mm)
        places.append(place)
    return tuple(places)


def _complete(
    path: Path,
    dataset: ImageDataset,
    stack: Stack,
    component: str,
    series: Series,
    all_series: Sequence[Series],
    options: InputOptions,
) -> None:
    """Make the images complex when their other half is in the same study."""
    others = len(series.slices) - sum(image.component == component for image in series.slices)
    partner = find_partner(stack.slices, component, series, all_series)
    if partner is None:
        _say_alone(path, dataset, component, others, options)
        return
    slices, other, spare = partner
    is_polar = component not in ("R", "I")
    scale = PhaseScale(1.0, 0.0, "")
    if is_polar:
        phases = stack.slices if component == "P" else slices
        scale = phase_scale(phases[len(phases) // 2])
        shown = f"{scale.factor:.6g} * value {scale.offset:+.6g} rad"
        dataset.add_fact("phase", shown, scale.origin)
        if scale.assumed:
            dataset.warnings.append(f"The unit of the phase is not stated; taken: {scale.origin}.")
    names = f"{NAMES[component]} and {NAMES[slices[0].component]}"
    where = "the same series" if other is series else f"series {other.number} of the list"
    dataset.add_fact("complex images", f"{names}, from {where}", "ImageType, equal geometry")
    if spare:
        dataset.warnings.append(
            f"{spare} more series could complete these images; {where} was taken."
        )
    dataset.files += tuple(dict.fromkeys(image.pixels.path for image in slices))
    dataset.files = tuple(dict.fromkeys(dataset.files))
    dataset.read = _complex_reader(dataset.read, slices, component, scale)


def _complex_reader(
    read_first: Callable[[int], np.ndarray],
    partners: Sequence[SliceImage],
    component: str,
    scale: PhaseScale,
) -> Callable[[int], np.ndarray]:
    read_second = partial(read_slice, modality="MR")

    def read(number: int) -> np.ndarray:
        return combine(read_first(number), read_second(partners[number]), component, scale)

    return read


def _say_alone(
    path: Path, dataset: ImageDataset, component: str, others: int, options: InputOptions
) -> None:
    if component == "P" and options.modality is None:
        raise RequestError(
            f"{path} holds MR phase images, and no magnitude images in the same places: "
            "give the folder that has both."
        )
    dataset.add_fact("component", NAMES[component], "ImageType" if component else "assumed")
    if component in ("R", "I", "P"):
        dataset.warnings.append(
            f"Only the {NAMES[component]} part was found: the images are taken as real numbers."
        )
    if others:
        dataset.warnings.append(f"{others} images of another kind (ImageType) were left out.")


def read_full_header(image: SliceImage) -> pydicom.Dataset:
    """All of a slice's header but its pixels; a frame's own values as in a file of its own."""
    path = image.pixels.path
    with quiet_pydicom(path), open_file(path) as stream:
        header: pydicom.Dataset = pydicom.dcmread(stream, force=True, stop_before_pixels=True)
        if image.pixels.frames > 1 or "SharedFunctionalGroupsSequence" in header:
            header = flatten(header, image.frame)
            header.InstanceNumber = image.instance_number
            header.ReferencedFrameNumber = image.frame + 1  # of the file it was taken from
        return header
