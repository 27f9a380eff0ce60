"""How a derived image says what it was made from and how."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydicom.dataset import Dataset
from pydicom.sequence import Sequence

import engine
from engine.export.dicom_copy import text_of
from engine.spec.marks import calls_words

if TYPE_CHECKING:
    from engine.export.outputs import Result

MAX_DESCRIPTION = 1024  # of a short text (ST)
MAX_LABEL = 64  # of a long string (LO)
NOT_ITERATIVE = {
    "fbp": ("113962", "Filtered Back Projection"),
    "zero-filled": None,
    "supervised": None,
}
ITERATIVE = ("113963", "Iterative Reconstruction")


def code_sequence(value: str, meaning: str) -> Sequence:
    """One code of the standard's own coding scheme."""
    item = Dataset()
    item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = value, "DCM", meaning
    return Sequence([item])


def solver_of(result: Result) -> str:
    return str(result.record.job.get("solver") or "")


def sampling(result: Result) -> str:
    """The views or the mask, as short as they can be said; empty when the operator is neither."""
    operator = result.record.operator or result.problem.operator.describe()
    geometry, mask = operator.get("geometry"), operator.get("mask")
    if isinstance(geometry, dict):
        return f"{len(geometry.get('angles_rad', ()))} views"
    if isinstance(mask, dict):
        return f"R = {float(mask.get('true_acceleration', 1)):.3g}"
    return ""


def calls_of(result: Result) -> str:
    """The denoiser calls that were made, of those that were asked for."""
    record = result.record
    asked = (record.job.get("settings") or {}).get("nfe")
    done = record.history[-1].get("nfe") if record.history else None
    if not isinstance(asked, int):
        return ""
    return calls_words(asked, int(done) if done is not None else None, record.status)


def run_name(result: Result) -> str:
    """'#3' as in the window; without a number a few digits that no other run has.

    They are made from the result and its settings, never from names of files.
    """
    if result.run_number is not None:
        return f"#{result.run_number}"
    job = result.record.job
    told = {name: job.get(name) for name in ("solver", "settings", "acquisition", "seed", "slices")}
    said = json.dumps([told, result.record.result_sha256], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:6]


def series_description(result: Result) -> str:
    """Solver, sampling and calls; the run's name last, and never cut off."""
    parts = [solver_of(result) or "reconstruction", sampling(result), calls_of(result)]
    words = f"Dualscope {', '.join(part for part in parts if part)}"
    ending = f", run {run_name(result)}"
    return words[: MAX_LABEL - len(ending)] + ending


def description(result: Result, remarks: list[str]) -> str:
    """Solver, sampling, settings, seed and prior; never the input's name or place."""
    job, record = result.record.job, result.record
    simulated = result.problem.provenance.get("simulated")
    parts = [
        f"Dualscope {record.versions.get('dualscope', engine.__version__)}, research use only",
        f"{result.problem.modality} image by {solver_of(result) or 'an unnamed solver'}",
        _acquisition(result),
        "measurement simulated from the source image" if simulated else "",
        *_settings(job.get("settings") or {}),
        f"seed {job['seed']}" if "seed" in job else "",
        _prior(record.prior),
        f"run {record.status}"
        if record.status in ("finished early", "cancelled", "interrupted")
        else "",
        *remarks,
    ]
    if "sha256" in record.input and not result.deidentify:  # it would lead back to the patient
        parts.append(f"input sha256 {record.input['sha256']}")
    text = "; ".join(part for part in parts if part)
    ascii_text = text.encode("ascii", "replace").decode()
    return ascii_text if len(text) <= MAX_DESCRIPTION else ascii_text[: MAX_DESCRIPTION - 3] + "..."


def _acquisition(result: Result) -> str:
    operator = result.record.operator or result.problem.operator.describe()
    geometry, mask = operator.get("geometry"), operator.get("mask")
    if isinstance(geometry, dict) and geometry.get("angles_rad"):
        angles = [math.degrees(angle) for angle in geometry["angles_rad"]]
        return (
            f"{len(angles)} {geometry.get('kind', '')} views from {min(angles):.4g} "
            f"to {max(angles):.4g} deg"
        )
    if isinstance(mask, dict):
        coils = f", {operator['coils']} coils" if "coils" in operator else ""
        return (
            f"{mask.get('name', '')} mask, acceleration {float(mask['acceleration']):.4g} "
            f"(true {float(mask['true_acceleration']):.4g}), {mask.get('acs_lines', 0)} ACS "
            f"lines{coils}"
        )
    return ""


def _settings(settings: dict[str, Any]) -> list[str]:
    words = {
        "nfe": "NFE",
        "rho": "rho",
        "rho_over_sigma2": "rho*sigma^2",
        "cg_iterations": "CG iterations",
        "sigma_max": "sigma max",
        "sigma_min": "sigma min",
        "iterations": "iterations",
        "tikhonov": "Tikhonov",
        "tv_strength": "TV strength",
        "wavelet_strength": "wavelet strength",
    }
    said = [f"{word} {settings[key]:g}" for key, word in words.items() if _number(settings, key)]
    automatic = "rho" in settings and not (
        _number(settings, "rho") or _number(settings, "rho_over_sigma2")
    )
    return [*said, "rho automatic"] if automatic else said


def _number(settings: dict[str, Any], key: str) -> bool:
    return isinstance(settings.get(key), (int, float))


def _prior(prior: dict[str, Any] | None) -> str:
    if not prior:
        return "no prior"
    name = str(prior.get("name", "")).replace("\\", "/").rsplit("/", 1)[-1]
    return f"prior {name[:MAX_LABEL]} sha256 {prior.get('sha256', 'unknown')}"


def derivation_code(result: Result) -> Sequence | None:
    solver = solver_of(result)
    code = NOT_ITERATIVE.get(solver, ITERATIVE) if solver else None
    return code_sequence(*code) if code else None


def source_image(source: Dataset, rename: Callable[[str], str] = str) -> Sequence | None:
    """Reference to the image this one was made from; ``rename`` gives its UID when that is new."""
    sop_class, instance = text_of(source, "SOPClassUID"), text_of(source, "SOPInstanceUID")
    if not sop_class or not instance:
        return None
    item = Dataset()
    item.ReferencedSOPClassUID, item.ReferencedSOPInstanceUID = sop_class, rename(instance)
    frame = text_of(source, "ReferencedFrameNumber")  # of a header that stands for one frame
    if frame:
        item.ReferencedFrameNumber = frame
    item.PurposeOfReferenceCodeSequence = code_sequence(
        "121322", "Source image for image processing operation"
    )
    return Sequence([item])


def contributing_equipment(scanner: Dataset, when: datetime | None) -> Sequence:
    """The machine that acquired the source, when it is known, and this software."""
    items = []
    if "Manufacturer" in scanner:
        scanner.PurposeOfReferenceCodeSequence = code_sequence("109101", "Acquisition Equipment")
        items.append(scanner)
    return Sequence([*items, this_software(when)])


def this_software(when: datetime | None) -> Dataset:
    item = Dataset()
    add_equipment(item)
    item.PurposeOfReferenceCodeSequence = code_sequence("109102", "Processing Equipment")
    item.ContributionDescription = "Image reconstruction, research use only"
    if when is not None:
        item.ContributionDateTime = when.strftime("%Y%m%d%H%M%S")
    return item


def add_equipment(target: Dataset) -> None:
    target.Manufacturer = "Dualscope"
    target.ManufacturerModelName = "Dualscope"
    target.SoftwareVersions = engine.__version__
