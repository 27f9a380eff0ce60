"""From what is on the screen to the jobs of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from app.runs.store import RunEntry, differing
from engine.spec.acquisition import CTAcquisition, MRIAcquisition, acquisition_of
from engine.spec.marks import calls_words

DIRECT = {"CT": "fbp", "MR": "zero-filled"}


def jobs_for(
    asked: Sequence[dict[str, Any]],
    *,
    data: tuple[str, dict[str, Any]],
    modality: str,
    slices: str | None,
    acquisition: dict[str, Any],
    runs: Iterable[RunEntry] = (),
) -> list[dict[str, Any]]:
    """Complete the solver panel's requests; the direct image comes first unless it is there.

    ``data`` is the input with its options. FBP and zero-filled are what every other method is
    judged against, so they are made along with the first run on a measurement.
    """
    text, options = data
    scan = {
        "input": text,
        "options": options,
        "slices": slices,
        "acquisition": acquisition_of(text, acquisition),
    }
    jobs = [{**job, **scan} for job in asked]
    direct = DIRECT[modality]
    known = any(entry.solver == direct and not differing(entry.job, jobs[0]) for entry in runs)
    if known or any(job["solver"] == direct for job in jobs):
        return jobs
    return [{**jobs[0], "solver": direct, "settings": {}, "preset": None}, *jobs]


def without_prior(entry: RunEntry) -> dict[str, Any]:
    """The scan of a run with the method that its verdict offers, as that comes."""
    return {**entry.job, "solver": entry.compare_with, "settings": {}, "preset": None}


def run_lines(entry: RunEntry, simulated: bool = True) -> tuple[str, ...]:
    """Method, scan and settings in a few words, for the corner of an image.

    A simulated scan has a default for what was not asked for; of a measured one all is used.
    """
    made = (entry.nfe, "" if entry.running else entry.status)
    lines = job_lines(entry.job, entry.label, entry.modality, simulated, made, entry.scan)
    return (*lines, f"prior {entry.prior}") if entry.prior else lines


def job_lines(
    job: dict[str, Any],
    label: str,
    modality: str,
    simulated: bool = True,
    made: tuple[int | None, str] = (None, ""),
    measured: str = "",
) -> tuple[str, ...]:
    """The same of a job; ``made`` says how many calls it came to, and how it ended.

    ``measured`` is the scan as it turned out to be. Until it is known an acceleration is called
    what it is: one that is asked for, which the lines of the centre make smaller.
    """
    settings, scan = job.get("settings", {}), job.get("acquisition", {})
    lines = [label]
    kind = MRIAcquisition if modality == "MR" else CTAcquisition
    scan = {**(kind().to_dict() if simulated else {}), **scan}
    if measured:
        lines.append(measured)
    elif modality == "MR" and "acceleration" in scan:
        lines.append(f"R {scan['acceleration']:g} asked for")
    elif "views" in scan:
        lines.append(f"{scan['views']} views")
        if "angular_range" in scan:
            lines[-1] += f" / {scan['angular_range']:g}°"
    if "nfe" in settings:
        lines.append(calls_words(settings["nfe"], *made))
    if settings.get("rho") is not None:
        lines.append(f"ρ {settings['rho']:.3g}")
    elif settings.get("rho_over_sigma2") is not None:
        lines.append(f"ρ {settings['rho_over_sigma2']:.3g}/σ²")
    return tuple(line for line in lines if line)
