"""The results of an experiment as one JSON file, complete after every case."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from engine.files.atomic import remove_partials, write_bytes_atomic
from engine.files.budget import read_json
from engine.files.record import MAX_RECORD_BYTES, plain
from engine.spec.errors import RequestError

FORMAT, FORMAT_VERSION = "dualscope-experiment", 1
PICTURE = re.compile(r"\w[\w.-]*\.png")  # a name as the runner gives it, no path
Row = dict[str, Any]


class Store:
    """Rows by case. ``identity`` is all that must agree for old rows to be kept."""

    def __init__(self, path: Path, identity: dict[str, Any], overwrite: bool = False) -> None:
        self.path, self.identity = path, plain(identity)
        self.rows: dict[str, list[Row]] = {}
        self.about: dict[str, Any] = {}  # the summary beside the cases
        if path.exists() and not overwrite:
            self.rows = self._read()
        remove_partials(path)

    def _read(self) -> dict[str, list[Row]]:
        body = read_json(self.path, MAX_RECORD_BYTES, "the results of an experiment")
        known = isinstance(body, dict) and body.get("format") == FORMAT
        if not known or body.get("format_version") != FORMAT_VERSION:
            raise RequestError(f"{self.path} is not an experiment of this version of Dualscope.")
        if differing := [k for k, v in self.identity.items() if body.get(k) != v]:
            raise RequestError(
                f"{self.path} was made with other settings ({self._difference(body, differing)}): "
                "choose another folder (⟦output⟧), or begin again (⟦overwrite⟧)."
            )
        rows = body.get("cases")
        if not isinstance(rows, dict) or not all(map(_usable, rows.values())):
            raise RequestError(f"{self.path} is damaged: its cases cannot be used.")
        return rows

    def _difference(self, body: dict[str, Any], names: list[str]) -> str:
        """The first thing that differs, in words."""
        name = names[0]
        old, new = body.get(name), self.identity[name]
        if isinstance(old, dict) and isinstance(new, dict):
            name = next(k for k in {**new, **old} if old.get(k) != new.get(k))
            old, new = old.get(name), new.get(name)
        return f"{name} {_short(old)}, now {_short(new)}"

    def add(self, key: str, rows: list[Row]) -> None:
        self.rows[key] = plain(rows)
        self.write()

    def write(self) -> None:
        body = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            **self.identity,
            **plain(self.about),
            "cases": self.rows,
        }
        write_bytes_atomic(self.path, json.dumps(body, indent=1, allow_nan=False).encode())


def _usable(rows: Any) -> bool:
    """Rows whose pictures are files in the experiment's own folder."""
    return isinstance(rows, list) and all(
        isinstance(row, dict)
        and all(
            PICTURE.fullmatch(str(row[name])) for name in ("picture", "reference") if name in row
        )
        for row in rows
    )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
