"""What the experiments page asks for and is told, as plain values.

Nothing here loads the engine, which takes seconds; `load_offers` does, in a worker thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Offer:
    """An experiment to choose; ``count`` is how many slices it takes by itself."""

    name: str
    question: str
    count: int


@dataclass(frozen=True)
class Offers:
    experiments: tuple[Offer, ...]
    priors: tuple[str, ...]


def load_offers() -> Offers:
    """All experiments, and the priors of both modalities."""
    from engine.priors.catalogue import list_priors
    from engine.workflows.experiments.catalogue import EXPERIMENTS

    return Offers(
        tuple(Offer(one.name, one.question, one.count) for one in EXPERIMENTS.values()),
        tuple(dict.fromkeys([*list_priors("CT"), *list_priors("MR")])),
    )


@dataclass(frozen=True)
class Inputs:
    """What the slices are taken from: paths or demo:..., none for phantoms.

    ``options`` tell what the files do not say themselves.
    """

    texts: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchRequest:
    experiment: str
    folder: str
    inputs: Inputs = field(default_factory=Inputs)
    count: int | None = None  # None: as the experiment needs
    prior: str = "auto"
    quick: bool = False
    overwrite: bool = False

    @property
    def fault(self) -> str:
        """Why this cannot start; empty when it can."""
        if not self.experiment:
            return "The experiments are still loading."
        return "" if self.folder else "Choose a folder for the results."
