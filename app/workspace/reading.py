"""Reading a workspace file, which may come from anybody: everything in it is checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from app.workspace.file import (
    FORMAT,
    FORMAT_VERSION,
    LARGEST,
    LONGEST_TEXT,
    MOST_RUNS,
    PLACES,
    RUN_NAME,
    DataReference,
    SavedRun,
    Workspace,
    moved_options,
    moved_places,
    resolved,
    runs_folder,
)
from engine.files.budget import read_json
from engine.files.path_safety import fault_of_place
from engine.spec.errors import RequestError
from engine.spec.input_options import PATH_OPTIONS


def read_workspace(path: Path) -> Workspace:
    """All of it, or one sentence about why not; nothing is changed on the disk."""
    body = read_json(path, LARGEST, "a workspace", strict=True)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise RequestError(f"{path.name} is not a workspace of Dualscope.")
    if body.get("format_version") != FORMAT_VERSION:
        raise RequestError(f"{path.name} was written by another version of Dualscope.")
    try:
        return _workspace(body, path)
    except RequestError as error:
        raise RequestError(f"{path.name} cannot be opened: {error}.") from error


def _workspace(body: dict[str, Any], path: Path) -> Workspace:
    folder = path.absolute().parent
    listed = _get(body, "runs", list)
    if len(listed) > MOST_RUNS:
        raise RequestError(f"it lists more than {MOST_RUNS} runs")
    runs = tuple(_run(entry, path) for entry in listed)
    if len({run.record_path for run in runs}) < len(runs):
        raise RequestError("it lists a run twice")
    data = body.get("data")
    return Workspace(
        data=None if data is None else _data(data, folder),
        acquisition=_get(body, "acquisition", dict),
        solver=_get(body, "solver", dict),
        view=_get(body, "view", dict),
        runs=runs,
    )


def _data(data: Any, folder: Path) -> DataReference:
    if not isinstance(data, dict):
        raise RequestError("its entry 'data' cannot be used")
    sha256 = _text(data, "sha256")
    if sha256 and not re.fullmatch("[0-9a-f]{64}", sha256):
        raise RequestError("its entry 'sha256' cannot be used")
    return DataReference(
        text=resolved(_path(data, "text"), folder),
        options=moved_options(_checked_options(_get(data, "options", dict)), folder, resolved),
        sha256=sha256,
        slice=_whole(data, "slice", 0),
    )


def _run(entry: Any, path: Path) -> SavedRun:
    if not isinstance(entry, dict):
        raise RequestError("its entry 'runs' cannot be used")
    name = _text(entry, "name")
    if not RUN_NAME.fullmatch(name):
        raise RequestError("a run in it has an impossible name")
    places = _get(entry, "places", dict)
    if set(places) - set(PLACES):
        raise RequestError("its entry 'places' cannot be used")
    for part in ("input", "prior"):
        if part in places:
            _path(places, part)
    if "options" in places:
        _checked_options(_get(places, "options", dict))
    return SavedRun(
        record_path=runs_folder(path) / f"{name}.json",
        number=_whole(entry, "number", 1),
        label=_text(entry, "label"),
        note=_text(entry, "note"),
        visible=_get(entry, "visible", bool),
        places=moved_places(places, path.absolute().parent, resolved),
    )


def _checked_options(options: dict[str, Any]) -> dict[str, Any]:
    """Plain values; the reader of the input says more about them."""
    for value in options.values():
        if not (value is None or isinstance(value, bool | int | float | str)):
            raise RequestError("its entry 'options' cannot be used")
    for name in PATH_OPTIONS:
        if options.get(name) is not None:
            _path(options, name)
    return options


def _get(body: dict[str, Any], name: str, kind: type) -> Any:
    value = body.get(name)
    if not isinstance(value, kind):
        raise RequestError(f"its entry '{name}' cannot be used")
    return value


def _text(body: dict[str, Any], name: str) -> str:
    value = _get(body, name, str)
    if len(value) > LONGEST_TEXT:
        raise RequestError(f"its entry '{name}' is too long")
    return value


def _path(body: dict[str, Any], name: str) -> str:
    value = _text(body, name)
    if not value or "\0" in value:
        raise RequestError(f"its entry '{name}' cannot be used")
    if fault := fault_of_place(value, network=True):  # of addresses the window asks
        raise RequestError(f"it names {fault}")
    return value


def _whole(body: dict[str, Any], name: str, low: int) -> int:
    value = _get(body, name, int)
    if isinstance(value, bool) or not low <= value <= 1_000_000:
        raise RequestError(f"its entry '{name}' cannot be used")
    return value
