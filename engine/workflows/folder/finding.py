"""The inputs in a folder: files, series of DICOM files, folders of projections."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.data.dataset import Stamp, sha256_of, stamp_of
from engine.data.readers.dicom.files import SUFFIXES as DICOM_SUFFIXES
from engine.data.readers.dicom.kinds import modality_of, object_name
from engine.data.readers.dicom.magic import is_dicom
from engine.data.readers.dicom.scan import PROJECTION_ROWS, Header, read_header
from engine.data.readers.volumes.picture import SUFFIXES as TIFF_SUFFIXES
from engine.data.sidecar import sidecar_of
from engine.data.source import READERS
from engine.export.outputs import suffix_of
from engine.spec.errors import RequestError
from engine.workflows.folder.request import safe_name, shown_name
from engine.workflows.folder.table import is_results

UNFINISHED = (".part", ".partial", ".crdownload", ".download", ".tmp", "~")
FILE_SUFFIXES = tuple(suffix for suffix in READERS if suffix.startswith("."))
# the file of numbers that belongs to a header beside it, by suffix
HEADERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((".raw", ".bin", ".f32"), (".mhd", ".nhdr")),
    ".hdr": (".cfl",),
}


@dataclass(frozen=True)
class Found:
    """One input: what to open, and all the files that it is made of.

    ``left_out`` says why a thing that could be opened is none of the inputs.
    """

    path: Path
    name: str  # below the folder, in one line
    files: tuple[Path, ...]
    folder_name: str  # of its results
    options: dict[str, Any] = field(default_factory=dict)
    left_out: str = ""

    def stamps(self) -> tuple[tuple[Path, Stamp], ...]:
        """What is seen of the files from outside; equal as long as nobody writes them."""
        return tuple((path, stamp_of(path)) for path in (*self.files, sidecar_of(self.path)))

    def sha256(self) -> str:
        """Of the contents, and of the sidecar's, which says what they mean."""
        sidecar = sidecar_of(self.path)
        digest = hashlib.sha256(repr(sorted(self.options.items())).encode())
        for path in (*self.files, *([sidecar] if sidecar.is_file() else [])):
            digest.update(sha256_of(path).encode())
        return digest.hexdigest()


class Finder:
    """Looks again and again; a header is only read again when its file has changed."""

    def __init__(self, folder: Path, results: Path, modality: str | None = None) -> None:
        self.folder, self.results, self.modality = folder, results.resolve(), modality
        self._known: dict[Path, tuple[Stamp, SeriesKey | None]] = {}  # None: no DICOM file

    def look(self) -> list[Found]:
        """Everything there is now, by name; what cannot be looked into is not there."""
        found: list[Found] = []
        dicom: dict[Path, SeriesKey] = {}
        for folder, files in self._walk():
            keys = {path: key for path in files if (key := self._key(path)) is not None}
            dicom |= keys
            beside = set(files)
            rest = [path for path in files if path not in keys and _is_input(path, beside)]
            tiffs = [path for path in rest if path.name.lower().endswith(TIFF_SUFFIXES)]
            if len(tiffs) > 1 and folder != self.folder and len(tiffs) == len(files):
                found.append(self._made(folder, tuple(tiffs)))
            else:
                found += [self._made(path, (path, *_numbers(path, beside))) for path in rest]
        return sorted([*found, *self._series(dicom)], key=lambda one: one.name)

    def _walk(self) -> Iterator[tuple[Path, list[Path]]]:
        """Folders with their files; neither links to folders, nor what is hidden or ours."""
        for root, folders, names in os.walk(self.folder):
            here = Path(root)
            folders[:] = sorted(name for name in folders if self._is_open(here / name))
            files = [here / name for name in sorted(names) if not _unfinished(name)]
            yield here, [path for path in files if _is_file(path)]

    def _is_open(self, folder: Path) -> bool:
        if folder.name.startswith(".") or folder.resolve() == self.results:
            return False
        return not is_results(folder)

    def _series(self, files: dict[Path, SeriesKey]) -> Iterator[Found]:
        """Files of a series make one input, wherever below the folder they lie."""
        groups: dict[SeriesKey, list[Path]] = defaultdict(list)
        for path, key in files.items():
            groups[key].append(path)
        for key, members in groups.items():
            if not key.series:  # broken, or without a number of its own
                for path in members:
                    yield self._made(path, (path,))
                continue
            why = key.left_out
            if len(members) == 1:
                yield self._made(members[0], tuple(members), left_out=why)
                continue
            place = Path(os.path.commonpath([path.parent for path in members]))
            alone = len(members) == sum(path.is_relative_to(place) for path in files)
            if alone and not self.results.is_relative_to(place.resolve()):
                yield self._made(place, tuple(members), left_out=why)
            else:
                mark = hashlib.sha256(repr(key).encode()).hexdigest()[:6]
                options = {"dataset": key.series}
                name = f"series {key.number if key.number is not None else '-'} {mark}"
                yield self._made(place, tuple(members), name, options, why)

    def _key(self, path: Path) -> SeriesKey | None:
        stamp = stamp_of(path)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            key = about_file(path, self.modality) if _is_dicom(path) else None
            known = self._known[path] = stamp, key
        return known[1]

    def _made(
        self,
        path: Path,
        files: tuple[Path, ...],
        name: str = "",
        options: dict[str, Any] | None = None,
        left_out: str = "",
    ) -> Found:
        inside = path.relative_to(self.folder) / name
        words = shown_name(inside.as_posix()) if inside.parts else "(the folder itself)"
        own = _stem(path) if path in files else path.name
        return Found(path, words, files, safe_name(f"{own} {name}"), options or {}, left_out)


def _stem(path: Path) -> str:
    """Without the suffix that a reader knows: 'a.b.nii.gz' -> 'a.b'."""
    suffix = suffix_of(path, (*FILE_SUFFIXES, *DICOM_SUFFIXES))
    return path.name[: -len(suffix)] if suffix else path.name


def _unfinished(name: str) -> bool:
    return name.startswith(".") or name.lower().endswith(UNFINISHED)


def _is_file(path: Path) -> bool:
    """A pipe would be waited for; a link that leads nowhere is nothing."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _is_dicom(path: Path) -> bool:
    name = path.name.lower()
    return name != "dicomdir" and (name.endswith(DICOM_SUFFIXES) or is_dicom(path))


def _is_input(path: Path, beside: Collection[Path]) -> bool:
    if not path.name.lower().endswith(FILE_SUFFIXES):
        return False
    headers = HEADERS.get(path.suffix.lower(), ())
    return not any(one in beside for one in _siblings(path, headers))


def _numbers(header: Path, beside: Collection[Path]) -> list[Path]:
    """The files that belong to a header; nothing for what is none."""
    kind = header.suffix.lower()
    suffixes = [data for data, headers in HEADERS.items() if kind in headers]
    return [one for one in _siblings(header, suffixes) if one in beside]


def _siblings(path: Path, suffixes: Iterable[str]) -> list[Path]:
    return [path.with_suffix(form) for one in suffixes for form in (one, one.upper())]


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


@dataclass
class _Seen:
    stamps: object
    since: float  # when these stamps were first seen
    changed: bool = False  # since it was first seen at all


class Settling:
    """Remembers what was seen of every input, and since when it is so.

    While a folder is watched, only what was seen counts: a drive's clock may be wrong. Otherwise
    a file that says itself that it is old is believed, so that nobody waits in vain.
    """

    def __init__(self, seconds: float, watch: bool) -> None:
        self.seconds, self.watch = seconds, watch
        self._seen: dict[str, _Seen] = {}

    def look(self, found: Iterable[Found]) -> tuple[list[Found], list[Found]]:
        """Those that are complete, and those that may still be growing."""
        ready: list[Found] = []
        growing: list[Found] = []
        for one in found:
            (ready if self._settled(one) else growing).append(one)
        return ready, growing

    def has_changed(self, found: Found) -> bool:
        """Whether an input has been written to while it was looked at."""
        return self._seen[found.name].changed

    def _settled(self, found: Found) -> bool:
        stamps, now = found.stamps(), time.monotonic()
        seen = self._seen.get(found.name)
        if seen is None:
            self._seen[found.name] = _Seen(stamps, now)
            return not self.watch and self._is_old(found)
        if seen.stamps != stamps:
            self._seen[found.name] = _Seen(stamps, now, changed=True)
            return False
        return now - seen.since >= self.seconds or (not self.watch and self._is_old(found))

    def _is_old(self, found: Found) -> bool:
        """By the newest file; a copy may bring its time along, but not that of its record."""
        try:
            status = [path.stat() for path in found.files]
        except OSError:
            return False
        newest = max(max(one.st_mtime, one.st_ctime) for one in status)
        return time.time() - newest >= self.seconds
