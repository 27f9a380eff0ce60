"""Opening an input, whatever it is: which reader is for it, and which of its slices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np

from engine.data.dataset import Dataset, ImageDataset, stamp_of
from engine.data.images.shrink import shrunk
from engine.data.readers.dicom.magic import is_dicom
from engine.data.sidecar import describe
from engine.files.path_safety import check_regular
from engine.spec import plugins
from engine.spec.errors import DualscopeError, RequestError, shown
from engine.spec.input_options import InputOptions

MOST_FILES, MOST_BYTES = 4, 1 << 30  # of inputs that are looked into when they are opened
Reader = Callable[[Path, InputOptions], Dataset]

# suffix -> module and function; imported when first needed
TIFF_FOLDER = "folder of .tif"
READERS = {
    TIFF_FOLDER: ("engine.data.readers.volumes.picture", "open_tiff_stack"),
    ".npy": ("engine.data.readers.arrays", "open_npy"),
    ".dcm": ("engine.data.readers.dicom.reader", "open_dicom"),
    ".dicom": ("engine.data.readers.dicom.reader", "open_dicom"),
    ".ima": ("engine.data.readers.dicom.reader", "open_dicom"),
    ".nii": ("engine.data.readers.volumes.nifti", "open_nifti"),
    ".nii.gz": ("engine.data.readers.volumes.nifti", "open_nifti"),
    ".nrrd": ("engine.data.readers.volumes.nrrd", "open_nrrd"),
    ".nhdr": ("engine.data.readers.volumes.nrrd", "open_nrrd"),
    ".mha": ("engine.data.readers.volumes.metaimage", "open_metaimage"),
    ".mhd": ("engine.data.readers.volumes.metaimage", "open_metaimage"),
    ".png": ("engine.data.readers.volumes.picture", "open_png"),
    ".tif": ("engine.data.readers.volumes.picture", "open_tiff"),
    ".tiff": ("engine.data.readers.volumes.picture", "open_tiff"),
    ".npz": ("engine.data.readers.arrays", "open_npz"),
    ".cfl": ("engine.data.readers.kspace.bart", "open_bart"),
    ".hdr": ("engine.data.readers.kspace.bart", "open_bart"),
    ".mat": ("engine.data.readers.arrays", "open_mat"),
    ".h5": ("engine.data.readers.hdf5.reader", "open_hdf5"),
    ".hdf5": ("engine.data.readers.hdf5.reader", "open_hdf5"),
    ".hdf": ("engine.data.readers.hdf5.reader", "open_hdf5"),
    ".nxs": ("engine.data.readers.hdf5.reader", "open_hdf5"),
    ".nx": ("engine.data.readers.hdf5.reader", "open_hdf5"),
    ".mrc": ("engine.data.readers.mrc", "open_mrc"),
    ".mrcs": ("engine.data.readers.mrc", "open_mrc"),
    ".st": ("engine.data.readers.mrc", "open_mrc"),
    ".ali": ("engine.data.readers.mrc", "open_mrc"),
    ".raw": ("engine.data.readers.arrays", "open_raw"),
    ".bin": ("engine.data.readers.arrays", "open_raw"),
    ".f32": ("engine.data.readers.arrays", "open_raw"),
}


def open_input(text: str, options: InputOptions | None = None) -> Dataset:
    """Open a file, a folder or a demo: ``demo:ct``, ``demo:mri``, ``demo:ct:SEED`` ..."""
    options = options or InputOptions()
    if text.startswith("demo:"):
        from engine.data.readers.demo import open_demo

        dataset: Dataset = open_demo(text)
    else:
        path = Path(text)
        if not path.exists():
            raise RequestError(f"{text} does not exist.")
        check_regular(path)
        dataset = find_reader(path)(path, options)
        said = describe(path, options).options if dataset.kind == "kspace" else options
        dataset.take(said)
    return settled(dataset, options)


def settled(dataset: Dataset, options: InputOptions) -> Dataset:
    """What every input ends with, wherever it comes from: its size, its files, a first look."""
    if options.size is not None and isinstance(dataset, ImageDataset):
        dataset = shrunk(dataset, options.size)
    dataset.description = shown(dataset.description)  # a file's name, mostly
    dataset.warnings[:] = map(shown, dataset.warnings)
    dataset.opened = tuple(stamp_of(file) for file in dataset.files)
    if _quickly_read(dataset):
        dataset.look()
    return dataset


def _quickly_read(dataset: Dataset) -> bool:
    """Whether one slice is a small part of a few files: a folder of views is read as a whole."""
    sizes = [stamp[0] for stamp in dataset.opened if stamp is not None]
    return len(sizes) <= MOST_FILES and sum(sizes) <= MOST_BYTES


def find_reader(path: Path) -> Reader:
    name = path.name.lower()
    if path.is_dir() and any(path.glob("*.tif*")):
        name = TIFF_FOLDER
    elif path.is_dir() or name == "dicomdir" or is_dicom(path):
        name = ".dcm"
    for suffix, (module, function) in READERS.items():
        if name.endswith(suffix):
            return getattr(import_module(module), function)
    for added in plugins.registered("readers"):
        if name.endswith("." + added.lower().lstrip(".")):
            return partial(_read_by_plugin, added)
    known = ", ".join([*READERS, *plugins.registered("readers")])
    raise RequestError(f"{path}: this kind of file is not supported; give one of {known}.")


def _read_by_plugin(name: str, path: Path, options: InputOptions) -> Dataset:
    """A plug-in's function of path and options gives a Dataset, or an array of numbers."""
    from engine.data.readers.arrays import open_array

    read = plugins.load("readers", name)
    try:
        found = read(path, options)
    except DualscopeError:
        raise
    except Exception as error:  # it is somebody else's code
        raise plugins.broken("readers", name, f"{type(error).__name__}: {error}") from error
    if isinstance(found, np.ndarray):
        return open_array(found, path, options, partial(_read_by_plugin, name, path))
    if not isinstance(found, Dataset):
        raise plugins.broken("readers", name, "it gives neither a Dataset nor an array")
    return found


def parse_slices(text: str | None, count: int) -> tuple[int, ...]:
    """'N' or 'A:B[:S]' as Python counts them; None is everything."""
    if text is None:
        return tuple(range(count))
    try:
        parts = [int(part) if part else None for part in text.split(":")]
        if len(parts) == 1 and parts[0] is not None:
            chosen = range(count)[parts[0] : (parts[0] + 1) or None]
        elif 2 <= len(parts) <= 3:
            chosen = range(count)[slice(*parts)]
        else:
            raise ValueError
        if not len(chosen):
            raise ValueError
    except ValueError:
        raise RequestError(
            f"⟦slice⟧ '{text}' selects nothing: give N or A:B[:S] within 0..{count - 1}."
        ) from None
    return tuple(chosen)
