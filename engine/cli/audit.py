"""``dualscope audit``: is what is installed what was tested, is it safe, may it be passed on?

Works offline: vulnerabilities are looked up only in files that the person gives.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from engine.audit.advisories import matching
from engine.audit.bill import against_bill, changed_files
from engine.audit.licences import (
    FOLDER,
    OWN,
    Package,
    Pin,
    installed,
    read_locks,
    refused,
    same_version,
)

NOTE, PROBLEM = "note", "problem"
KINDS = (
    *("missing", "other version", "no hash", "not in the lock", "vulnerable", "licence"),
    *("bill", "changed"),
)


@dataclass(frozen=True)
class Finding:
    package: str
    version: str
    kind: str  # one of KINDS
    words: str
    level: str = PROBLEM


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--advisories",
        metavar="FILE",
        help="Known vulnerabilities: a file or folder of OSV records (JSON). None are fetched.",
    )
    parser.add_argument(
        "--lock", metavar="FOLDER", help="Where the lock files are. Default: those of this program."
    )
    parser.add_argument(
        "--strict", action="store_true", help="Packages that are in no lock file count as problems."
    )
    parser.add_argument(
        "--sbom",
        metavar="FILE",
        help="Compare with a bill of materials (CycloneDX): versions, and hashes that the lock "
        "files must know, too.",
    )
    parser.add_argument(
        "--files",
        action="store_true",
        help="Read every installed file and compare it with the hash that its package came with.",
    )
    parser.add_argument("--json", action="store_true", help="Machine-readable.")


def run(options: argparse.Namespace) -> int:
    pins = read_locks(Path(options.lock) if options.lock else FOLDER)
    packages = installed()
    findings = examine(packages, pins, options.strict)
    if options.advisories:
        findings += vulnerable(packages, Path(options.advisories))
    if options.sbom:
        mismatches = against_bill(Path(options.sbom), packages, pins)
        findings += [Finding(m.package, m.version, "bill", m.words) for m in mismatches]
    if options.files:
        shipped = [name for name, pin in pins.items() if pin.shipped]
        findings += [
            Finding(m.package, m.version, "changed", m.words) for m in changed_files(shipped)
        ]
    problems = [finding for finding in findings if finding.level == PROBLEM]
    if options.json:
        body = {
            "packages": [asdict(package) for _, package in sorted(packages.items())],
            "findings": [asdict(finding) for finding in findings],
            "advisories": options.advisories is not None,
            "problems": len(problems),
        }
        print(json.dumps(body, indent=1))
    else:
        _print(packages, pins, findings, options.advisories is not None)
    return 1 if problems else 0


def examine(packages: dict[str, Package], pins: dict[str, Pin], strict: bool) -> list[Finding]:
    """Versions and licences; of what is not shipped, only the versions."""
    found = []
    for name, pin in sorted(pins.items()):
        package, tested = packages.get(name), " or ".join(sorted(pin.versions))
        if not pin.hashed:
            found.append(Finding(name, tested, "no hash", "the lock file has no hash of it"))
        if package is None:
            if pin.wanted:
                found.append(Finding(name, "", "missing", f"{tested} should be installed"))
        elif not same_version(package.version, pin.versions):
            words = f"{tested} was tested"
            level = PROBLEM if pin.shipped else NOTE
            found.append(Finding(name, package.version, "other version", words, level))
        if package is not None and pin.shipped and refused(package.licence):
            words = f"may not be shipped under: {package.licence}"
            found.append(Finding(name, package.version, "licence", words))
    for name in sorted(set(packages) - set(pins) - set(OWN)):
        level = PROBLEM if strict else NOTE
        words = f"nobody tested it here (licence: {packages[name].licence})"
        found.append(Finding(name, packages[name].version, "not in the lock", words, level))
    return found


def vulnerable(packages: dict[str, Package], path: Path) -> list[Finding]:
    versions = {name: package.version for name, package in packages.items()}
    return [
        Finding(
            one.package,
            one.version,
            "vulnerable",
            f"{one.identity}: {one.summary} "
            + (f"(fixed in {one.fixed})" if one.fixed else "(no fix known)"),
        )
        for one in matching(path, versions)
    ]


def _print(
    packages: dict[str, Package], pins: dict[str, Pin], findings: list[Finding], looked: bool
) -> None:
    console = Console(highlight=False)
    if findings:
        table = Table("package", "version", "what", "", "level")
        for one in findings:
            table.add_row(one.package, one.version, one.kind, one.words, one.level)
        console.print(table, markup=False)
    problems = sum(finding.level == PROBLEM for finding in findings)
    shipped = sum(name in packages and pin.shipped for name, pin in pins.items())
    console.print(
        f"{len(packages)} packages installed, {shipped} of them shipped; "
        f"{problems} problems, {len(findings) - problems} notes."
    )
    if not looked:
        console.print("Known vulnerabilities were not looked up: give a file with --advisories.")
