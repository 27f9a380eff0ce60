"""PNG and TIFF pictures, one number per pixel, and stacks of them: projections as TIFF.

What the numbers mean has to be said. Pictures that our own writer made carry it themselves: as
text in a 16-bit PNG, as the description of a TIFF.
"""

from __future__ import annotations

import json
import re
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from engine.data.dataset import Dataset, ImageDataset
from engine.data.readers.arrays import open_array
from engine.data.readers.volumes.slices import MAX_VALUES
from engine.data.readers.volumes.volume import convert, settle_pixel, stated_unit
from engine.data.sidecar import describe
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

MAX_PIXELS = 1 << 26
MAX_FRAMES = 100_000
MODES = {"L": "8 bit", "I;16": "16 bit", "I;16B": "16 bit", "I": "integers", "F": "float32"}
SOFTWARE = "Dualscope"  # of pictures that carry their unit themselves
WHITE_IS_ZERO, PHOTOMETRIC, DESCRIPTION, SAMPLE_FORMAT, BITS = 0, 262, 270, 339, 258
BROKEN = (
    OSError,
    ValueError,
    SyntaxError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    OverflowError,
    AttributeError,
    RuntimeError,
    struct.error,
    MemoryError,
)


def open_png(path: Path, options: InputOptions) -> Dataset:
    return _open(path, options, "PNG", _png_text)


def open_tiff(path: Path, options: InputOptions) -> Dataset:
    if options.kind == "sinogram":
        stack = import_module("engine.data.readers.volumes.picture")
        return stack.open_tiff_stack(path, options)
    return _open(path, options, "TIFF", _tiff_text)


def _open(
    path: Path, options: InputOptions, kind: str, said: Callable[[Image.Image], dict[str, Any]]
) -> ImageDataset:
    with picture(path, kind) as image:
        _check(path, image)
        size, mode = image.size, image.mode
        count = int(getattr(image, "n_frames", 1))
        own = said(image)
    if not 1 <= count <= MAX_FRAMES:
        raise RequestError(f"{path} holds {count} pictures, which cannot be used.")
    slope, inter = _number(own, "slope", 1.0), _number(own, "intercept", 0.0)
    modality = own.get("modality")
    origin = f"{kind} text"
    described = describe(path, options)
    unit = stated_unit(
        path, described, False, (modality, origin) if modality in ("CT", "MR") else None
    )
    slope, inter = unit.scale * slope, unit.scale * inter + unit.offset

    def read(number: int) -> np.ndarray:
        with picture(path, kind) as image:
            image.seek(number)
            _check(path, image)
            if (image.size, image.mode) != (size, mode):
                raise RequestError(f"{path}: its pictures differ in size or kind.")
            array = np.asarray(image)
        return convert(array, slope, inter)

    dataset = ImageDataset(
        modality=unit.modality,
        description=path.name,
        count=count,
        image_size=(size[1], size[0]),
        pixel_mm=None,
        files=(path,),
        facts=list(unit.facts),
        read=read,
    )
    spacing = [_number(own, name, 0.0) for name in ("row_mm", "column_mm")]
    if min(spacing) > 0:
        dataset.pixel_mm = (spacing[0], spacing[1])
    dataset.add_fact("grey levels", MODES[mode], f"{kind} header")
    settle_pixel(dataset, described, dataset.pixel_mm is not None, origin)
    if unit.modality == "CT" and mode == "L":
        dataset.warnings.append(
            "The picture has 256 grey levels only; a picture made through a window is not in HU."
        )
    return dataset


@contextmanager
def picture(path: Path, kind: str) -> Iterator[Image.Image]:
    """The opened picture; only its own format's decoder ever sees the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # our own limit on the size is lower than Pillow's
            with Image.open(path, formats=[kind]) as image:
                yield image
    except RequestError:
        raise
    except PermissionError as error:
        raise RequestError(f"{path} may not be read: {error.strerror}.") from error
    except Image.DecompressionBombError as error:
        raise RequestError(f"{path}: the picture is too large.") from error
    except BROKEN as error:
        raise RequestError(f"{path} is damaged or not a {kind} picture.") from error


def _check(path: Path, image: Image.Image) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise RequestError(f"{path}: a picture of {width} x {height} pixels is too large.")
    if image.mode not in MODES:
        raise RequestError(
            f"{path} is in colour or black and white ({image.mode}): give a grey picture of 8 or "
            "16 bit or float32."
        )
    tags = getattr(image, "tag_v2", {})
    if image.mode != "L" and tags.get(PHOTOMETRIC) == WHITE_IS_ZERO:
        raise RequestError(f"{path}: in this picture white is zero, which is not supported.")
    if image.mode == "I" and tags.get(SAMPLE_FORMAT, (2,))[0] == 1 and tags.get(BITS) == (32,):
        raise RequestError(f"{path}: unsigned 32-bit numbers are not supported.")


def _png_text(image: Image.Image) -> dict[str, Any]:
    return _own(image.info.get("Description"))


def _tiff_text(image: Image.Image) -> dict[str, Any]:
    return _own(getattr(image, "tag_v2", {}).get(DESCRIPTION))


def _own(text: object) -> dict[str, Any]:
    """What our writer says of a picture; anything else says nothing."""
    try:
        said = json.loads(text) if isinstance(text, str) and len(text) < 10_000 else None
    except (ValueError, RecursionError):
        said = None
    return said if isinstance(said, dict) and said.get("software") == SOFTWARE else {}


def _number(said: dict[str, Any], name: str, default: float) -> float:
    value = said.get(name, default)
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e12
    return float(value) if good else default


AXES = "view,slice,detector"
SUFFIXES = (".tif", ".tiff")
DTYPES = {"L": "u1", "I;16": "u2", "I;16B": "u2", "I": "i4", "F": "f4"}


def open_tiff_stack(path: Path, options: InputOptions) -> Dataset:
    """A sinogram from projections; one page alone is a sinogram ``[views, detectors]``."""
    stack = TiffStack(path)
    reopen = partial(open_tiff_stack, path)
    options = options if options.kind else _as_sinogram(options)
    if stack.shape[0] == 1:
        return open_array(stack[0], path, options, reopen, None, stack.files)
    return open_array(stack, path, options, reopen, AXES, stack.files)


def _as_sinogram(options: InputOptions) -> InputOptions:
    return InputOptions.from_dict({**options.to_dict(), "kind": "sinogram"})


def tiff_files(folder: Path) -> tuple[Path, ...]:
    """The TIFF files of a folder, 2 before 10."""
    found = [one for one in folder.iterdir() if one.suffix.lower() in SUFFIXES and one.is_file()]
    return tuple(sorted(found, key=lambda one: _natural(one.name)))


def _natural(name: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", name.lower())
    return [(1, int(p[:18]), p) if p.isdecimal() else (0, 0, p) for p in parts]


class TiffStack:
    """Pages ``[page, row, column]``, decoded when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.files = tiff_files(path) if path.is_dir() else (path,)
        if not self.files:
            raise RequestError(f"{path} holds no TIFF files.")
        with picture(self.files[0], "TIFF") as image:
            width, height = image.size
            self.mode = image.mode
            self.pages = 1 if path.is_dir() else int(getattr(image, "n_frames", 1))
        count = len(self.files) * self.pages
        if self.mode not in DTYPES or count > MAX_FRAMES:
            raise RequestError(f"{path} is not a stack of grey pictures of 8, 16 or 32 bit.")
        if width * height > MAX_VALUES:
            raise RequestError(f"{path}: pictures of {width} x {height} pixels are too large.")
        self.shape = (count, height, width)
        self.dtype = np.dtype(DTYPES[self.mode])

    def __getitem__(self, index: Any) -> np.ndarray:
        index = index if isinstance(index, tuple) else (index,)
        pages = np.arange(self.shape[0])[index[0]]
        if np.ndim(pages) == 0:
            return self._page(int(pages))[tuple(index[1:])]
        shape = np.broadcast_to(np.uint8(0), self.shape)[index].shape
        if np.prod(shape, dtype=float) > MAX_VALUES:
            raise RequestError(f"{self.files[0].name}: {shape} values at once are too many.")
        return np.stack([self._page(int(page))[tuple(index[1:])] for page in pages])

    def _page(self, number: int) -> np.ndarray:
        path = self.files[number // self.pages]
        with picture(path, "TIFF") as image:
            image.seek(number % self.pages)
            if (image.size[1], image.size[0]) != self.shape[1:] or image.mode != self.mode:
                raise RequestError(f"{path.name} has another size or type than the first picture.")
            return np.asarray(image)
