"""Which DICOM files belong together, and which of them nobody means to reconstruct."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.data.readers.dicom.kinds import modality_of, object_name
from engine.data.readers.dicom.scan import PROJECTION_ROWS, Header, read_header
from engine.spec.errors import RequestError


@dataclass(frozen=True)
class SeriesKey:
    """Of which series a file is; ``left_out`` says why it is no slice of it.

    Localizers, dose reports and the like come with every scan: they are no mistake of anybody's.
    """

    study: str = ""
    series: str = ""
    number: int | None = None
    left_out: str = ""


def about_file(path: Path, modality: str | None = None) -> SeriesKey:
    """``modality`` is given when grey images of other kinds are to be taken as such."""
    try:
        header = read_header(path)
    except (RequestError, OSError):
        return SeriesKey()  # opened alone, it will say what is wrong with it
    values = header.values
    return SeriesKey(
        values.text("StudyInstanceUID"),
        values.text("SeriesInstanceUID"),
        values.integer("SeriesNumber"),
        _reason(header, modality),
    )


def _reason(header: Header, modality: str | None) -> str:
    image_type = [part.upper() for part in header.values.texts("ImageType")]
    kind = modality_of(header)
    if PROJECTION_ROWS in header.values:
        return ""
    if kind == "CT" and "LOCALIZER" in image_type[2:]:
        return "This is a localizer, a projection and not a slice."
    if kind in ("CT", "MR") or (modality is not None and header.pixels is not None):
        return ""
    return f"This is not a CT or MR image but a DICOM object {object_name(header)}."
