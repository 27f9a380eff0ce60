"""What the C library does with freed memory."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

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


STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """``with PeakMemory(device) as peak: ...``; ``peak.gb`` is None where nobody tells."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.gb: float | None = None
        self._before: int | None = None

    def __enter__(self) -> PeakMemory:
        gc.collect()
        if self.device.type == "cuda":
            import torch  # the command line keeps memory before it knows whether it needs torch

            torch.cuda.reset_peak_memory_stats(self.device)
            self._before = torch.cuda.memory_allocated(self.device)
        elif sys.platform == "linux":
            self._before = _start_of_linux()
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is None:
            return
        if self.device.type == "cuda":
            import torch

            peak: int | None = torch.cuda.max_memory_allocated(self.device)
        else:
            peak = _status_bytes("VmHWM")
        self.gb = None if peak is None else max(0, peak - self._before) / 1e9


def _start_of_linux() -> int | None:
    """Give freed memory back, so that using it again counts, and forget the old peak."""
    give_memory_back()
    try:
        CLEAR.write_text("5", encoding="ascii")
    except OSError:  # a system that forbids it
        return None
    return _status_bytes("VmRSS")


def _status_bytes(name: str) -> int | None:
    for line in STATUS.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None
