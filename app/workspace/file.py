"""The workspace file ``NAME.dualscope``: what was open, how it was set, which runs were made.

It is JSON; the runs' records, checkpoints and pictures are copied into ``NAME.dualscope.runs/``
beside it. Paths of files below the workspace's folder are stored relative
to it (they begin with ``./``), so that the folder can be moved as a whole.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from engine.files.atomic import write_atomic, write_bytes_atomic
from engine.files.path_safety import is_network
from engine.files.run_library_entry import CHECKPOINT, RESULT
from engine.spec.errors import DualscopeError, RequestError
from engine.spec.input_options import PATH_OPTIONS

SUFFIX: Final = ".dualscope"
FORMAT: Final = "dualscope-workspace"
FORMAT_VERSION: Final = 1
BESIDE: Final = (CHECKPOINT, RESULT)  # of a record: to go on from, and to look at
LARGEST: Final = 16 << 20
MOST_RUNS: Final = 1000
LONGEST_TEXT: Final = 10_000  # of a note, a label, a path
HERE: Final = "./"
PLACES: Final = ("input", "options", "prior")  # of a job: where its files are on this machine
# what the app itself calls runs; other records are renamed, since a name may be a patient's
RUN_NAME: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}|run-\d{1,6}-[0-9a-f]{12}")
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class DataReference:
    """The open data: as `engine.data.source.open_input` takes it, and its hash if known."""

    text: str
    options: dict[str, Any] = field(default_factory=dict)
    sha256: str = ""
    slice: int = 0


@dataclass(frozen=True)
class SavedRun:
    """A run of the workspace; its checkpoint lies beside its record.

    ``places`` says where its files are now ('input', 'options', 'prior' of the job): a record
    may not name them, or may name where they were before the folder was moved.
    """

    record_path: Path
    number: int = 1
    label: str = ""
    note: str = ""
    visible: bool = True
    places: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Workspace:
    """``view`` belongs to the window and is not looked into; it must be JSON-able."""

    data: DataReference | None = None
    acquisition: dict[str, Any] = field(default_factory=dict)
    solver: dict[str, Any] = field(default_factory=dict)
    view: dict[str, Any] = field(default_factory=dict)
    runs: tuple[SavedRun, ...] = ()


def addresses(workspace: Workspace) -> list[str]:
    """What it names on other computers, each once."""
    groups = [run.places for run in workspace.runs]
    if workspace.data is not None:
        groups.append({"input": workspace.data.text, "options": workspace.data.options})
    found = dict[str, None]()
    for places in groups:
        options = places.get("options", {})
        told = [options.get(name) for name in PATH_OPTIONS]
        for text in (places.get("input"), places.get("prior"), *told):
            if isinstance(text, str) and is_network(text):
                found[text] = None
    return list(found)


def runs_folder(path: Path) -> Path:
    return path.with_name(path.name + ".runs")


def write_workspace(
    path: Path,
    workspace: Workspace,
    progress: Progress = lambda share, words: None,
    keep: Collection[Path] = (),
) -> list[str]:
    """Copy the runs, then write the file: until that moment the old workspace is whole.

    Runs of an older state are deleted afterwards, unless ``keep`` names their records (a
    deleted run that can still be brought back). The notes say which runs could not be saved.
    """
    if path.suffix != SUFFIX:
        raise RequestError(f"A workspace's name ends in {SUFFIX}, not {path.name}.")
    folder = path.absolute().parent
    if runs_folder(path).resolve().parent != folder.resolve():
        raise RequestError(f"{runs_folder(path).name} is a link to another folder; refused.")
    notes, runs, names = list[str](), list[dict[str, Any]](), set[str]()
    for done, run in enumerate(workspace.runs):
        progress(done / (len(workspace.runs) + 1), f"Saving run {run.number}")
        try:
            name = _copy_run(run, runs_folder(path), names)
        except (DualscopeError, OSError) as error:
            reason = getattr(error, "strerror", None) or str(error).rstrip(".")
            notes.append(f"#{run.number} {run.label} is not in the workspace: {reason}.")
            continue
        names.add(name)
        runs.append(
            {
                "name": name,
                "number": run.number,
                "label": run.label,
                "note": run.note,
                "visible": run.visible,
                "places": moved_places(run.places, folder, portable),
            }
        )
    body = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "data": _data_body(workspace.data, folder),
        "acquisition": workspace.acquisition,
        "solver": workspace.solver,
        "view": workspace.view,
        "runs": runs,
    }
    try:
        text = json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DualscopeError(f"The workspace cannot be written: {error}.") from error
    write_bytes_atomic(path, text.encode())
    if not notes:  # what could not be copied may have an older copy
        _delete_others(runs_folder(path), names | {kept.stem for kept in keep})
    return notes


def portable(text: str, folder: Path) -> str:
    """A file below ``folder`` as './…', any other as an absolute path; a demo as it is."""
    if not text or text.startswith("demo:"):
        return text
    path = Path(text).absolute()
    if path.is_relative_to(folder):
        below = HERE + path.relative_to(folder).as_posix()
        if not _leads_out(below):
            return below
    return str(path)


def resolved(text: str, folder: Path) -> str:
    """The other way round; a relative path that leads out of the folder is refused."""
    if not text.startswith(HERE):
        return text
    if _leads_out(text):
        raise RequestError("it names a file outside its folder")
    return str(folder.joinpath(*PurePosixPath(text).parts))


def _leads_out(text: str) -> bool:
    """Whether any system might look for it elsewhere."""
    return ".." in PurePosixPath(text).parts or "\\" in text or ":" in text


def _is_prior_file(prior: str) -> bool:
    """Not the name of a prior that comes with the program."""
    return len(Path(prior).parts) > 1 or prior.endswith(".safetensors")


def moved_places(
    places: dict[str, Any], folder: Path, change: Callable[[str, Path], str]
) -> dict[str, Any]:
    """The files of a job, with every path changed (`portable` or `resolved`)."""
    out = dict(places)
    if "input" in out:
        out["input"] = change(out["input"], folder)
    if "prior" in out and _is_prior_file(out["prior"]):
        out["prior"] = change(out["prior"], folder)
    if "options" in out:
        out["options"] = moved_options(out["options"], folder, change)
    return out


def moved_options(
    options: dict[str, Any], folder: Path, change: Callable[[str, Path], str]
) -> dict[str, Any]:
    moved = {name: change(options[name], folder) for name in PATH_OPTIONS if options.get(name)}
    return {**options, **moved}


def _data_body(data: DataReference | None, folder: Path) -> dict[str, Any] | None:
    if data is None:
        return None
    return {
        "text": portable(data.text, folder),
        "options": moved_options(data.options, folder, portable),
        "sha256": data.sha256,
        "slice": data.slice,
    }


def _copy_run(run: SavedRun, folder: Path, taken: Collection[str]) -> str:
    """Bring record and checkpoint into ``folder``; the name they have there."""
    source = run.record_path
    name = source.stem
    if not RUN_NAME.fullmatch(name) or name in taken:
        name = f"run-{run.number}-{_digest(source)}"
    target = folder / f"{name}.json"
    if not source.exists() and target.exists():
        return name
    folder.mkdir(exist_ok=True)
    for suffix in BESIDE:
        beside = source.with_name(source.stem + suffix)
        if beside.exists():  # a run that failed early has none
            _copy(beside, target.with_name(name + suffix))
    _copy(source, target)
    return name


def _digest(path: Path) -> str:
    from engine.data.dataset import sha256_of

    return sha256_of(path)[:12]


def _copy(source: Path, target: Path) -> None:
    if target.exists() and source.samefile(target):
        return
    with source.open("rb") as stream:
        write_atomic(target, lambda out: shutil.copyfileobj(stream, out))


def _delete_others(folder: Path, names: Collection[str]) -> None:
    """Only files that we called so ourselves."""
    for path in _listed(folder):
        stem = path.name.removesuffix(".json")
        for suffix in BESIDE:
            stem = stem.removesuffix(suffix)
        if stem != path.name and RUN_NAME.fullmatch(stem) and stem not in names:
            path.unlink(missing_ok=True)


def _listed(folder: Path) -> Sequence[Path]:
    return list(folder.iterdir()) if folder.is_dir() else ()
