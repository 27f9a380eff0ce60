"""A run record as it may leave the machine: without folders, and without names on request."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from engine.spec.input_options import PATH_OPTIONS

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
