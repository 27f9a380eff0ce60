"""MATLAB 7.3 files are HDF5: structs are groups, arrays are stored transposed."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np

from engine.data.readers.hdf5 import safe as hdf5_safe
from engine.spec.errors import RequestError

MAX_ELEMENTS = 10_000  # of one cell or struct array
MAX_DEPTH = 8


class Mat73:
    """Turns HDF5 objects into what `engine.data.readers.mat5` gives for the same variables."""

    def __init__(self, file: h5py.File) -> None:
        self.file = file
        self.budget = hdf5_safe.budget_of(file)
        self._open: set[tuple[int, int]] = set()  # the structs that are being read

    def variables(self) -> dict[str, Any]:
        """Structs only: plain arrays are read one at a time by name."""
        found = {}
        for name in list(self.file.keys())[: hdf5_safe.MAX_ITEMS]:
            if name.startswith("#"):
                continue
            node = hdf5_safe.item(self.file, name)
            if isinstance(node, h5py.Group) or (node is not None and node.dtype.kind == "O"):
                found[name] = self.value(node, 0)
        return found

    def value(self, node: h5py.Group | h5py.Dataset, depth: int) -> Any:
        self.budget.visit()
        if depth > MAX_DEPTH:
            raise RequestError(f"{self._name()} has too many or too deep structures.")
        if isinstance(node, h5py.Group):
            return self._struct(node, depth)
        if not isinstance(node, h5py.Dataset):
            return None
        self._refuse_foreign(node)
        if node.dtype == h5py.ref_dtype:
            return self._references(node, depth)
        if (node.dtype.kind not in "fiubc" and not is_complex(node)) or node.shape is None:
            return None
        if node.attrs.get("MATLAB_empty", 0):
            return np.zeros((0, 0))
        values = hdf5_safe.read(node)
        if is_complex(node):
            dtype = np.result_type(values["real"], values["imag"], np.complex64)
            self.budget.expand(values.size * dtype.itemsize, f"'{node.name}'")
            both = np.empty(values.shape, dtype)
            both.real, both.imag = values["real"], values["imag"]
            values = both
        if _class(node) == "char":
            self.budget.expand(8 * values.size, f"'{node.name}'")
            codes = values.T.reshape(-1, order="F").astype(np.uint16)
            return codes.astype("<u2").tobytes().decode("utf-16-le", "replace")
        return values.T

    def _struct(self, group: h5py.Group, depth: int) -> Any:
        fields = {}
        self._open.add(hdf5_safe.address(group))
        for name in list(group.keys()):
            node = hdf5_safe.item(group, name)
            inside = isinstance(node, h5py.Group) and hdf5_safe.address(node) in self._open
            if inside:
                raise RequestError(f"{self._name()} has a struct that holds itself.")
            fields[name] = None if node is None else self.value(node, depth + 1)
        self._open.discard(hdf5_safe.address(group))
        counts = {len(v) for v in fields.values() if isinstance(v, _Many)}
        if len(counts) != 1:
            return fields
        # A struct array keeps one list of references per field.
        count = counts.pop()
        return [
            {k: v[i] if isinstance(v, _Many) else v for k, v in fields.items()}
            for i in range(count)
        ]

    def _references(self, node: h5py.Dataset, depth: int) -> Any:
        if node.size is None or node.size > MAX_ELEMENTS:
            raise RequestError(f"{self._name()} has too many or too deep structures.")
        targets = np.asarray(node[()]).T.reshape(-1, order="F")
        values = _Many()
        for reference in targets:
            target = self.file[reference] if reference else None  # stays inside this file
            known = isinstance(target, h5py.Group | h5py.Dataset)
            values.append(self.value(target, depth + 1) if known else None)
        return values if _class(node) != "cell" else list(values)

    def _refuse_foreign(self, node: h5py.Dataset) -> None:
        if node.external or node.is_virtual:
            raise RequestError(f"{self._name()} keeps numbers in other files; refused.")
        hdf5_safe.check_chunks(node)

    def _name(self) -> str:
        return str(self.file.filename).replace("\\", "/").rsplit("/", 1)[-1]


class _Many(list):
    """The values of one field over the elements of a struct array."""


def is_complex(node: h5py.Dataset) -> bool:
    """MATLAB stores complex numbers as pairs with these names."""
    return node.dtype.names == ("real", "imag") and all(
        node.dtype[name].kind in "fiu" for name in ("real", "imag")
    )


def _class(node: h5py.Dataset) -> str:
    value = node.attrs.get("MATLAB_class", b"")
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
