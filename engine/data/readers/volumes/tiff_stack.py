"""Projections as TIFF: the pages of one file, or the files of a folder in natural order."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from engine.data.dataset import Dataset
from engine.data.readers.arrays import open_array
from engine.data.readers.volumes.picture import MAX_FRAMES, picture
from engine.data.readers.volumes.slices import MAX_VALUES
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

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
