"""The table of a folder's results: JSON to go on from, CSV and HTML to read."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from dataclasses import asdict, dataclass, field, fields
from html import escape
from pathlib import Path
from typing import Any

from engine.files.atomic import write_bytes_atomic
from engine.files.budget import read_json
from engine.files.record import MAX_RECORD_BYTES, plain
from engine.spec.errors import RequestError
from engine.workflows.folder.request import SAFE, free_name

FORMAT, FORMAT_VERSION = "dualscope-folder", 1
JSON_NAME, CSV_NAME, HTML_NAME = "table.json", "table.csv", "table.html"
WAITING, RUNNING, DONE = "waiting", "running", "done"
FAILED, STOPPED, LEFT_OUT = "failed", "stopped", "left out"
STATES = (WAITING, RUNNING, DONE, FAILED, STOPPED, LEFT_OUT)
OUTPUT = re.compile(r"result(\.[a-z0-9]{1,8}){1,2}|dicom")
NUMBER = (int, float, type(None))
KINDS: dict[str, tuple[type, ...]] = {
    **{"number": (int,), "folder": (str,), "input": (str,), "status": (str,), "error": (str,)},
    **dict.fromkeys(("slices", "seconds", "psnr", "ssim"), NUMBER),
    **{"input_sha256": (str,), "settings_sha256": (str,), "outputs": (list,)},
}
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass
class Row:
    """One input. ``folder`` holds its results; ``input`` is empty when nothing may be named."""

    number: int
    folder: str
    input: str = ""
    status: str = WAITING
    slices: int | None = None
    seconds: float | None = None
    psnr: float | None = None
    ssim: float | None = None
    error: str = ""
    input_sha256: str = ""
    settings_sha256: str = ""
    outputs: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.input or f"{self.number:04d}"

    def begin(self, input_sha256: str, settings_sha256: str) -> None:
        """Nothing of an earlier input or of earlier settings counts any more."""
        self.slices = self.seconds = self.psnr = self.ssim = None
        self.status, self.error, self.outputs = RUNNING, "", []
        self.input_sha256, self.settings_sha256 = input_sha256, settings_sha256


HEADINGS = {
    "input": "input",
    "status": "status",
    "slices": "slices",
    "seconds": "time s",
    "psnr": "PSNR dB",
    "ssim": "SSIM",
    "error": "why not",
}
FORMS = {"seconds": ".1f", "psnr": ".2f", "ssim": ".3f"}
WORDED = ("input", "status", "error")


def cells(row: Row) -> tuple[str, ...]:
    """As a person reads them, in the order of the headings."""
    said = []
    for key in HEADINGS:
        value = row.name if key == "input" else getattr(row, key)
        if not isinstance(value, str):  # which may be a Sentence, and stays one
            value = "" if value is None else f"{value:{FORMS.get(key, '')}}"
        said.append(value)
    return tuple(said)


class Table:
    """All rows of a folder of results, on the disk after every change."""

    def __init__(self, folder: Path, nameless: bool) -> None:
        self.folder, self.nameless = folder, nameless
        self.rows: list[Row] = []
        path = folder / JSON_NAME
        if path.exists():
            self.rows = self._read(path)

    def row_for(self, name: str, folder_name: str, sha256: str) -> Row:
        """The row of an input, by name, or by content when nothing may be named."""
        for row in self.rows:
            if sha256 == row.input_sha256 if self.nameless else name == row.input:
                return row
        number = max((row.number for row in self.rows), default=0) + 1
        wanted = f"{number:04d}" if self.nameless else folder_name
        taken = [*(row.folder for row in self.rows), *os.listdir(self.folder)]  # or somebody's
        folder = free_name(wanted, taken)
        row = Row(number, folder, "" if self.nameless else name)
        self.rows.append(row)
        return row

    def write(self) -> None:
        """The JSON last: it says what is done."""
        write_bytes_atomic(self.folder / CSV_NAME, self._csv().encode())
        write_bytes_atomic(self.folder / HTML_NAME, self._html().encode())
        body = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "nameless": self.nameless,
            "rows": [asdict(row) for row in self.rows],
        }
        text = json.dumps(plain(body), indent=1, allow_nan=False)
        write_bytes_atomic(self.folder / JSON_NAME, text.encode())

    def count(self, *states: str) -> int:
        return sum(row.status in states for row in self.rows)

    def _read(self, path: Path) -> list[Row]:
        body = read_json(path, MAX_RECORD_BYTES, "a table of results")
        known = isinstance(body, dict) and body.get("format") == FORMAT
        if not known or body.get("format_version") != FORMAT_VERSION:
            raise RequestError(f"{path} is not a table of results: name another folder.")
        if body.get("nameless") is not self.nameless:
            raise RequestError(
                f"{path} was begun {'with' if not self.nameless else 'without'} ⟦deidentify⟧: "
                "name another folder, or go on as it was begun."
            )
        values = body.get("rows")
        if not isinstance(values, list) or not all(_usable(value) for value in values):
            raise RequestError(f"{path} is damaged: name another folder.")
        rows = [Row(**value) for value in values]
        if len({row.folder.casefold() for row in rows}) < len(rows):
            raise RequestError(f"{path} is damaged: two inputs have one folder.")
        return rows

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*HEADINGS.values(), "folder"])
        for row in self.rows:
            line = zip(HEADINGS, cells(row), strict=True)
            said = [_harmless(cell) if key in WORDED else cell for key, cell in line]
            writer.writerow([*said, row.folder])
        return text.getvalue()

    def _html(self) -> str:
        from engine.export.report import document
        from engine.export.report_tables import table

        lines = []
        for row in self.rows:
            name, *rest = cells(row)
            link = escape(name)
            if row.outputs:
                link = f'<a href="{escape(row.folder)}/">{link}</a>'
            said = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
            lines.append(f"<tr><th>{link}</th>{said}</tr>")
        about = f"{self.count(DONE)} of {len(self.rows)} inputs are done."
        return document("Folder of inputs", about, table(list(HEADINGS.values()), lines))


def is_results(folder: Path) -> bool:
    """Whether a folder holds results of ours: they are not the next inputs."""
    path = folder / JSON_NAME
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        with path.open("rb") as stream:
            return FORMAT.encode() in stream.read(200)
    except OSError:
        return False


def _harmless(cell: str) -> str:
    """A spreadsheet would compute what begins like a formula; file names are anybody's."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def _usable(value: Any) -> bool:
    """A row as `write` leaves it, whose folder and files lie where they should."""
    if not isinstance(value, dict) or set(value) != {one.name for one in fields(Row)}:
        return False
    if not all(isinstance(value[name], kinds) for name, kinds in KINDS.items()):
        return False
    files = all(isinstance(name, str) and OUTPUT.fullmatch(name) for name in value["outputs"])
    return files and value["status"] in STATES and SAFE.fullmatch(value["folder"]) is not None
