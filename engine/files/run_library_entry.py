"""What the library tells of one run: read from its record, without loading the engine."""

from __future__ import annotations

import contextlib
import json
import re
import time
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

from engine.files.budget import read_small
from engine.files.record import FORMAT, MAX_RECORD_BYTES
from engine.files.record_words import calls_of, scan_words, slice_words
from engine.spec.errors import RequestError
from engine.spec.numbers import numbers_in

RUN_ID: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
REMARKS: Final = "remarks.json"  # what a person said of the run
CHECKPOINT: Final = ".checkpoint.safetensors"
RESULT: Final = ".result.safetensors"
THUMBNAIL: Final = ".png"
RUNNING: Final = "running"
INTERRUPTED: Final = "interrupted"
# how the list says what a record says; the command line says the same as the record
STATUS: Final = {"done": "finished", "finished early": "finished early", "cancelled": "cancelled"}
STATUSES: Final = ("finished", "finished early", "cancelled", INTERRUPTED, RUNNING, "failed")
GOES_ON: Final = (INTERRUPTED, "cancelled", "finished early")  # from its checkpoint, if it has one
UNREADABLE: Final = "Its record cannot be read."
LONGEST: Final = 10_000  # of a note


@dataclass(frozen=True)
class LibraryEntry:
    """One line of the library; the names are the columns of the index."""

    id: str
    signature: str
    status: str
    modality: str = ""
    data: str = ""  # the last part of a path, which may name a patient: for the screen only
    input: str = ""
    slices: str = ""
    scan: str = ""
    solver: str = ""
    done: int | None = None
    asked: int | None = None
    psnr: float | None = None
    ssim: float | None = None
    seconds: float | None = None
    message: str = ""
    note: str = ""
    pinned: int = 0
    resumable: int = 0
    bytes: int = 0
    words: str = ""  # all that a search looks through

    @property
    def started(self) -> time.struct_time:
        """Local time: it is the first part of the name."""
        return time.strptime(self.id[:15], "%Y%m%d-%H%M%S")


COLUMNS: Final = tuple(field.name for field in fields(LibraryEntry))[1:]


def signature(record: Path) -> str:
    """Changes with every file that the entry is made of."""
    parts = []
    for path in (record, *_beside(record)):
        with contextlib.suppress(OSError):
            status = path.stat()
            parts.append(f"{path.suffix}{status.st_size}.{status.st_mtime_ns}.{status.st_ino}")
    return " ".join(parts)


def _beside(record: Path) -> list[Path]:
    names = (CHECKPOINT, RESULT, THUMBNAIL)
    return [record.with_name(record.stem + name) for name in names] + [record.with_name(REMARKS)]


def read_entry(record: Path, running: bool) -> LibraryEntry | None:
    """None without a record; ``running`` says whether a living window has the run."""
    sign = signature(record)
    try:
        size = sum(p.stat().st_size for p in (record, *_beside(record)) if p.exists())
        body = json.loads(read_small(record, MAX_RECORD_BYTES, "a run record"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, RequestError):
        body, size = None, 0
    remarks = remarks_in(record.with_name(REMARKS))
    note, pinned = str(remarks.get("note", ""))[:LONGEST], int(bool(remarks.get("pinned")))
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        return LibraryEntry(
            record.stem, sign, "failed", message=UNREADABLE, note=note, pinned=pinned, bytes=size
        )
    job, told = _table(body, "job"), _table(body, "input")
    place = str(job.get("input", ""))
    data = short_name(str(told.get("name") or place))
    slices = slice_words(told["slices"]) if isinstance(told.get("slices"), list) else ""
    scan, solver = scan_words(body.get("operator")), str(job.get("solver", ""))
    done, asked = calls_of(job, body.get("history"))
    metrics = _table(body, "metrics")
    numbers = numbers_in(next(iter(metrics.values()), {}))
    said = str(body.get("status"))
    status = STATUS.get(said, "failed")
    if said in (RUNNING, INTERRUPTED):
        status = RUNNING if running and said == RUNNING else INTERRUPTED
    has_checkpoint = record.with_name(record.stem + CHECKPOINT).exists()
    words = (record.stem, data, scan, solver, status, note, str(told.get("modality", "")))
    return LibraryEntry(
        id=record.stem,
        signature=sign,
        status=status,
        modality=str(told.get("modality", "")),
        data=data,
        input=place,
        slices=slices,
        scan=scan,
        solver=solver,
        done=done,
        asked=asked,
        psnr=numbers.get("psnr"),
        ssim=numbers.get("ssim"),
        seconds=numbers_in(body.get("timings")).get("total"),
        message=str(body.get("message", "")),
        note=note,
        pinned=pinned,
        resumable=int(status in GOES_ON and has_checkpoint),
        bytes=size,
        words=" ".join(words).lower(),
    )


def _table(body: dict[str, Any], name: str) -> dict[str, Any]:
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def remarks_in(place: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError, RecursionError):
        said = json.loads(place.read_bytes())
        if isinstance(said, dict):
            return said
    return {}


def short_name(text: str) -> str:
    """The last part of a path of any system; 'demo:ct' as it is."""
    kind = PureWindowsPath if "\\" in text else PurePosixPath
    return kind(text).name or text
