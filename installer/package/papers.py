"""The papers of a packaged build: licence texts, a bill of materials, a list of versions."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from engine.files.atomic import write_bytes_atomic
from installer.package.bundled import Part, canonical

SBOM: Final = "sbom.cdx.json"
VERSIONS: Final = "versions.txt"
LICENCES: Final = "licences"
# Of SPDX's list, what packages have; the schema refuses others ("BSD" is none), which go into the
# field for free words.
SPDX: Final = (
    *("Apache-2.0", "MIT", "MIT-CMU", "0BSD", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib"),
    *("PSF-2.0", "Python-2.0", "MPL-2.0", "BSL-1.0", "HPND", "CC0-1.0", "Unlicense"),
    *("LGPL-2.1-or-later", "LGPL-3.0-only", "LGPL-3.0-or-later", "blessing", "bzip2-1.0.6"),
)
EXPRESSION: Final = re.compile(r"[A-Za-z0-9.+-]+(?: (?:WITH|AND|OR) [A-Za-z0-9.+-]+)+")
SPDX_OF: Final = {"MIT License": "MIT", "Apache Software License": "Apache-2.0"}
# What an installer notes of its own doings, machine paths among it.
NOT_FOR_OTHERS: Final = ("direct_url.json", "INSTALLER", "REQUESTED")


def read_hashes(lock: Path) -> dict[str, tuple[str, ...]]:
    """The sha256 of every file that a lock allows, by package."""
    text = lock.read_text(encoding="utf-8")
    return {
        canonical(entry.partition("==")[0]): tuple(re.findall(r"sha256:([0-9a-f]{64})", entry))
        for entry in entries_of(text)
    }


def entries_of(text: str) -> list[str]:
    """The packages of a lock file, each with its hashes."""
    parts = re.split(r"^(?=\w)", text, flags=re.MULTILINE)
    return [part for part in parts if "==" in part.partition("\n")[0] and not part.startswith("#")]


def sbom(parts: Sequence[Part], now: datetime | None = None) -> dict[str, Any]:
    """CycloneDX 1.5: https://cyclonedx.org/docs/1.5/json/"""
    (application,) = (part for part in parts if part.kind == "application")
    rest = [part for part in parts if part is not application]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {
            "timestamp": (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": _component(application),
        },
        "components": [_component(part) for part in rest],
        "dependencies": [
            {"ref": _reference(application), "dependsOn": [_reference(part) for part in rest]}
        ],
    }


def write_sbom(path: Path, parts: Sequence[Part]) -> None:
    write_bytes_atomic(path, json.dumps(sbom(parts), indent=1).encode())


def _component(part: Part) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": part.kind,
        "bom-ref": _reference(part),
        "name": part.name,
        "licenses": [_licence(part.licence)],
    }
    if part.version:
        found["version"] = part.version
    if part.purl:
        found["purl"] = part.purl
    if part.sha256:
        found["hashes"] = [{"alg": "SHA-256", "content": part.sha256}]
    elif part.allowed:  # which of them was installed nobody notes
        found["externalReferences"] = [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{canonical(part.name)}/{part.version}/#files",
                "hashes": [{"alg": "SHA-256", "content": one} for one in part.allowed],
            }
        ]
    return found


def _reference(part: Part) -> str:
    return part.purl or f"dualscope:{part.name}@{part.version}"


def _licence(words: str) -> dict[str, Any]:
    words = SPDX_OF.get(words, words)
    if EXPRESSION.fullmatch(words):
        return {"expression": words}
    return {"license": {"id" if words in SPDX else "name": words}}


def versions(parts: Iterable[Part]) -> str:
    lines = [f"{part.name:30s} {part.version or '-':24s} {part.licence}" for part in parts]
    return "\n".join(["What this folder holds, and under which licence.", "", *lines, ""])


def write(folder: Path, parts: Sequence[Part]) -> None:
    """All papers into a folder; licence texts of each part in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    write_sbom(folder / SBOM, parts)
    write_bytes_atomic(folder / VERSIONS, versions(parts).encode())
    for part in parts:
        for name, text in part.texts:
            target = folder / LICENCES / canonical(part.name.replace(" ", "-")) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            write_bytes_atomic(target, text.encode())


def write_locks(folder: Path, locks: Path, parts: Iterable[Part]) -> None:
    """The lock files less what was left out: for ``dualscope audit`` in the packaged folder."""
    names = {canonical(part.name) for part in parts}
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("lock.txt", "lock-cpu.txt"):
        text = (locks / name).read_text(encoding="utf-8")
        taken = [one for one in entries_of(text) if canonical(one.partition("==")[0]) in names]
        write_bytes_atomic(folder / name, "".join(taken).encode())


def metadata_files(parts: Iterable[Part]) -> list[tuple[str, str]]:
    """Source and folder of what packages say of themselves: plug-ins are found by it, and so are
    the versions and licences that the program shows."""
    names = {canonical(part.name) for part in parts} - {"dualscope", "pyinstaller-hooks-contrib"}
    found = []
    for one in metadata.distributions():
        if canonical(str(one.metadata["Name"])) not in names:
            continue
        for file in one.files or ():
            if file.parts[0].endswith(".dist-info") and file.name not in NOT_FOR_OTHERS:
                found.append((str(one.locate_file(file)), str(file.parent)))
    return found
