"""A room of its own for every test, and the count of all cases at the end of the run."""

import os
import tempfile

import pytest
from fuzz_cases import PART, Room


@pytest.fixture
def room(tmp_path, monkeypatch):
    """Home, temporary files and working folder lie in the room, beside the target folder."""
    room = Room(tmp_path / "room")
    for name in ("home", "tmp", "work", "target", "config", "state"):
        (room.root / name).mkdir(parents=True)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(room.root / "home"))
    for variable in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(variable, str(room.root / "tmp"))
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"DUALSCOPE_{name}", str(room.root / name.lower()))
    monkeypatch.setenv("DUALSCOPE_CACHE", str(room.target / "cache"))  # of system matrices
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(room.root / "work")
    if hasattr(os, "mkfifo"):
        for folder in (room.target, room.root / "work"):
            os.mkfifo(folder / "pipe")
    (room.target / "folder").mkdir()
    return room


@pytest.fixture
def counted(record_property):
    """Puts the counts of a test into the summary, and fails when anything went wrong."""

    def check(name, counts):
        record_property(f"fuzz {name}", [counts.read, counts.refused, len(counts.wrong)])
        assert not counts.wrong, "\n".join(map(str, counts.wrong))
        assert counts.read + counts.refused == PART
        assert counts.read > 0
        assert counts.refused > PART / 20

    return check


def pytest_terminal_summary(terminalreporter):
    """The figures travel with the tests' reports, so they arrive from other processes, too."""
    totals = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, counts in getattr(report, "user_properties", ()):
                if name.startswith("fuzz ") and getattr(report, "when", "") == "call":
                    row = totals.setdefault(name, [0, 0, 0])
                    totals[name] = [a + b for a, b in zip(row, counts, strict=True)]
    if not totals:
        return
    terminalreporter.section("fuzzing")
    for name, (read, refused, wrong) in sorted(totals.items()):
        terminalreporter.write_line(
            f"{name.removeprefix('fuzz '):24} {read + refused:6} cases: "
            f"{read} read, {refused} refused, {wrong} wrong"
        )
    read, refused, wrong = map(sum, zip(*totals.values(), strict=True))
    terminalreporter.write_line(f"{'together':24} {read + refused:6} cases, {wrong} wrong")
