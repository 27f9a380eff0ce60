"""What is swept, as plain values; the engine is not loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.background import JobRequest
from engine.spec.errors import RequestError

MOST_TILES: Final = 12
SCAN, SETTINGS = "acquisition", "settings"


@dataclass(frozen=True)
class Sweep:
    """A setting, where it is in a job, and the values it goes through at first."""

    name: str
    label: str
    unit: str
    values: tuple[float, ...]
    where: str = SCAN
    log: bool = False
    measured: bool = True  # whether measured data can be swept so

    def words(self, value: float) -> str:
        return f"{value:g} {self.unit}".strip() if self.unit else f"{self.label} {value:g}"


CALLS: Final = Sweep(
    "nfe", "NFE (denoiser calls)", "calls", (5, 10, 20, 50, 100), SETTINGS, log=True
)
SWEEPS: Final[dict[str, tuple[Sweep, ...]]] = {
    "CT": (
        Sweep("views", "Views", "views", (10, 20, 30, 45, 60, 90)),
        Sweep("angular_range", "Angular range", "°", (60, 90, 120, 150, 180), measured=False),
        Sweep(
            "photons",
            "Photons per ray",
            "photons",
            (1e3, 3e3, 1e4, 3e4, 1e5, 1e6),
            log=True,
            measured=False,
        ),
        CALLS,
    ),
    "MR": (Sweep("acceleration", "Acceleration R", "", (2, 3, 4, 6, 8, 12)), CALLS),
}
WHOLE: Final = ("views", "nfe")


def values_of(text: str, sweep: Sweep) -> tuple[float, ...]:
    """From what a person typed, in rising order; a sentence when it cannot be used."""
    try:
        values = sorted({float(part) for part in text.replace(";", ",").split(",") if part.strip()})
    except ValueError:
        raise RequestError("Type numbers with commas between them, such as 10, 20, 40.") from None
    if not 2 <= len(values) <= MOST_TILES:
        raise RequestError(f"Give from 2 to {MOST_TILES} values.")
    if values[0] <= 0:
        raise RequestError("Every value must be above zero.")
    if sweep.name in WHOLE and any(value != int(value) for value in values):
        raise RequestError(f"{sweep.label}: only whole numbers.")
    return tuple(values)


def jobs_of(job: dict[str, Any], sweep: Sweep, values: Sequence[float]) -> list[dict[str, Any]]:
    """``job`` once for each value."""
    made = []
    for value in values:
        number = int(value) if sweep.name in WHOLE else value
        made.append({**job, sweep.where: {**job[sweep.where], sweep.name: number}})
    return made


@dataclass(frozen=True)
class CurrentScan:
    """What the main window would run with; ``fault`` says why it would not."""

    job: dict[str, Any] = field(default_factory=dict)
    words: str = ""
    modality: str = "CT"
    measured: bool = False
    counts_calls: bool = True  # whether the method has denoiser calls to sweep
    fault: str = ""


@dataclass(frozen=True)
class DoseRequest(JobRequest):
    """``jobs`` belong to ``values`` one by one."""

    sweep: Sweep = CALLS
    values: tuple[float, ...] = ()
    jobs: tuple[dict[str, Any], ...] = ()
