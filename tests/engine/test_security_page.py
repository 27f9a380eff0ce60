"""The threat model names the test of every protection; here those tests are looked for."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "resources" / "help" / "security.md"


def rows():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("| ")]
    return [line.strip("|").split("|") for line in table if "`tests/" in line]


def test_every_protection_has_a_test_that_exists():
    assert len(rows()) >= 20
    for asset, attacker, protection, tests in rows():
        assert attacker.strip()
        assert protection.strip(), asset
        for file, _, name in re.findall(r"`(tests/[\w/.]+\.py)(::(\w+))?`", tests):
            text = (ROOT / file).read_text(encoding="utf-8")
            assert not name or f"\ndef {name}(" in text, f"{file} has no {name}"


def test_no_row_is_without_a_test():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("|")][2:]
    assert [line for line in table if "`tests/" not in line and "inputs" not in line] == []
