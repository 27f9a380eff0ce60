"""The kinds of file a run can be exported as, and what those files are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LONGEST_NAME: Final = 100
PICTURES: Final = (".16.png", ".png")  # hold one slice each
# names that Windows keeps for devices, whatever their suffix
_RESERVED: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_FORBIDDEN: Final = '<>:"/\\|?*'


@dataclass(frozen=True)
class Format:
    """``words`` say what the file is good for, in one sentence."""

    key: str
    title: str
    suffix: str
    words: str


DICOM: Final = Format(
    "dicom", "DICOM", ".dcm", "For a viewer or PACS: CT in whole HU, marked as research."
)
FORMATS: Final = (
    DICOM,
    Format("nifti", "NIfTI", ".nii.gz", "One volume of exact values, placed in the patient."),
    Format("numpy", "NumPy", ".npy", "The bare array of exact values, for Python."),
    Format("hdf5", "HDF5", ".h5", "Image, measurement, curves and the whole record in one file."),
    Format("png", "PNG as seen", ".png", "An 8-bit picture per slice through the window shown."),
    Format("png16", "PNG 16 bit", ".16.png", "A picture per slice that keeps every whole HU."),
    Format("tiff", "TIFF", ".tif", "Exact values as 32-bit pages, for ImageJ and the like."),
)
BY_KEY: Final = {format.key: format for format in FORMATS}
REPORT: Final = Format("report", "Report", ".html", "All visible runs on one page.")
_SUFFIXES: Final = (*(format.suffix for format in FORMATS), REPORT.suffix, ".nii", ".tiff")


def series_outputs(folder: Path, base: str, slices: int) -> Path:
    """Where DICOM goes: one file for one slice, a folder for a series."""
    return folder / (f"{base}{DICOM.suffix}" if slices == 1 else f"{base}-dicom")


def is_series(output: Path) -> bool:
    """Whether it names a folder: of a DICOM series, as on the command line."""
    return not output.name.lower().endswith(_SUFFIXES)


def output_of(format: Format, folder: Path, base: str, slices: int) -> Path:
    if format is DICOM:
        return series_outputs(folder, base, slices)
    return folder / f"{base}{format.suffix}"


def files_of(output: Path, numbers: Sequence[int]) -> list[Path]:
    """The files (or the series folder) that exporting slices ``numbers`` to ``output`` makes.

    Pictures hold one slice each: of several, each is named after its number, counted from 1 as
    on the screen.
    """
    suffix = next((s for s in PICTURES if output.name.lower().endswith(s)), None)
    if suffix is None or len(numbers) == 1:
        return [output]
    base = output.name[: -len(suffix)]
    digits = max(3, len(str(max(numbers) + 1)))
    return [output.with_name(f"{base}-s{number + 1:0{digits}}{suffix}") for number in numbers]


def name_fault(base: str) -> str:
    """Why files cannot be called so, on this system or the next; empty when they can."""
    if not base.strip():
        return "Give the files a name."
    wrong = [letter for letter in base if letter in _FORBIDDEN]
    if wrong:
        return f"A file name cannot hold “{wrong[0]}”."
    if not base.isprintable():
        return "The name holds letters that cannot be seen."
    if base != base.strip() or base.startswith(".") or base.endswith("."):
        return "A file name cannot begin or end with a space or a dot."
    if _RESERVED.fullmatch(base):
        return f"Windows keeps the name {base} for itself."
    if len(base) > LONGEST_NAME:
        return f"The name is longer than {LONGEST_NAME} letters."
    return ""
