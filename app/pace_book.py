"""How fast this machine has been, and how long a method will therefore take."""

from __future__ import annotations

from typing import Any, Final

from app.shell.settings import AppSettings

UNKNOWN: Final = "time not known yet: nothing like it has run here"


class PaceBook:
    """One measurement per method, prior, device and modality: the newest, from finished work.

    Others are scaled from it by denoiser calls and by pixels, which is what the time grows with.
    """

    def __init__(self, settings: AppSettings) -> None:
        self.settings = settings

    def learn(
        self, job: dict[str, Any], modality: str, size: tuple[int, int], seconds: float
    ) -> None:
        """``seconds`` are those of one slice."""
        if seconds > 0:
            per = seconds / (size[0] * size[1] * _calls(job))
            self.settings.put("paces", _key(job, modality), f"{per:.4e}")

    def seconds(self, job: dict[str, Any], modality: str, size: tuple[int, int]) -> float | None:
        """Of one slice; None when nothing like it was measured on this machine."""
        try:
            per = float(self.settings.get("paces").get(_key(job, modality), "nan"))
        except ValueError:
            return None
        return None if not per > 0 else per * size[0] * size[1] * _calls(job)

    def words(self, job: dict[str, Any], modality: str, size: tuple[int, int], times: float) -> str:
        """'about 4 min' for ``times`` slices (or seeds, or doses) of the job."""
        one = self.seconds(job, modality, size)
        return about(one * times) if one is not None else UNKNOWN


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
    return " ".join([*(str(part) for part in parts), modality])


def _calls(job: dict[str, Any]) -> float:
    settings = job.get("settings") or {}
    return float(settings.get("nfe") or settings.get("iterations") or 1)
