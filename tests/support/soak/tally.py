"""What a soak has seen so far, task by task."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

MOST_TROUBLES: Final = 200  # sentences that are kept; the numbers count all
LONGEST: Final = 2000  # letters of one of them
BUG: Final = ("Traceback", "fault in Dualscope")  # what no message may hold


@dataclass
class Row:
    """One task: ``said`` and ``unsaid`` count faults that had their sentence, and those without."""

    runs: int = 0
    faults: int = 0
    said: int = 0
    unsaid: int = 0
    lost: int = 0
    unexpected: int = 0


class Tally:
    """Rows by task, and a sentence for every trouble."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.troubles: list[str] = []

    def begin(self, task: str) -> Mark:
        row = self.rows.setdefault(task, Row())
        row.runs += 1
        return Mark(self, task, row)

    def trouble(self, words: str) -> None:
        if len(self.troubles) < MOST_TROUBLES:
            self.troubles.append(words[:LONGEST])

    @property
    def clean(self) -> bool:
        return not any(row.lost or row.unexpected or row.unsaid for row in self.rows.values())

    def total(self) -> Row:
        sums = dict.fromkeys(asdict(Row()), 0)
        for row in self.rows.values():
            for name, value in asdict(row).items():
                sums[name] += value
        return Row(**sums)

    def to_dict(self) -> dict[str, Any]:
        rows = {task: asdict(row) for task, row in self.rows.items()}
        return {"rows": rows, "troubles": list(self.troubles)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Tally:
        tally = cls()
        tally.rows = {task: Row(**row) for task, row in values.get("rows", {}).items()}
        tally.troubles = list(values.get("troubles", []))
        return tally


class Mark:
    """What a task notes of one of its turns."""

    def __init__(self, tally: Tally, task: str, row: Row) -> None:
        self.tally, self.task, self.row = tally, task, row

    def fault(self) -> None:
        self.row.faults += 1

    def said(self, text: str, *words: str) -> None:
        """A fault is to be told in a sentence that holds one of ``words``."""
        plain = not any(bug in text for bug in BUG)
        if plain and any(word in text for word in words):
            self.row.said += 1
        else:
            self.row.unsaid += 1
            self._note(f"no sentence with '{' or '.join(words)}', but: {text or 'nothing'}")

    def lost(self, words: str) -> None:
        self.row.lost += 1
        self._note(f"lost: {words}")

    def unexpected(self, words: str) -> None:
        self.row.unexpected += 1
        self._note(words)

    def _note(self, words: str) -> None:
        self.tally.trouble(f"{self.task}: {words}")
