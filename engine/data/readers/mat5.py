"""MATLAB 5 files (versions 5 to 7.2): numbers, texts, structs and cells.

Read from the published layout (MAT-File Format, The MathWorks) rather than by a general loader,
because every size in such a file is a claim: here each one is compared with the bytes that are
really there, and what is made of them has a budget (``engine.files.budget``). Arrays come out as
MATLAB shows them (first index down); a 1 x 1 struct is a dict and a larger one a list of dicts.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np

from engine.files.budget import MIB, Budget
from engine.files.path_safety import check_regular, reading
from engine.spec.errors import RequestError

MAX_ELEMENTS: Final = 100_000  # fields and cells of one struct or cell array
MAX_DEPTH: Final = 8
HDF5_SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"

NUMBERS: Final = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8",
                  12: "i8", 13: "u8"}  # fmt: skip
MATRIX, COMPRESSED = 14, 15
CELL, STRUCT, CHAR = 1, 2, 4
CLASSES: Final = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4",
                  14: "i8", 15: "u8"}  # fmt: skip
COMPLEX_FLAG: Final = 0x0800


class _Damaged(Exception):
    """The bytes are not what the layout says."""


def is_hdf5(path: Path) -> bool:
    """MATLAB 7.3 files are HDF5 behind a 512-byte text."""
    check_regular(path)
    with reading(path), path.open("rb") as stream:
        start = stream.read(520)
    return HDF5_SIGNATURE in (start[:8], start[512:520])


def read_mat5(path: Path) -> dict[str, Any]:
    """Every variable of the file; what this reader does not know is left out."""
    budget = Budget(path, path.name)
    with reading(path):
        size = path.stat().st_size
        budget.read(size, "as version 5 it is read whole; version 7.3 is read by slices: it")
        with path.open("rb") as stream:
            content = stream.read(size)
    if len(content) < 128 or content[126:128] not in (b"IM", b"MI"):
        raise RequestError(f"{path.name} is not a MATLAB file of version 5 to 7.3.")
    order = "<" if content[126:128] == b"IM" else ">"
    try:
        return _Parser(order, budget).variables(memoryview(content)[128:])
    except _Damaged as error:
        raise RequestError(f"{path.name} is damaged: {error}.") from None


class _Parser:
    def __init__(self, order: str, budget: Budget) -> None:
        self.order, self.budget = order, budget

    def variables(self, content: memoryview) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while len(content) >= 8:
            kind, body, content = self.element(content)
            if kind == COMPRESSED:
                kind, body, _ = self.element(self.unpack(body))
            if kind == MATRIX:
                name, value = self.matrix(body, 0)
                if name and value is not None:
                    found[name] = value
        return found

    def unpack(self, body: memoryview) -> memoryview:
        """A compressed variable; its first eight bytes say how long it is."""
        worker = zlib.decompressobj()
        try:
            out = bytearray(worker.decompress(body, 8))
            if len(out) < 8:
                raise _Damaged("a compressed part cannot be unpacked")
            left = int(np.frombuffer(out[4:], self.order + "u4")[0])
            self.budget.expand(left, "unpacked, it")
            while left > 0:
                piece = worker.decompress(worker.unconsumed_tail, min(left, MIB))
                if not piece:
                    raise _Damaged("a value is longer than the file")
                out += piece
                left -= len(piece)
                self.budget.tick()
        except zlib.error:
            raise _Damaged("a compressed part cannot be unpacked") from None
        return memoryview(out)

    def element(self, content: memoryview) -> tuple[int, memoryview, memoryview]:
        """Type, bytes and what follows; a small element keeps its bytes in its tag."""
        if len(content) < 8:
            raise _Damaged("it ends in the middle of a value")
        first, second = (int(n) for n in np.frombuffer(content[:8], self.order + "u4"))
        if first >> 16:
            size, kind = first >> 16, first & 0xFFFF
            if size > 4:
                raise _Damaged("a small value is too long")
            return kind, content[4 : 4 + size], content[8:]
        if second > len(content) - 8:
            raise _Damaged("a value is longer than the file")
        end = 8 + second
        following = end if first == COMPRESSED else end + -end % 8
        return first, content[8:end], content[following:]

    def numbers(self, content: memoryview) -> tuple[np.ndarray, memoryview]:
        kind, body, rest = self.element(content)
        if kind not in NUMBERS:
            raise _Damaged("numbers are missing where they should be")
        dtype = np.dtype(self.order + NUMBERS[kind])
        return np.frombuffer(body[: len(body) - len(body) % dtype.itemsize], dtype), rest

    def matrix(self, body: memoryview, depth: int) -> tuple[str, Any]:
        self.budget.visit()
        if depth > MAX_DEPTH:
            raise _Damaged("it has too many or too deep structures")
        if not len(body):
            return "", np.zeros((0, 0))
        flags, body = self.numbers(body)
        dims, body = self.numbers(body)
        _, name_bytes, body = self.element(body)
        name = bytes(name_bytes).decode("utf-8", "replace")
        if flags.size < 1 or dims.size < 2 or dims.dtype.kind not in "iu" or dims.min() < 0:
            raise _Damaged("an array has no size")
        shape = tuple(int(n) for n in dims)
        code = int(flags[0]) & 0xFF
        if code in CLASSES:
            return name, self.numeric(body, shape, code, bool(int(flags[0]) & COMPLEX_FLAG))
        if code == CHAR:
            return name, self.text(body)
        if code == STRUCT:
            return name, self.struct(body, math.prod(shape), depth)
        if code == CELL:
            return name, self.cells(body, math.prod(shape), depth)
        return name, None

    def numeric(
        self, body: memoryview, shape: tuple[int, ...], code: int, is_complex: bool
    ) -> np.ndarray:
        values, body = self.numbers(body)
        if values.size != math.prod(shape):
            raise _Damaged("an array does not have the size it says")
        dtype = np.dtype(CLASSES[code])
        if is_complex:
            imaginary, _ = self.numbers(body)
            if imaginary.size != values.size:
                raise _Damaged("an array does not have the size it says")
            dtype = np.result_type(dtype, np.complex64)
            self.budget.expand(values.size * dtype.itemsize)
            both = np.empty(values.shape, dtype)
            both.real, both.imag = values, imaginary
            return both.reshape(shape, order="F")
        if values.dtype != dtype:
            self.budget.expand(values.size * dtype.itemsize)
        return values.astype(dtype, copy=False).reshape(shape, order="F")

    def text(self, body: memoryview) -> str:
        kind, characters, _ = self.element(body)
        self.budget.expand(4 * len(characters), "a text")
        wide = "utf-16-le" if self.order == "<" else "utf-16-be"
        coding = wide if kind in (4, 17) else "utf-8"
        return bytes(characters).decode(coding, "replace")

    def struct(self, body: memoryview, count: int, depth: int) -> Any:
        length, body = self.numbers(body)
        _, names, body = self.element(body)
        width = int(length[0]) if length.size else 0
        if not 1 <= width <= 256:
            raise _Damaged("a struct has no field names")
        self.budget.visit(len(names) // width)
        fields = [
            bytes(names[i : i + width]).split(b"\0")[0].decode("utf-8", "replace")
            for i in range(0, len(names), width)
        ]
        if count > MAX_ELEMENTS or count * len(fields) > MAX_ELEMENTS:
            raise _Damaged("a struct is absurdly large")
        records: list[dict[str, Any]] = []
        for _ in range(count):
            record = {}
            for field in fields:
                record[field], body = self.inner(body, depth)
            records.append(record)
        return records[0] if count == 1 else records

    def cells(self, body: memoryview, count: int, depth: int) -> list[Any]:
        if count > MAX_ELEMENTS:
            raise _Damaged("a cell array is absurdly large")
        values = []
        for _ in range(count):
            value, body = self.inner(body, depth)
            values.append(value)
        return values

    def inner(self, body: memoryview, depth: int) -> tuple[Any, memoryview]:
        kind, content, rest = self.element(body)
        if kind != MATRIX:
            raise _Damaged("a field is missing")
        return self.matrix(content, depth + 1)[1], rest
