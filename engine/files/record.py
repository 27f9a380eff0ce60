"""The run record (RUN.json): how a reconstruction was made, and what may be told of it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from engine.files.atomic import write_bytes_atomic
from engine.files.budget import read_json
from engine.spec.errors import RequestError
from engine.spec.input_options import PATH_OPTIONS

FORMAT = "dualscope-run"
FORMAT_VERSION = 2
MAX_RECORD_BYTES = 256 << 20


@dataclass
class RunRecord:
    """How a reconstruction was made; enough to make it again."""

    job: dict[str, Any]
    versions: dict[str, str] = field(default_factory=dict)
    device: str = "cpu"
    prior: dict[str, Any] | None = None
    input: dict[str, Any] = field(default_factory=dict)
    operator: dict[str, Any] = field(default_factory=dict)
    status: str = "running"
    message: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    # sentences about the result, by what they are about: 'noise', 'prior', ...
    verdicts: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    result_sha256: str = ""  # of the image; records of older versions have none
    threads: int = 0  # of the processor: sums in another order have other bits; 0 if not known

    def write(self, path: Path) -> None:
        body = {"format": FORMAT, "format_version": FORMAT_VERSION, **self.content()}
        write_bytes_atomic(path, json.dumps(body, indent=1, allow_nan=False).encode())

    def content(self) -> dict[str, Any]:
        """JSON-able; names no file when the job is de-identified."""
        body = plain(asdict(self))
        return shared_record(body, deidentify=True) if self.job.get("deidentify") else body

    @classmethod
    def read(cls, path: Path) -> RunRecord:
        body = read_json(path, MAX_RECORD_BYTES, "a run record")
        if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
            raise RequestError(f"{path} is not a run record of Dualscope.")
        if body.pop("format_version", None) != FORMAT_VERSION:
            raise RequestError(f"{path} was written by another version of Dualscope.")
        blank = cls(job={})
        for name, value in body.items():
            if not hasattr(blank, name) or type(value) is not type(getattr(blank, name)):
                if name == "prior" and (value is None or isinstance(value, dict)):
                    continue
                raise RequestError(f"{path} is damaged: the entry '{name}' cannot be used.")
        try:
            return cls(**body)
        except TypeError as error:
            raise RequestError(f"{path} is damaged: the entry 'job' is missing.") from error


def plain(value: Any) -> Any:
    """JSON has no NaN or infinity: write them as null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


REMOVED = "(removed)"
MIN_WORD = 3  # shorter stems would be found in innocent words


def shared_record(body: dict[str, Any], deidentify: bool) -> dict[str, Any]:
    """A record's content; files by name only, or not named at all when de-identified.

    Names of files and folders often hold a patient's: they are then replaced in everything
    that is written in sentences, too.
    """
    job, told = body["job"], body["input"]
    given = [job.get("input"), told.get("name"), job.get("prior"), *body["outputs"]]
    given += [(job.get("options") or {}).get(name) for name in PATH_OPTIONS]
    paths = {text for text in given if isinstance(text, str) and _parts(text)}
    for text in sorted(paths, key=len, reverse=True):
        body = _replaced(body, text, REMOVED if deidentify else _parts(text)[-1])
    if deidentify:
        words = {word for text in paths for part in _parts(text) for word in _words(part)}
        for word in sorted(words, key=len, reverse=True):
            body["message"] = _replaced(body["message"], word, REMOVED)
            for name in ("name", "facts", "checks", "warnings"):
                if name in body["input"]:
                    body["input"][name] = _replaced(body["input"][name], word, REMOVED)
    return body


def _words(part: str) -> list[str]:
    return [word for word in (part, part.split(".")[0]) if len(word) >= MIN_WORD]


def _parts(text: str) -> list[str]:
    """Folders and name of a path of any system; nothing for 'demo:ct' or a prior's name."""
    kind = PureWindowsPath if "\\" in text else PurePosixPath
    path = kind(text)
    return [part for part in path.parts if part != path.anchor] if len(path.parts) > 1 else []


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, old, new) for item in value]
    return value.replace(old, new) if isinstance(value, str) else value
