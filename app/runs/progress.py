"""How far the runs are, how long a step takes and how long is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

PARTS = ("data", "sh", "denoiser")
RECENT = 20  # steps that the shown times are averaged over


@dataclass(frozen=True)
class Progress:
    """What the run bar shows; ``ms`` is the time per step by part."""

    text: str
    fraction: float
    seconds_left: float | None
    ms: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, paces: Sequence[Pace]) -> Progress:
        """Of runs that take turns: their counts in one line, their times added."""
        done, total = sum(p.k for p in paces), sum(p.K for p in paces)
        left = [p.seconds_left() for p in paces if not p.ended]
        known = [seconds for seconds in left if seconds is not None]
        front = next((p for p in paces if not p.ended), paces[-1] if paces else None)
        return cls(
            text=", ".join(p.text for p in paces if not (p.ended and left)),
            fraction=done / total if total else 0.0,
            seconds_left=sum(known) if known and len(known) == len(left) else None,
            ms=front.milliseconds() if front else {},
        )


class Pace:
    """The speed of one run, from the time its own steps took."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.k = self.K = 0
        self.ended = False
        self._steps: deque[float] = deque(maxlen=RECENT)
        self._parts: deque[dict[str, float]] = deque(maxlen=RECENT)

    @property
    def text(self) -> str:
        """'DC-PnPDP 23/50'; the name alone before the first iteration."""
        return f"{self.label} {self.k}/{self.K}" if self.K else self.label

    def take(self, values: dict[str, float]) -> None:
        self.k, self.K = int(values.get("k", 0)), int(values.get("K", self.K))
        if "seconds_step" in values:
            self._steps.append(values["seconds_step"])
        self._parts.append({part: values.get(f"seconds_{part}", 0.0) for part in PARTS})

    def milliseconds(self) -> dict[str, float]:
        if not self._parts:
            return {}
        return {
            part: 1000 * sum(step[part] for step in self._parts) / len(self._parts)
            for part in PARTS
        }

    def seconds_left(self) -> float | None:
        if not self._steps:
            return None
        return (self.K - self.k) * sum(self._steps) / len(self._steps)
