"""The real window, driven by events, which has to survive every fault."""

from window_fixtures import (
    bench,
    benches,
    collects_in_the_gui_thread,
    folders,
    leaves_nothing_behind,
    shared,
    started,
)

__all__ = [
    "bench",
    "benches",
    "collects_in_the_gui_thread",
    "folders",
    "leaves_nothing_behind",
    "shared",
    "started",
]
