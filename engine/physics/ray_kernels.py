"""The inner loops of the matrix-free projectors and of their FBP, compiled when first needed.

numba turns these plain loops into machine code that lets go of the interpreter lock, so that
ordinary threads share the work: they sleep while they wait. Which thread does what never changes
a sum, so that the bits are the same for any number of threads.

A steep ray crosses line k of ``rows`` at ``start + slope k``, a flatter one line k of ``columns``,
the same image transposed. Lines have an empty pixel before and two behind them, which ``start``
counts. Images and line integrals are flat arrays, with the slices innermost, in 1 to 8 lanes.

The compiler keeps the lanes in one register only if each has a name of its own, so that the
source is written out for them. Indices are unsigned: signed ones would be tested for counting
from the end.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

U = np.uint64
LANES: Final = (1, 2, 4, 8)  # slices at once
# Lines of pixels that all rays cross before the next ones are taken: they stay in the cache.
LINES_AT_ONCE: Final = 64

RAYS: Final = "f8[::1], f8[::1], b1[::1], i4[::1], i4[::1]"
PRODUCT: Final = f"void(f4[::1], f4[::1], i8, i8, {RAYS}, f4[::1], i8, i8)"
BACK_PROJECTION: Final = "void(f4[:, ::1], f8[:, ::1], b1, f4[:, ::1], f4[:, ::1], i8, i8)"


@functools.cache
def available() -> bool:
    """Whether there is a numba, and one that goes with this numpy."""
    try:
        importlib.import_module("numba")
    except ImportError:
        return False
    return True


@functools.cache
def product(name: str, lanes: int) -> Callable[..., None]:
    """'forward' or 'adjoint' for so many slices; compiled in half a second, once per process.

    What is run is the text below and a number of ours: nothing of it comes from a file.
    """
    names: dict[str, Any] = {"np": np, "U": U, "LINES_AT_ONCE": LINES_AT_ONCE}
    exec(unrolled({"forward": FORWARD, "adjoint": ADJOINT}[name], lanes), names)
    return _compiled(names[name], PRODUCT)


@functools.cache
def back_projection() -> Callable[..., None]:
    return _compiled(back_project_rows, BACK_PROJECTION)


def _compiled(loop: Callable[..., None], signature: str) -> Callable[..., None]:
    import numba

    config: Any = numba.config
    before, config.SLP_VECTORIZE = config.SLP_VECTORIZE, 1
    try:
        return numba.njit(signature, nogil=True, boundscheck=False)(loop)
    finally:
        config.SLP_VECTORIZE = before


def in_threads(act: Callable[[int], None], pieces: int, threads: int) -> None:
    """``act(i)`` for every piece of the work."""
    threads = min(pieces, threads, os.cpu_count() or 1)
    if threads <= 1:
        for i in range(pieces):
            act(i)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(act, range(pieces)))


# -- what is compiled ------------------------------------------------------------------------------


FORWARD: Final = """
def forward(rows, columns, row_width, column_width, start, slope, steep, first, last,
            sums, begin, end):
    for low in range(0, max(row_width, column_width), LINES_AT_ONCE):
        for ray in range(begin, end):
            lines = rows if steep[ray] else columns
            width = row_width if steep[ray] else column_width
            k_first = max(np.int64(first[ray]), low)
            k_last = min(np.int64(last[ray]), low + LINES_AT_ONCE)
            line = U(k_first * width)
            EACH{total_J = np.float32(0)}
            for k in range(k_first, k_last):
                place = start[ray] + slope[ray] * k
                i = np.int64(place)
                at = (line + U(i)) * U(LANES)
                share = np.float32(place - i)
                rest = np.float32(1) - share
                EACH{total_J += rest * lines[at + U(J)] + share * lines[at + U(LANES + J)]}
                line += U(width)
            at = U(ray * LANES)
            EACH{sums[at + U(J)] += total_J}
"""

ADJOINT: Final = """
def adjoint(rows, columns, row_width, column_width, start, slope, steep, first, last,
            values, low, high):
    for ray in range(start.size):
        lines = rows if steep[ray] else columns
        width = row_width if steep[ray] else column_width
        k_first = max(np.int64(first[ray]), low)
        k_last = min(np.int64(last[ray]), high)
        at = U(ray * LANES)
        EACH{value_J = values[at + U(J)]}
        line = U(k_first * width)
        for k in range(k_first, k_last):
            place = start[ray] + slope[ray] * k
            i = np.int64(place)
            at = (line + U(i)) * U(LANES)
            share = np.float32(place - i)
            rest = np.float32(1) - share
            EACH{below_J = lines[at + U(J)] + rest * value_J}
            EACH{above_J = lines[at + U(LANES + J)] + share * value_J}
            EACH{lines[at + U(J)] = below_J}
            EACH{lines[at + U(LANES + J)] = above_J}
            line += U(width)
"""


def unrolled(source: str, lanes: int) -> str:
    """``EACH{...}`` written out for every lane J."""

    def each(found: re.Match[str]) -> str:
        indent, statement = found.groups()
        written = (re.sub(r"\bJ\b|(?<=_)J\b", str(j), statement) for j in range(lanes))
        return "\n".join(indent + one for one in written)

    text = re.sub(r"( *)EACH\{(.*)\}", each, source)
    return re.sub(r"\bLANES\b", str(lanes), text)


def back_project_rows(views, places, parallel, image, missed, low, high):  # type: ignore[no-untyped-def]
    """Add the filtered views up at the pixels of some rows, and count who misses each pixel.

    ``views`` have an empty bin before and two behind them. View v sees pixel (row, column) at
    (p0 + p1 column + p2 row) / w in bins, with w = p3 + p4 column + p5 row and p = places[v];
    w is the distance from the source by that of the rotation centre, 1 for parallel rays.
    """
    bins = views.shape[1] - 3
    for v in range(views.shape[0]):
        view, p = views[v], places[v]
        for row in range(low, high):
            place_0, far_0 = p[0] + p[2] * row, p[3] + p[5] * row
            # the columns on the detector: all between two ends
            left, right = 0, image.shape[1]
            while left < right:
                place = (place_0 + p[1] * left) / (far_0 + p[4] * left)
                if -0.5 <= place <= bins - 0.5:
                    break
                left += 1
            while left < right:
                place = (place_0 + p[1] * (right - 1)) / (far_0 + p[4] * (right - 1))
                if -0.5 <= place <= bins - 0.5:
                    break
                right -= 1
            for column in range(left, right):
                place, weight = place_0 + p[1] * column, np.float32(1)
                if not parallel:
                    near = 1.0 / (far_0 + p[4] * column)
                    place, weight = place * near, np.float32(near * near)
                place = min(max(place, -1.0), float(bins)) + 1.0
                i = U(place)
                below = view[i]
                between = np.float32(place - i) * (view[i + U(1)] - below)
                image[row, column] += weight * (below + between)
            for column in range(left):
                missed[row, column] += 1
            for column in range(right, image.shape[1]):
                missed[row, column] += 1
