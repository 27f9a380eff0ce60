"""Studies and series: what a browser lists, and what one of them is opened from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.data.readers.dicom.files import find_files
from engine.data.readers.dicom.image import SliceImage, pixel_layout
from engine.data.readers.dicom.kinds import modality_of, refusal
from engine.data.readers.dicom.multiframe import slices_of
from engine.data.readers.dicom.scan import Header, read_header
from engine.data.readers.dicom.stacks import split_stacks
from engine.spec.errors import RequestError, Sentence, marked, quoting, shown


@dataclass
class Series:
    """Files that belong together: a series of the scanner, or one of the stacks in it.

    ``label`` is safe anywhere. ``screen_text`` is the scanner's free text, which may hold a
    person's name: show it on the screen, keep it out of logs, records and file names.
    ``refusal`` is the sentence for a series that cannot be opened (no slices, then).
    """

    key: str  # SeriesInstanceUID
    study: str  # StudyInstanceUID
    modality: str
    series_number: int | None
    files: tuple[Path, ...] = ()
    slices: list[SliceImage] = field(default_factory=list, repr=False)
    warnings: list[str] = field(default_factory=list)
    refusal: str | None = None
    screen_text: str = field(default="", repr=False)
    number: int = 0  # from 1, in the list it was found in
    part: str = ""  # which stack of a series with several, such as 'acquisition 2 of 3'
    part_by: str = ""  # the DICOM tags that tell it from the others
    copies: int = 0  # slices that were there twice

    @property
    def count(self) -> int:
        return len(self.slices)

    @property
    def name(self) -> str:
        """Without its number in the list and its size; safe anywhere."""
        modality = self.modality or "unknown"
        name = "series" if self.series_number is None else f"series {self.series_number}"
        return f"{modality} {name}" + (f", {self.part}" if self.part else "")

    @property
    def label(self) -> str:
        what = f"{self.count} slices" if self.count else f"{len(self.files)} files, not images"
        return f"{self.number}: {self.name}, {what}"


def find_series(path: Path, modality: str | None = None) -> list[Series]:
    """All series of a file, a folder, a folder tree or a DICOMDIR; only headers are read.

    A series that holds several stacks is listed as one series for each of them.

    ``modality`` ('ct' or 'mr') says to take grey images of other kinds as such.
    """
    files, warnings = find_files(path)
    headers: list[Header] = []
    broken = 0
    for file in files:
        try:
            headers.append(read_header(file))
        except RequestError:
            if path.is_file() and len(files) == 1:
                raise
            broken += 1
    if broken:
        warnings.append(f"{broken} files could not be read as DICOM and were left out.")
    if not headers:
        raise RequestError(f"{path} holds no DICOM files that can be read.")
    groups: dict[tuple[str, str], list[Header]] = {}
    for header in headers:
        key = header.values.text("StudyInstanceUID"), header.values.text("SeriesInstanceUID")
        groups.setdefault(key, []).append(header)
    found = [make_series(group, modality) for group in groups.values()]
    studies = list(dict.fromkeys(series.study for series in found))
    found.sort(key=lambda s: (studies.index(s.study), s.series_number or 0, s.key))
    found = [part for series in found for part in _parts_of(series)]
    for number, series in enumerate(found, 1):
        series.number = number
        series.warnings = [quoting(sentence) for sentence in (*series.warnings, *warnings)]
        series.modality = shown(series.modality)
        series.refusal = None if series.refusal is None else quoting(series.refusal)
    return found


def make_series(headers: list[Header], modality: str | None) -> Series:
    """One series from its headers; files of it that are no slices are counted."""
    first = headers[0].values
    series = Series(
        key=first.text("SeriesInstanceUID"),
        study=first.text("StudyInstanceUID"),
        modality=modality_of(headers[0]),
        series_number=first.integer("SeriesNumber"),
        screen_text=first.free_text("SeriesDescription"),
    )
    refused: list[str] = []
    files: list[Path] = []
    for header in headers:
        layout = pixel_layout(header)
        sentence = refusal(header, layout, modality)
        if sentence is None and layout is not None:
            try:
                series.slices += slices_of(header, layout)
                files.append(header.path)
                continue
            except RequestError as error:
                sentence = Sentence(error)
        refused.append(sentence or "")
    kept: dict[tuple[str, int], SliceImage] = {}
    for image in series.slices:
        kept.setdefault((image.uid or str(image.pixels.path), image.frame), image)
    series.copies = len(series.slices) - len(kept)
    series.slices = list(kept.values())
    if not series.slices:
        series.refusal, files = refused[0], [header.path for header in headers]
    elif refused:
        first_reason = marked(refused[0])
        series.warnings.append(f"{len(refused)} files were left out; the first: {first_reason}")
    series.files = tuple(files)
    series.modality = _common_modality(headers, series.files) if series.slices else series.modality
    return series


def _parts_of(series: Series) -> list[Series]:
    """The series itself, or the stacks in it."""
    parts = split_stacks(series.slices) if series.slices else []
    if len(parts) < 2:
        return [series]
    return [
        replace(
            series,
            slices=part.slices,
            files=tuple(dict.fromkeys(image.pixels.path for image in part.slices)),
            warnings=list(series.warnings),
            part=part.label,
            part_by=part.keyword,
        )
        for part in parts
    ]


def _common_modality(headers: Iterable[Header], files: tuple[Path, ...]) -> str:
    used = set(files)
    modalities = [modality_of(header) for header in headers if header.path in used]
    return max(sorted(set(modalities)), key=modalities.count)
