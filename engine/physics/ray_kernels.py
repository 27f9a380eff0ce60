"""The inner loops of the matrix-free projectors and of their FBP, compiled when first needed.

numba turns these plain loops into machine code that lets go of the interpreter lock, so that
ordinary threads share the work: they sleep while they wait. Which thread does what never changes
a sum, so that the bits are the same for any number of threads.

A steep ray crosses line k of ``rows`` at ``start + slope k``, a flatter one line k of ``columns``,
the same image transposed. Lines have an empty pixel before and two behind them, which ``start``
counts. Images and line integrals are flat arrays, with the slices innermost: one or eight.
"""

# The compiler puts eight slices into one register only if every one has its own name.
# Indices are unsigned, as signed ones would be tested for counting from the end.

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

U = np.uint64
GROUP: Final = 8  # slices at once
# Lines of pixels that all rays cross before the next ones are taken: they stay in the cache.
LINES_AT_ONCE: Final = 64

_RAYS = "f8[::1], f8[::1], b1[::1], i4[::1], i4[::1]"
SIGNATURES: Final = {
    "forward_one": f"void(f4[::1], f4[::1], i8, i8, {_RAYS}, f4[::1], i8, i8)",
    "forward_eight": f"void(f4[::1], f4[::1], i8, i8, {_RAYS}, f4[::1], i8, i8)",
    "adjoint_one": f"void(f4[::1], f4[::1], i8, i8, {_RAYS}, f4[::1], i8, i8)",
    "adjoint_eight": f"void(f4[::1], f4[::1], i8, i8, {_RAYS}, f4[::1], i8, i8)",
    "back_project_rows": "void(f4[:, ::1], f8[:, ::1], b1, f4[:, ::1], f4[:, ::1], i8, i8)",
}


@functools.cache
def available() -> bool:
    """Whether there is a numba, and one that goes with this numpy."""
    try:
        importlib.import_module("numba")
    except ImportError:
        return False
    return True


@functools.cache
def compiled(name: str) -> Callable[..., None]:
    """One of the loops below as machine code; half a second for each, once per process."""
    import numba

    config: Any = numba.config
    before, config.SLP_VECTORIZE = config.SLP_VECTORIZE, 1
    try:
        return numba.njit(SIGNATURES[name], nogil=True, boundscheck=False)(globals()[name])
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


# -- compiled: no annotations, and only what numba knows -------------------------------------------


def forward_one(  # type: ignore[no-untyped-def]
    rows, columns, row_width, column_width, start, slope, steep, first, last, sums, begin, end
):
    """The rays ``begin`` to ``end`` through one image; lengths are still to be multiplied with."""
    one = U(1)
    for low in range(0, max(row_width, column_width), LINES_AT_ONCE):
        for ray in range(begin, end):
            lines = rows if steep[ray] else columns
            width = row_width if steep[ray] else column_width
            k_first = max(np.int64(first[ray]), low)
            k_last = min(np.int64(last[ray]), low + LINES_AT_ONCE)
            total = np.float32(0)
            line = U(k_first * width)
            for k in range(k_first, k_last):
                place = start[ray] + slope[ray] * k
                i = np.int64(place)
                at = line + U(i)
                below = lines[at]
                total += below + np.float32(place - i) * (lines[at + one] - below)
                line += U(width)
            sums[ray] += total


def forward_eight(  # type: ignore[no-untyped-def]
    rows, columns, row_width, column_width, start, slope, steep, first, last, sums, begin, end
):
    """The same through eight images."""
    for low in range(0, max(row_width, column_width), LINES_AT_ONCE):
        for ray in range(begin, end):
            lines = rows if steep[ray] else columns
            width = row_width if steep[ray] else column_width
            k_first = max(np.int64(first[ray]), low)
            k_last = min(np.int64(last[ray]), low + LINES_AT_ONCE)
            t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = np.float32(0)
            line = U(k_first * width)
            for k in range(k_first, k_last):
                place = start[ray] + slope[ray] * k
                i = np.int64(place)
                a = (line + U(i)) * U(8)
                share = np.float32(place - i)
                rest = np.float32(1) - share
                t0 += rest * lines[a] + share * lines[a + U(8)]
                t1 += rest * lines[a + U(1)] + share * lines[a + U(9)]
                t2 += rest * lines[a + U(2)] + share * lines[a + U(10)]
                t3 += rest * lines[a + U(3)] + share * lines[a + U(11)]
                t4 += rest * lines[a + U(4)] + share * lines[a + U(12)]
                t5 += rest * lines[a + U(5)] + share * lines[a + U(13)]
                t6 += rest * lines[a + U(6)] + share * lines[a + U(14)]
                t7 += rest * lines[a + U(7)] + share * lines[a + U(15)]
                line += U(width)
            a = U(ray * 8)
            sums[a] += t0
            sums[a + U(1)] += t1
            sums[a + U(2)] += t2
            sums[a + U(3)] += t3
            sums[a + U(4)] += t4
            sums[a + U(5)] += t5
            sums[a + U(6)] += t6
            sums[a + U(7)] += t7


def adjoint_one(  # type: ignore[no-untyped-def]
    rows, columns, row_width, column_width, start, slope, steep, first, last, values, low, high
):
    """Spread values, times their rays' lengths, over the lines ``low`` to ``high``."""
    one = U(1)
    for ray in range(start.size):
        lines = rows if steep[ray] else columns
        width = row_width if steep[ray] else column_width
        k_first, k_last = max(np.int64(first[ray]), low), min(np.int64(last[ray]), high)
        value = values[ray]
        line = U(k_first * width)
        for k in range(k_first, k_last):
            place = start[ray] + slope[ray] * k
            i = np.int64(place)
            at = line + U(i)
            upper = np.float32(place - i) * value
            lines[at] += value - upper
            lines[at + one] += upper
            line += U(width)


def adjoint_eight(  # type: ignore[no-untyped-def]
    rows, columns, row_width, column_width, start, slope, steep, first, last, values, low, high
):
    """The same for eight images."""
    for ray in range(start.size):
        lines = rows if steep[ray] else columns
        width = row_width if steep[ray] else column_width
        k_first, k_last = max(np.int64(first[ray]), low), min(np.int64(last[ray]), high)
        a = U(ray * 8)
        v0 = values[a]
        v1 = values[a + U(1)]
        v2 = values[a + U(2)]
        v3 = values[a + U(3)]
        v4 = values[a + U(4)]
        v5 = values[a + U(5)]
        v6 = values[a + U(6)]
        v7 = values[a + U(7)]
        line = U(k_first * width)
        for k in range(k_first, k_last):
            place = start[ray] + slope[ray] * k
            i = np.int64(place)
            a = (line + U(i)) * U(8)
            share = np.float32(place - i)
            rest = np.float32(1) - share
            p0 = lines[a] + rest * v0
            p1 = lines[a + U(1)] + rest * v1
            p2 = lines[a + U(2)] + rest * v2
            p3 = lines[a + U(3)] + rest * v3
            p4 = lines[a + U(4)] + rest * v4
            p5 = lines[a + U(5)] + rest * v5
            p6 = lines[a + U(6)] + rest * v6
            p7 = lines[a + U(7)] + rest * v7
            q0 = lines[a + U(8)] + share * v0
            q1 = lines[a + U(9)] + share * v1
            q2 = lines[a + U(10)] + share * v2
            q3 = lines[a + U(11)] + share * v3
            q4 = lines[a + U(12)] + share * v4
            q5 = lines[a + U(13)] + share * v5
            q6 = lines[a + U(14)] + share * v6
            q7 = lines[a + U(15)] + share * v7
            lines[a] = p0
            lines[a + U(1)] = p1
            lines[a + U(2)] = p2
            lines[a + U(3)] = p3
            lines[a + U(4)] = p4
            lines[a + U(5)] = p5
            lines[a + U(6)] = p6
            lines[a + U(7)] = p7
            lines[a + U(8)] = q0
            lines[a + U(9)] = q1
            lines[a + U(10)] = q2
            lines[a + U(11)] = q3
            lines[a + U(12)] = q4
            lines[a + U(13)] = q5
            lines[a + U(14)] = q6
            lines[a + U(15)] = q7
            line += U(width)


def back_project_rows(views, places, parallel, image, seen, low, high):  # type: ignore[no-untyped-def]
    """Add the filtered views up at the pixels of some rows, and count who sees each pixel.

    ``views`` have an empty bin before and two behind them. View v sees pixel (row, column) at
    (p0 + p1 column + p2 row) / w in bins, with w = p3 + p4 column + p5 row and p = places[v];
    w is the distance from the source by that of the rotation centre, 1 for parallel rays.
    """
    bins = views.shape[1] - 3
    for v in range(views.shape[0]):
        view, p = views[v], places[v]
        for row in range(low, high):
            place_0, far_0 = p[0] + p[2] * row, p[3] + p[5] * row
            for column in range(image.shape[1]):
                place, weight = place_0 + p[1] * column, np.float32(1)
                if not parallel:
                    near = 1.0 / (far_0 + p[4] * column)
                    place, weight = place * near, np.float32(near * near)
                on_detector = (place >= -0.5) & (place <= bins - 0.5)
                place = min(max(place, -1.0), float(bins)) + 1.0
                i = np.int32(place)
                value = view[i] + np.float32(place - i) * (view[i + 1] - view[i])
                image[row, column] += weight * value if on_detector else np.float32(0)
                seen[row, column] += on_detector
