"""What a worker is asked to do.

A scheduler imports this module when a task passes through it, so it imports nothing itself.
"""

from __future__ import annotations


def handshake(prior: bytes | str, sha256: str, modality: str, device: str) -> bytes:
    """Take the prior in and say what this worker is."""
    from engine.workflows.cluster import work

    return work.handshake(prior, sha256, modality, device)


def compute(parcel: bytes) -> bytes:
    """One batch of slices."""
    from engine.workflows.cluster import work

    return work.compute(parcel)
