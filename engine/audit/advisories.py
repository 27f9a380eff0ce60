"""Known vulnerabilities, from OSV records that a person has downloaded; nothing is fetched.

The format: https://ossf.github.io/osv-schema/ (one JSON object, or a list of them, per file).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from engine.files.budget import read_json
from engine.files.path_safety import check_regular
from engine.spec.errors import RequestError

LARGEST: Final = 64 << 20
MOST_FILES: Final = 200_000
LONGEST_SUMMARY: Final = 200


@dataclass(frozen=True)
class Advisory:
    """A vulnerability that the installed version has."""

    package: str
    version: str
    identity: str
    summary: str
    fixed: str  # the first version without it; empty when there is none


def matching(path: Path, versions: dict[str, str]) -> list[Advisory]:
    """Advisories in a file or folder that touch the installed versions (by canonical name)."""
    found = [
        advisory
        for file in _files(path)
        for record in _records(file)
        for advisory in _matches(record, versions)
    ]
    return sorted(set(found), key=lambda one: (one.package, one.identity))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(file for file in path.rglob("*.json") if file.is_file())
        if not files:
            raise RequestError(f"{path} holds no .json file of advisories.")
        if len(files) > MOST_FILES:
            raise RequestError(f"{path} holds more than {MOST_FILES} files: give those for PyPI.")
        return files
    if not path.exists():
        raise RequestError(f"{path} does not exist.")
    check_regular(path)
    return [path]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    body = read_json(path, LARGEST, "a file of advisories")
    records = body if isinstance(body, list) else [body]
    for record in records:
        if not isinstance(record, dict) or not isinstance(record.get("id"), str):
            raise RequestError(f"{path} is not an advisory in the OSV format: it has no 'id'.")
        if not isinstance(record.get("affected", []), list):
            raise RequestError(f"{path}: 'affected' of {record['id'][:60]} is not a list.")
        yield record


def _matches(record: dict[str, Any], versions: dict[str, str]) -> Iterator[Advisory]:
    if record.get("withdrawn"):
        return
    for affected in record.get("affected", []):
        package = affected.get("package") if isinstance(affected, dict) else None
        if not isinstance(package, dict) or package.get("ecosystem") != "PyPI":
            continue
        name = canonicalize_name(str(package.get("name", "")))
        if name in versions and _is_affected(affected, versions[name]):
            summary = " ".join(str(record.get("summary") or record.get("details") or "").split())
            fixed = _first_fix(affected, versions[name])
            yield Advisory(
                name, versions[name], record["id"][:60], summary[:LONGEST_SUMMARY], fixed
            )


def _is_affected(affected: dict[str, Any], version: str) -> bool:
    """Listed by itself, or in a range; one that says neither touches every version."""
    listed, ranges = affected.get("versions"), list(_ranges(affected))
    if not listed and not ranges:
        return True
    if isinstance(listed, list) and any(_same(str(one), version) for one in listed):
        return True
    return any(_in_range(events, version) for events in ranges)


def _ranges(affected: dict[str, Any]) -> Iterator[list[tuple[Version, str]]]:
    """The events of every range in order: versions at which it begins, ends, or still holds."""
    for one in affected.get("ranges") or []:
        if not isinstance(one, dict) or one.get("type") not in ("ECOSYSTEM", "SEMVER"):
            continue  # GIT ranges name commits
        events = []
        for event in one.get("events") or []:
            for kind in ("introduced", "fixed", "last_affected", "limit"):
                text = event.get(kind) if isinstance(event, dict) else None
                if isinstance(text, str) and (version := _version(text)) is not None:
                    events.append((version, kind))
        # at one version a fix comes before a new introduction; '0' is before everything
        yield sorted(events, key=lambda event: (event[0], event[1] == "introduced"))


def _in_range(events: list[tuple[Version, str]], text: str) -> bool:
    version = _version(text)
    if version is None:
        return True  # better a word too many than a hole unseen
    inside = False
    for at, kind in events:
        if kind == "introduced" and (version >= at or at == Version("0")):
            inside = True
        elif (kind in ("fixed", "limit") and version >= at) or (
            kind == "last_affected" and version > at
        ):
            inside = False
    return inside


def _first_fix(affected: dict[str, Any], text: str) -> str:
    version = _version(text)
    fixes: Iterable[Version] = (
        at for events in _ranges(affected) for at, kind in events if kind == "fixed"
    )
    later = sorted(at for at in fixes if version is None or at > version)
    return str(later[0]) if later else ""


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _same(one: str, other: str) -> bool:
    """Without the label of a build: '2.13.0+cpu' has what 2.13.0 has."""
    first, second = _version(one), _version(other)
    if first is None or second is None:
        return one == other
    return Version(first.public) == Version(second.public)
