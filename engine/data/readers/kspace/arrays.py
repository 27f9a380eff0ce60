"""K-space as a bare array, whose axes a person names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.data.kspace.dataset import KspaceDataset
from engine.data.kspace.grid import (
    MAX_SLICE_BYTES,
    Kspace,
    KspaceSlice,
    measured_samples,
    plan_grid,
)
from engine.spec.errors import DescriptionNeeded, RequestError
from engine.spec.input_options import InputOptions

NAMES = ("slice", "coil", "read", "phase", "complex")
EXAMPLES = {
    2: ("read,phase", "phase,read"),
    3: ("slice,read,phase", "coil,read,phase"),
    4: ("slice,coil,read,phase", "slice,read,phase,coil"),
}


def open_kspace_array(
    array: np.ndarray, path: Path, options: InputOptions, maps: np.ndarray | None = None
) -> KspaceDataset:
    """``array`` may be any object with shape, dtype and slicing; read per slice.

    ``maps`` are sensitivities with the same axes, when there are any.
    """
    axes, origin = _axes_of(array, path, options)
    sizes = dict(zip(axes, array.shape, strict=True))
    count, coils = sizes.get("slice", 1), sizes.get("coil", 1)
    height, width = sizes["read"], sizes["phase"]
    if coils * height * width * 8 > MAX_SLICE_BYTES:
        raise RequestError(f"{path}: slices of {coils} x {height} x {width} are too large.")
    if maps is not None and tuple(maps.shape) != tuple(array.shape):
        raise RequestError(f"{path}: the maps {maps.shape} do not fit the data {array.shape}.")
    plan = plan_grid((height, width), None, None, options)
    read_kspace = _reader(array, axes, path)
    read_maps = None if maps is None else _reader(maps, axes, path)

    def load(number: int) -> KspaceSlice:
        values = read_kspace(number)
        own_maps = None if read_maps is None else plan.apply_to_image(read_maps(number))
        sampled = plan.apply_mask(measured_samples(values))
        return KspaceSlice(plan.apply(values), sampled, maps=own_maps)

    dataset = KspaceDataset(
        modality="MR",
        description=path.name,
        count=count,
        image_size=(plan.rows, plan.columns),
        pixel_mm=plan.pixel_mm,
        files=(path,),
        facts=plan.facts,
        warnings=plan.warnings,
        coils=coils,
        coil_use=options.coil_use or "sense",
        crop_size=plan.crop,
        load_slice=load,
    )
    dataset.add_fact("axes", ",".join(axes), origin)
    dataset.add_fact("coils", coils, "shape of the array")
    dataset.add_fact("zero frequency", "at the middle (N // 2) of each axis", "assumed")
    dataset.add_fact("sampling", "lines of zeros were not measured", "assumed")
    return dataset


def _axes_of(array: np.ndarray, path: Path, options: InputOptions) -> tuple[tuple[str, ...], str]:
    is_complex, shape = array.dtype.kind == "c", array.shape
    if array.dtype.kind not in "cfiu" or 0 in shape:
        raise RequestError(f"{path} holds {array.dtype} {shape}: no k-space.")
    if options.axes is not None:
        return _named_axes(options.axes, shape, is_complex, path), "option"
    if not is_complex:
        raise RequestError(
            f"{path} holds real numbers {shape}: name its axes, with 'complex' for the axis of "
            "real and imaginary parts (⟦axes⟧ slice,read,phase,complex)."
        )
    if len(shape) >= 2 and all(n == 1 for n in shape[:-2]) and len(shape) <= 4:
        names = ("slice", "coil")[: len(shape) - 2]
        return (*names, "read", "phase"), "assumed: the last axis is phase encoding"
    orders = EXAMPLES.get(len(shape), EXAMPLES[4])
    examples = " or ".join(f"⟦axes⟧ {text}" for text in orders)
    raise DescriptionNeeded(
        f"{path} holds {shape} numbers in an unknown order: say {examples}.", ("axes",), orders
    )


def _named_axes(text: str, shape: tuple[int, ...], is_complex: bool, path: Path) -> tuple[str, ...]:
    axes = tuple(name.strip().lower() for name in text.split(","))
    unknown = [name for name in axes if name not in NAMES]
    if unknown or len(set(axes)) != len(axes):
        raise RequestError(f"⟦axes⟧ '{text}': name each of {', '.join(NAMES)} once at most.")
    if len(axes) != len(shape):
        raise RequestError(f"⟦axes⟧ '{text}' names {len(axes)} axes; {path} has {len(shape)}.")
    if "read" not in axes or "phase" not in axes:
        raise RequestError(f"⟦axes⟧ '{text}' must name 'read' and 'phase'.")
    if is_complex == ("complex" in axes):
        wrong = "must not name 'complex'" if is_complex else "must name 'complex'"
        raise RequestError(f"⟦axes⟧ '{text}' {wrong}: {path} holds {_kind(is_complex)} numbers.")
    if not is_complex and shape[axes.index("complex")] != 2:
        raise RequestError(f"{path}: the 'complex' axis has {shape[axes.index('complex')]} parts.")
    return axes


def _kind(is_complex: bool) -> str:
    return "complex" if is_complex else "real"


def _reader(array: np.ndarray, axes: tuple[str, ...], path: Path) -> Callable[[int], Kspace]:
    """Reads one slice as complex64 [coil, read, phase], whatever the order in the array."""
    rest = [name for name in axes if name != "slice"]
    wanted = [name for name in ("coil", "read", "phase", "complex") if name in rest]
    order = [rest.index(name) for name in wanted]
    slice_axis = axes.index("slice") if "slice" in axes else None

    def read(number: int) -> Kspace:
        index = tuple(number if axis == slice_axis else slice(None) for axis in range(len(axes)))
        try:
            values = np.asarray(array[index]).transpose(order)
        except (OSError, IndexError, ValueError) as error:
            raise RequestError(f"{path}: slice {number} cannot be read.") from error
        if "complex" in rest:
            values = values[..., 0] + 1j * values[..., 1].astype(np.float64)
        values = np.array(values, dtype=np.complex64, order="C")  # never a view of the file
        return values if "coil" in rest else values[None]

    return read
