"""What is asked about a run and what is told, as plain values.

Nothing here loads the engine, which takes seconds; `load_words` does, in a worker thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

SPLIT, SPREAD, PULL, CERTIFICATE = "split", "spread", "pull", "certificate"
TITLES: Final = {
    SPLIT: "Measured / guessed",
    SPREAD: "Spread over seeds",
    PULL: "Prior pull |x − z|",
    CERTIFICATE: "Does it fit the measurement?",
}
SEEDS: Final = 8


@dataclass(frozen=True)
class Question:
    """One of TITLES about one slice of a run; ``gap`` is its x - z, when that is still there."""

    kind: str
    run_id: str
    slice: int
    record_path: Path | None
    job: dict[str, Any] = field(repr=False)
    seeds: int = SEEDS
    gap: np.ndarray | None = field(default=None, repr=False)
    unit: str = ""  # of the gap
    fault: str = ""


@dataclass(frozen=True)
class Reading:
    """The sentences that go with an answer."""

    how_to_read: str
    cannot_tell: str


def load_words() -> dict[str, Reading]:
    """By the names of TITLES."""
    from engine.workflows.trust.words import ALL, SPLIT_RULE

    readings = {name: Reading(said.how_to_read, said.cannot_tell) for name, said in ALL.items()}
    split = readings[SPLIT]
    return readings | {SPLIT: Reading(f"{split.how_to_read} {SPLIT_RULE}", split.cannot_tell)}
