"""How fast this machine has been, and how long a method will therefore take."""

from __future__ import annotations

from typing import Any, Final

from app.shell.settings import AppSettings

MOST: Final = 200  # measurements
UNKNOWN: Final = "time not known yet: nothing like it has run here"


class PaceBook:
    """The newest measurement per method, prior, device, modality and amount of data.

    Others are scaled from it by denoiser calls and by pixels, which is what the time grows with;
    the amount of data (views, R) counts by the nearest that was measured.
    """

    def __init__(self, settings: AppSettings) -> None:
        self.settings = settings

    def learn(
        self, job: dict[str, Any], modality: str, size: tuple[int, int], seconds: float
    ) -> None:
        """``seconds`` are those of one slice."""
        if seconds > 0:
            per = seconds / (size[0] * size[1] * _calls(job))
            kept = self.settings.get("paces")
            kept.pop(_key(job, modality), None)  # the newest comes last
            kept[_key(job, modality)] = f"{per:.4e}"
            self.settings.set("paces", dict(list(kept.items())[-MOST:]))

    def seconds(self, job: dict[str, Any], modality: str, size: tuple[int, int]) -> float | None:
        """Of one slice; None when nothing like it was measured on this machine."""
        method, _, amount = _key(job, modality).rpartition(" ")
        near: list[tuple[float, float]] = []
        for key, text in self.settings.get("paces").items():
            known, _, other = key.rpartition(" ")
            try:
                if known == method:
                    near.append((abs(float(other) - float(amount)), float(text)))
            except ValueError:
                continue
        return min(near)[1] * size[0] * size[1] * _calls(job) if near else None


def about(seconds: float) -> str:
    if seconds < 1:
        return "about 1 s"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"


def _key(job: dict[str, Any], modality: str) -> str:
    parts = (job.get(name) for name in ("solver", "prior", "device"))
    scan = job.get("acquisition") or {}
    amount = float(scan.get("views") or scan.get("acceleration") or 0)
    return " ".join([*(str(part) for part in parts), modality, f"{amount:g}"])


def _calls(job: dict[str, Any]) -> float:
    settings = job.get("settings") or {}
    return float(settings.get("nfe") or settings.get("iterations") or 1)
