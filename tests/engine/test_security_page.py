"""The threat model names the test of every protection; here those tests are looked for."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "resources" / "help" / "security.md"


def rows():
    """Of the threat model, the page's first table."""
    begin = PAGE.read_text(encoding="utf-8").partition("\n| Asset |")[2]
    table = begin.partition("\n\n")[0].splitlines()[2:]
    return [line.strip("|").split("|") for line in table]


def test_every_protection_has_a_test_that_exists():
    assert len(rows()) >= 20
    for asset, attacker, protection, tests in rows():
        assert attacker.strip()
        assert protection.strip(), asset
        named = re.findall(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`", tests)
        assert named, f"{attacker} has no test"
        for file, name in named:
            text = (ROOT / file).read_text(encoding="utf-8")
            assert not name or f"\ndef {name}(" in text, f"{file} has no {name}"
