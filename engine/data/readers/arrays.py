"""Plain arrays: ``.npy``, ``.npz``, ``.mat`` and any array of an HDF5 file.

What the numbers are - images, a sinogram or k-space - the person or a sidecar says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from engine.data.dataset import Dataset, ImageDataset
from engine.data.images.air import keep_above_air
from engine.data.readers.file_array import FileArray
from engine.data.readers.npy import npz_names, read_npy, read_npz
from engine.data.readers.volumes.slices import Indexable, SliceView, by_slices
from engine.data.sidecar import Described, describe
from engine.data.sinogram.units import CT_UNITS, to_hu
from engine.spec.errors import DescriptionNeeded, RequestError
from engine.spec.input_options import InputOptions

__all__ = ["image_array", "open_array", "open_mat", "open_npy", "open_npz", "read_npy"]

IMAGE_AXES = ("slice", "row", "column")
MOST_LOOKED_AT = 1 << 30  # bytes
SINOGRAM_UNITS = ("line-integral", "transmission", "counts")


def open_npy(path: Path, options: InputOptions) -> Dataset:
    return open_array(read_npy(path), path, options, partial(open_npy, path))


def open_npz(path: Path, options: InputOptions) -> Dataset:
    described = describe(path, options)
    shapes = npz_names(path)
    name = choose(path, shapes, described.options)
    maps = np.asarray(read_npz(path, "maps")) if shapes.get("maps") == shapes[name] else None
    return open_array(read_npz(path, name), path, options, partial(open_npz, path), maps=maps)


def open_mat(path: Path, options: InputOptions) -> Dataset:
    """MATLAB 5 to 7.2 here; 7.3 is HDF5."""
    from engine.data.readers.fips import find_structs, open_fips
    from engine.data.readers.mat5 import is_hdf5, read_mat5

    if is_hdf5(path):
        from engine.data.readers.hdf5.reader import open_hdf5

        return open_hdf5(path, options)
    variables = read_mat5(path)
    described = describe(path, options)
    structs = find_structs(variables)
    if structs and described.options.dataset is None:
        return open_fips(path, options, structs, partial(open_mat, path))
    arrays = {k: v for k, v in variables.items() if isinstance(v, np.ndarray)}
    name = choose(path, {k: v.shape for k, v in arrays.items()}, described.options)
    maps = arrays.get("maps")
    if maps is not None and maps.shape != arrays[name].shape:
        maps = None
    return open_array(arrays[name], path, options, partial(open_mat, path), maps=maps)


def choose(path: Path, shapes: dict[str, tuple[int, ...]], options: InputOptions) -> str:
    """The array that was named, or the only one that has two axes or is called what it is."""
    wanted = options.dataset
    if wanted is None and options.kind in shapes:
        wanted = options.kind
    if wanted is not None:
        name = wanted.strip("/")
        if name not in shapes:
            raise RequestError(f"{path.name} has no array '{wanted}'.")
        return name
    flat = [name for name, shape in shapes.items() if sum(n > 1 for n in shape) >= 2]
    if len(flat) == 1:
        return flat[0]
    if not flat:
        raise RequestError(f"{path.name} holds no array of two or more axes.")
    listed = ", ".join(sorted(flat)[:8])
    raise DescriptionNeeded(
        f"{path.name} holds several arrays: choose one with ⟦dataset⟧: {listed}.",
        ("dataset",),
        tuple(sorted(flat)),
    )


def kind_of(array: Indexable, described: Described) -> str:
    """What the person said, or what the other things they said amount to."""
    options = described.options
    if options.kind is not None:
        return options.kind
    axes = {axis.strip() for axis in (options.axes or "").split(",")}
    if array.dtype.kind == "c" and axes & {"coil", "read", "phase"}:
        return "kspace"
    if options.trajectory is not None or axes & {"spoke", "sample"}:
        return "kspace"
    scanned = any(
        value is not None for name, value in options.to_dict().items() if name.startswith("scan_")
    )
    if options.unit in SINOGRAM_UNITS or scanned or axes & {"view", "detector"}:
        return "sinogram"
    return "sinogram" if described.angles_deg is not None else "image"


def looks_like_kspace(array: Indexable) -> bool:
    """Whether two axes of complex numbers are a transform of an image, not an image.

    The middle of k-space holds most of the energy; the transform of k-space does not.
    """
    shape = array.shape
    if len(shape) < 2 or array.dtype.kind != "c":
        return False
    pairs = {(len(shape) - 2, len(shape) - 1), (0, 1)}
    if math.prod(shape) * array.dtype.itemsize > MOST_LOOKED_AT:  # (0, 1) lies all over the file
        pairs.discard((0, 1))
    return any(_is_transform(array, pair) for pair in sorted(pairs) if _are_planes(shape, pair))


def _are_planes(shape: tuple[int, ...], pair: tuple[int, int]) -> bool:
    return min(shape[axis] for axis in pair) >= 16 and shape[pair[0]] * shape[pair[1]] <= 1 << 24


def _is_transform(array: Indexable, pair: tuple[int, int]) -> bool:
    index = tuple(slice(None) if a in pair else n // 2 for a, n in enumerate(array.shape))
    plane = np.nan_to_num(np.asarray(array[index], np.complex128))
    image = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(plane)))
    return _middle(plane) > 0.5 and _middle(image) < 0.25


def _middle(plane: np.ndarray) -> float:
    """The share of the energy in the middle eighth of both axes."""
    energy = np.square(np.abs(plane))
    part = energy[tuple(slice(n // 2 - n // 16, n // 2 + n // 16 + 1) for n in plane.shape)]
    return float(part.sum() / max(float(energy.sum()), 1e-300))


def open_array(
    array: Indexable,
    path: Path,
    options: InputOptions,
    reopen: Callable[[InputOptions], Dataset],
    sinogram_axes: str | None = None,
    files: tuple[Path, ...] | None = None,
    maps: np.ndarray | None = None,
) -> Dataset:
    """An array of any origin as the dataset it is said to be; ``maps`` go with k-space."""
    described = describe(path, options)
    kind = kind_of(array, described)
    said = described.options.kind is not None or described.options.axes is not None
    if kind == "image" and not said and looks_like_kspace(array):
        raise DescriptionNeeded(
            f"{path} looks like k-space: most of its energy lies at its centre, and its transform "
            "is an image. Say ⟦kind⟧ kspace (and ⟦axes⟧ coil,read,phase or the like), or "
            "⟦kind⟧ image if it is one.",
            ("kind",),
        )
    if kind == "sinogram":
        from engine.data.readers.sinogram_array import open_sinogram_array

        return open_sinogram_array(array, path, options, described, reopen, sinogram_axes, files)
    if kind == "kspace":
        from engine.data.readers.kspace.arrays import open_kspace_array
        from engine.data.readers.kspace.spokes import find_trajectory, open_spokes_array

        found = find_trajectory(path, described.options)
        if found is not None:
            return open_spokes_array(array, found, path, described.options, maps)
        return open_kspace_array(cast(np.ndarray, array), path, described.options, maps)
    if array.dtype.kind not in "fiuc":
        raise RequestError(f"{path} holds {array.dtype} values: give numbers [H, W].")
    view = by_slices(array, str(path), IMAGE_AXES, described.options.axes)
    dataset = image_array(view, path, described.options)
    dataset.files = files or (path,)
    return dataset


def image_array(array: np.ndarray | SliceView, path: Path, options: InputOptions) -> ImageDataset:
    """``[N, H, W]`` with the unit the person named; nothing is guessed for CT."""
    is_complex = array.dtype.kind == "c"
    modality = options.modality.upper() if options.modality else ("MR" if is_complex else "CT")
    if modality == "CT" and is_complex:
        raise RequestError(f"{path} is complex: it is no CT image (use ⟦modality⟧ mr).")
    if modality == "CT" and options.unit not in CT_UNITS:
        raise DescriptionNeeded(
            f"{path} has no unit: say ⟦unit⟧ hu, mu, mu-cm or normalised.", ("kind", "unit")
        )
    scale, offset = to_hu(options) if modality == "CT" else (1.0, 0.0)

    def read(number: int) -> np.ndarray:
        if is_complex:
            return array[number].astype(np.complex64)
        return (array[number].astype(np.float32) * scale + offset).astype(np.float32)

    pixel = options.pixel_mm or 1.0
    dataset = ImageDataset(
        modality=modality,
        description=path.name,
        count=len(array),
        image_size=(array.shape[-2], array.shape[-1]),
        pixel_mm=(pixel, pixel),
        read=read,
    )
    dataset.add_fact("pixel", f"{pixel:g} mm", "option" if options.pixel_mm else "assumed")
    if modality == "CT":
        dataset.add_fact("unit", options.unit, "option")
        if options.unit == "hu":
            keep_above_air(dataset)
    dataset.settle_slices(options.slice_spacing_mm, "option")
    return dataset


def open_raw(path: Path, options: InputOptions) -> Dataset:
    described = describe(path, options)
    if described.shape is None:
        raise RequestError(
            f"{path.name} has no header: put a {path.stem}.json beside it that gives its shape "
            "(and dtype, byte_order)."
        )
    dtype = np.dtype(described.dtype)
    dtype = dtype.newbyteorder("<" if described.byte_order == "little" else ">")
    wanted = math.prod(described.shape) * dtype.itemsize
    try:
        size = path.stat().st_size
        if size != wanted:
            raise RequestError(
                f"{path.name} has {size} bytes, and {described.shape} values of "
                f"{described.dtype} are {wanted}."
            )
    except OSError as error:
        raise RequestError(f"{path} cannot be read.") from error
    array = FileArray(path, dtype, described.shape)
    return open_array(array, path, options, partial(open_raw, path))
