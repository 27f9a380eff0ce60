"""What the C library does with freed memory."""

from __future__ import annotations

import contextlib
import ctypes

# of glibc's mallopt
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
LARGEST_KEPT_BYTES, KEPT_BYTES = 32 * 2**20, 256 * 2**20


def keep_freed_memory() -> None:
    """Let freed memory be used again at once instead of being returned and asked for anew.

    A network frees and takes the same few megabytes at every step. Whether glibc returns them to
    the system in between hangs on what happens to lie behind them, and where it does every page
    has to be given back, and found zeroed, at the next step: a quarter of the denoiser's time.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_THRESHOLD, LARGEST_KEPT_BYTES)
        library.mallopt(TRIM_THRESHOLD, KEPT_BYTES)


def give_memory_back() -> None:
    """glibc would keep what was freed, in pieces, for every thread; others need no help."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
