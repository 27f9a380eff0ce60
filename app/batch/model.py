"""What the experiments page asks for and is told, as plain values.

Nothing here loads the engine, which takes seconds; `load_offers` does, in a worker thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

# The command line's words in the engine's sentences, and the page's own.
ON_SCREEN: Final = (
    ("name another folder with -o, or --overwrite it", "choose another folder or tick Begin again"),
    (
        "say --unit hu, mu, mu-cm or normalised",
        "open it in the main window first, and take the open data as inputs",
    ),
    ("--prior", "the prior"),
    ("--deidentify", "“Leave out all names”"),
)

TABLE, STEP = "table", "step"  # slots of the mailbox, where only the newest one counts


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


@dataclass(frozen=True)
class Table:
    """The engine's table as text; ``worded`` columns hold words, the others numbers."""

    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    worded: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Step:
    """How far it is; ``words`` say what is being computed."""

    words: str
    fraction: float
    seconds_left: float | None = None


@dataclass(frozen=True)
class Begun:
    """The inputs are read; ``notes`` say what had to be left out."""

    cases: int
    done: int  # by an earlier start
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """``status`` is 'done', 'cancelled' or 'failed', then with a ``sentence``."""

    status: str
    folder: Path
    figures: tuple[Path, ...] = ()
    sentence: str = ""
    details: str = ""


def on_screen(sentence: str, words: tuple[tuple[str, str], ...] = ON_SCREEN) -> str:
    """The engine's sentence in the words of the page."""
    for command_line, page in words:
        sentence = sentence.replace(command_line, page)
    return sentence
