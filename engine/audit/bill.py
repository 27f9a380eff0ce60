"""What is installed, held against a bill of materials and against the hashes it came with."""

from __future__ import annotations

import base64
import csv
import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from engine.audit.licences import OWN, Package, Pin, same_version
from engine.files.budget import read_json
from engine.files.folders import RESOURCES
from engine.spec.errors import RequestError

LARGEST: Final = 64 << 20
PURL: Final = "pkg:pypi/"
MODEL: Final = "machine-learning-model"
PART: Final = 1 << 20


@dataclass(frozen=True)
class Mismatch:
    package: str
    version: str
    words: str


def against_bill(path: Path, packages: dict[str, Package], pins: dict[str, Pin]) -> list[Mismatch]:
    """Where a CycloneDX bill and what is installed differ.

    A package must be there in the version of the bill, with hashes that the lock files know; what
    we ship must be in the bill; a prior must have the hash that the bill gives.
    """
    found: list[Mismatch] = []
    listed = set()
    for one in _components(path):
        name, _, version = unquote(str(one.get("purl", ""))).removeprefix(PURL).partition("@")
        name = canonicalize_name(name)
        if one.get("type") == MODEL:
            found += _model(one)
        elif str(one.get("purl", "")).startswith(PURL) and name not in OWN:
            listed.add(name)
            found += _package(name, version, _hashes(one), packages, pins)
    for name, pin in sorted(pins.items()):
        if pin.shipped and name in packages and name not in listed:
            found.append(Mismatch(name, packages[name].version, "it is not in the bill"))
    return found


def _components(path: Path) -> list[dict[str, Any]]:
    body = read_json(path, LARGEST, "a bill of materials")
    components = body.get("components") if isinstance(body, dict) else None
    known = isinstance(body, dict) and body.get("bomFormat") == "CycloneDX"
    if not known or not isinstance(components, list):
        raise RequestError(f"{path} is not a bill of materials in CycloneDX's format.")
    return [one for one in components if isinstance(one, dict)]


def _hashes(component: dict[str, Any]) -> set[str]:
    """Of the files that it may have been installed from."""
    references = component.get("externalReferences")
    lists = [component.get("hashes")]
    lists += [one.get("hashes") for one in _dicts(references)]
    return {
        str(entry.get("content"))
        for entries in lists
        for entry in _dicts(entries)
        if entry.get("alg") == "SHA-256"
    }


def _dicts(values: Any) -> Iterator[dict[str, Any]]:
    entries = values if isinstance(values, list) else []
    return (one for one in entries if isinstance(one, dict))


def _package(
    name: str,
    version: str,
    hashes: set[str],
    packages: dict[str, Package],
    pins: dict[str, Pin],
) -> Iterator[Mismatch]:
    package, pin = packages.get(name), pins.get(name, Pin())
    if package is None:
        yield Mismatch(name, version, "it is in the bill, but not installed")
    elif not same_version(package.version, [version]):
        yield Mismatch(name, package.version, f"the bill has {version}")
    if pin.shipped and not hashes:
        yield Mismatch(name, version, "the bill has no hash of it")
    elif not hashes <= pin.hashes:
        yield Mismatch(name, version, "the bill has a hash of it that no lock file knows")


def _model(component: dict[str, Any]) -> Iterator[Mismatch]:
    hashes = _hashes(component)
    if not any(sha256_of(path) in hashes for path in (RESOURCES / "priors").glob("*.safetensors")):
        yield Mismatch(
            str(component.get("name", "?"))[:60], "", "no prior here has the hash of the bill"
        )


def changed_files(names: Iterable[str], paths: list[str] | None = None) -> list[Mismatch]:
    """Installed files that are not what their package's own list (RECORD) says, one per package."""
    wanted, found = set(names), []
    for one in metadata.distributions(path=sys.path if paths is None else paths):
        name = canonicalize_name(str(one.metadata["Name"])) if one.metadata else ""
        if name not in wanted:
            continue
        wanted.remove(name)  # the first is what is imported
        files = dict(_recorded(one))
        changed = [file for file, said in files.items() if not _unchanged(one, file, said)]
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            words = f"changed since it was installed: {changed[0]}{more}"
            found.append(Mismatch(name, one.version, words))
        elif not files:
            found.append(Mismatch(name, one.version, "it has no list of its files with hashes"))
    return found


def _recorded(one: metadata.Distribution) -> Iterator[tuple[str, str]]:
    """Files and their hashes; `metadata.files` would leave out those that are missing."""
    for row in csv.reader((one.read_text("RECORD") or "").splitlines()):
        if len(row) == 3 and row[1].startswith("sha256="):
            yield row[0], row[1].removeprefix("sha256=")


def _unchanged(one: metadata.Distribution, file: str, said: str) -> bool:
    try:
        digest = sha256_of(Path(str(one.locate_file(file))))
    except OSError:
        return False
    usual = base64.urlsafe_b64encode(bytes.fromhex(digest)).decode().rstrip("=")
    return said in (usual, digest)  # some tools write it in hexadecimal


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while part := stream.read(PART):
            digest.update(part)
    return digest.hexdigest()
