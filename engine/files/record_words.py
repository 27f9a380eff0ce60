"""What a run record says in a few words: for lists, for the corner of an image, for headers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Final

from engine.spec.numbers import as_float

_PEOPLE: Final = re.compile(r"(\d[\d,]*) (?:patients?|subjects?|people|volunteers)\b")


def scan_words(operator: Any) -> str:
    """'20 views / 180°', or 'R 4.27': the true acceleration, all of k-space over what was measured.

    What was asked for may differ ('R 6' with its centre lines is less), so it is never said.
    """
    told = operator if isinstance(operator, dict) else {}
    geometry = told.get("geometry")
    angles = geometry.get("angles_rad") if isinstance(geometry, dict) else None
    if isinstance(angles, list) and angles:
        range_words = arc_words([as_float(angle) for angle in angles])
        views = "1 view" if len(angles) == 1 else f"{len(angles)} views"
        return f"{views}{range_words and f' / {range_words}'}"
    factor = as_float(told.get("true_acceleration"))
    if math.isfinite(factor):
        return f"R {factor:.3g}"
    path = told.get("trajectory")
    spokes = path.get("spokes") if isinstance(path, dict) else None
    return f"{spokes} spokes" if isinstance(spokes, int) else ""


def arc_words(angles_rad: list[float]) -> str:
    """The arc that evenly spaced views stand for: n steps, not n - 1."""
    if len(angles_rad) < 2 or not all(map(math.isfinite, angles_rad)):
        return ""
    spread = abs(max(angles_rad) - min(angles_rad))
    whole = math.degrees(spread * len(angles_rad) / (len(angles_rad) - 1))
    return f"{round(whole, 1):g}°"


def people_in(training_data: Any) -> int:
    """How many people a prior's description says that it learnt from; 0 when it does not."""
    if not isinstance(training_data, str):
        return 0
    return sum(int(count.replace(",", "")) for count in _PEOPLE.findall(training_data))


def prior_words(prior: Any) -> str:
    """'ct-small, 13 patients'; empty for a method without a prior."""
    if not isinstance(prior, dict) or not prior.get("name"):
        return ""
    people = people_in(prior.get("training_data"))
    patients = "1 patient" if people == 1 else f"{people:,} patients"
    return f"{prior['name']}, {patients if people else 'patients not stated'}"


def slice_words(slices: Iterable[Any]) -> str:
    """'79', '3 to 20' or '1, 5, 9', counted from 1."""
    numbers = sorted(n + 1 for n in slices if isinstance(n, int) and not isinstance(n, bool))
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    more = ", …" if len(numbers) > 4 else ""
    return ", ".join(map(str, numbers[:4])) + more


def calls_of(job: Any, history: Any) -> tuple[int | None, int | None]:
    """Denoiser calls made and asked for; None of a method that calls none."""
    settings = job.get("settings") if isinstance(job, dict) else None
    last = history[-1] if isinstance(history, list) and history else {}
    if not isinstance(settings, dict) or "nfe" not in settings or not isinstance(last, dict):
        return None, None
    return _whole(last.get("nfe", 0)), _whole(settings["nfe"])


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
