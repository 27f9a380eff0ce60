"""Freed memory back to the system."""

from __future__ import annotations

import contextlib
import ctypes


def give_memory_back() -> None:
    """glibc would keep what was freed, in pieces, for every thread; others need no help."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
