"""The real window, driven by events, which has to survive every fault."""

from window_fixtures import bench, benches, folders, leaves_nothing_behind, shared, started

__all__ = ["bench", "benches", "folders", "leaves_nothing_behind", "shared", "started"]
