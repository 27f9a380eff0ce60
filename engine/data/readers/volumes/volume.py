"""A stored volume with its affine as a dataset of images; nothing is guessed of its unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.data.dataset import Fact, ImageDataset
from engine.data.images.air import keep_above_air
from engine.data.images.orientation import Screen, usable
from engine.data.readers.volumes.stored_volume import StoredVolume
from engine.data.sidecar import Described, describe
from engine.data.sinogram.units import CT_UNITS, to_hu
from engine.spec.errors import DescriptionNeeded, RequestError, Sentence
from engine.spec.input_options import InputOptions


@dataclass(frozen=True)
class Unit:
    """Stored numbers to HU (CT) or to the image's own scale (MR): scale * number + offset."""

    modality: str
    scale: float
    offset: float
    facts: tuple[Fact, ...]


def stated_unit(
    path: Path, described: Described, is_complex: bool, own: tuple[str, str] | None = None
) -> Unit:
    """What the person says, else ``own``: (modality, origin) of a file that says it itself."""
    options = described.options
    if options.kind not in (None, "image"):
        raise RequestError(
            f"{path} holds an image: ⟦kind⟧ {options.kind} is not supported for this format."
        )
    if options.modality:
        modality, origin = options.modality.upper(), described.origin("modality")
    elif options.unit in CT_UNITS:
        modality, origin = "CT", described.origin("unit")
    elif is_complex:
        modality, origin = "MR", "complex numbers"
    elif own:
        modality, origin = own
    else:
        raise DescriptionNeeded(
            f"{path} does not say what it shows: add ⟦modality⟧ mr, or ⟦modality⟧ ct with "
            "⟦unit⟧ hu, mu, mu-cm or normalised.",
            ("modality", "unit"),
        )
    facts = [Fact("modality", modality, origin)]
    if modality == "MR":
        return Unit("MR", 1.0, 0.0, tuple(facts))
    if is_complex:
        raise RequestError(f"{path} is complex: it is no CT image (use ⟦modality⟧ mr).")
    unit, origin = options.unit, described.origin("unit")
    if unit is None and own and own[0] == "CT":
        unit, origin = "hu", own[1]
    if unit not in CT_UNITS:
        raise DescriptionNeeded(
            f"{path} has no unit: say ⟦unit⟧ hu, mu, mu-cm or normalised.", ("unit",)
        )
    scale, offset = to_hu(options, unit)
    return Unit("CT", scale, offset, (*facts, Fact("unit", unit, origin)))


def convert(array: np.ndarray, slope: float, inter: float) -> np.ndarray:
    """slope * array + inter as float32 or complex64, computed so that plain values stay exact."""
    target = np.complex64 if array.dtype.kind == "c" else np.float32
    with np.errstate(over="ignore", invalid="ignore"):  # infinity is found when it is loaded
        if (slope, inter) == (1.0, 0.0):
            return array.astype(target)
        wide = np.complex128 if array.dtype.kind == "c" else np.float64
        return (array.astype(wide) * slope + inter).astype(target)


def volume_dataset(
    path: Path,
    options: InputOptions,
    stored: StoredVolume,
    affine: np.ndarray,
    *,
    placed: bool,
    sized: bool = True,
    origin: str,
    slope: float = 1.0,
    inter: float = 0.0,
    own: tuple[str, str] | None = None,
    volumes: str = "volumes",
) -> ImageDataset:
    """Slices along the third axis.

    Parameters
    ----------
    affine
        Voxel (i, j, k) to LPS mm; only its spacing is believed unless ``placed``, and not even
        that unless ``sized``.
    origin
        Where the geometry comes from, for the facts.
    """
    described = describe(path, options)
    unit = stated_unit(path, described, stored.dtype.kind == "c", own)
    slope, inter = unit.scale * slope, unit.scale * inter + unit.offset
    warnings: list[str] = []
    if not usable(affine):
        affine, placed, sized = np.eye(4), False, False
        warnings.append("The file's geometry makes no sense and is ignored.")
    if not placed:  # shown as stored: i to the patient's left, j to posterior
        affine = np.diag([*np.linalg.norm(affine[:3, :3], axis=0), 1.0])
    screen = Screen.for_affine(affine)
    first = _chosen_volume(path, described.options, stored, warnings, volumes)
    ni, nj, nk = stored.shape[:3]

    def read(number: int) -> np.ndarray:
        return screen.show(convert(stored.plane(first + number), slope, inter))

    dataset = ImageDataset(
        modality=unit.modality,
        description=path.name,
        count=nk,
        image_size=screen.size(ni, nj),
        pixel_mm=screen.spacing(affine),
        files=(path,) if stored.path == path else (path, stored.path),
        facts=list(unit.facts),
        warnings=warnings,
        read=read,
    )
    if placed:
        dataset.placements = screen.placements(affine, (ni, nj, nk))
        if dataset.placements is None:
            warnings.append("The image's axes are not perpendicular: its orientation is ignored.")
    if dataset.placements is None:
        warnings.append("The orientation is not known: the image is shown as it is stored.")
    settle_pixel(dataset, described, sized, origin)
    if dataset.placements is not None:
        dataset.add_fact("orientation", "kept", origin)
    if own is None:  # what this program wrote is read as it was written
        keep_above_air(dataset)
    return dataset


def settle_pixel(dataset: ImageDataset, described: Described, sized: bool, origin: str) -> None:
    """The file's own pixel size, else the person's, else 1 mm and a warning."""
    options = described.options
    dataset.settle_slices(options.slice_spacing_mm, described.origin("slice_spacing_mm"))
    if sized and dataset.pixel_mm is not None:
        rows, columns = dataset.pixel_mm
        if options.pixel_mm and abs(options.pixel_mm / columns - 1) > 1e-3:
            dataset.warn(
                f"⟦pixel_mm⟧ {options.pixel_mm:g} is ignored: the file says {columns:g} mm."
            )
        dataset.add_fact("pixel", f"{rows:g} x {columns:g} mm", origin)
        return
    pixel = options.pixel_mm or 1.0
    dataset.pixel_mm = (pixel, pixel)
    said = described.origin("pixel_mm") if options.pixel_mm else "assumed"
    dataset.add_fact("pixel", f"{pixel:g} mm", said)
    if not options.pixel_mm:
        dataset.warn("The pixel size is not known: 1 mm is assumed (⟦pixel_mm⟧).")


def _chosen_volume(
    path: Path, options: InputOptions, stored: StoredVolume, warnings: list[str], name: str
) -> int:
    """Number of the first plane of the volume asked for, of a file with several."""
    count = stored.planes // stored.shape[2]
    if options.dataset is None:
        if count > 1:
            said = f"The file holds {count} {name}: the first is taken (⟦dataset⟧ N)."
            warnings.append(Sentence(said))
        return 0
    if not options.dataset.isdecimal() or int(options.dataset[:9]) >= count:
        raise RequestError(
            f"{path}: ⟦dataset⟧ '{options.dataset}': give the number of a volume, 0..{count - 1}."
        )
    return int(options.dataset[:9]) * stored.shape[2]


MAX_HEADER_BYTES = 1 << 20


def whole_numbers(path: Path, name: str, words: Sequence[str], count: int | None) -> list[int]:
    try:
        numbers = [int(word) for word in words if len(word) < 20]
    except ValueError:
        numbers = []
    if not numbers or len(numbers) != len(words) or (count and len(numbers) != count):
        raise damaged(path, name)
    return numbers


def numbers(path: Path, name: str, words: Sequence[str], count: int) -> list[float]:
    try:
        values = [float(word) for word in words]
    except ValueError:
        values = []
    if len(values) != count or not all(math.isfinite(value) for value in values):
        raise damaged(path, name)
    return values


def spacing_only(steps: Sequence[float]) -> np.ndarray:
    """An affine of unknown orientation."""
    full = [*(abs(step) for step in steps), 1.0, 1.0, 1.0][:3]
    return np.diag([*full, 1.0])


def damaged(path: Path, name: str) -> RequestError:
    return RequestError(f"{path}: the entry '{name}' of its header is missing or cannot be used.")
