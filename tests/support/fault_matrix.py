"""The fault matrix: one line for every fault at every stage, made by the tests themselves.

A test of `tests/faults` says what it does with the fixture ``cell`` and ticks off what it has
seen. The lines travel with the test reports, so they arrive from pytest-xdist's workers, too;
``tests/conftest.py`` hands these hooks to pytest.
"""

import json
import os
import tempfile
from collections import Counter
from pathlib import Path

KEY = "fault-cell"
FOLDER = "DUALSCOPE_FAULT_MATRIX"  # the environment variable that says where the table goes
LONGEST = 240
_lines = {}


class Cell:
    """One fault at one stage, and the three things that must hold."""

    def __init__(self):
        self.line = {"fault": "", "stage": "", "message": "", "kept": "", "usable": ""}

    def __call__(self, fault, stage):
        self.line |= {"fault": fault, "stage": stage}
        return self

    def said(self, text, *parts):
        """The message is one line without a traceback, and names every one of ``parts``."""
        words = text.strip()
        assert words, "nothing was said"
        assert "Traceback" not in words
        assert "\n" not in words, f"more than one line: {words}"
        for part in parts:
            assert str(part).lower() in words.lower(), f"'{part}' is not in: {words}"
        self.line["message"] = words

    def silent(self, why):
        """No message is due; ``why`` says so in the table."""
        self.line["message"] = f"({why})"

    def kept(self, what):
        assert self.line["message"], "first what was said"
        self.line["kept"] = what

    def usable(self, how):
        assert self.line["kept"], "first what was kept"
        self.line["usable"] = how


def outcome(line, passed):
    """What became of a cell; a test that failed says how far it came."""
    if line["usable"] and passed:
        return "held"
    if not line["message"]:
        return "crashed"
    return "not usable" if line["kept"] else "lost"


def pytest_runtest_logreport(report):
    for name, line in report.user_properties:
        if name == KEY and not report.skipped:
            if not line["fault"] and not report.failed:
                continue  # the end of a test that was skipped
            failed = report.failed or _lines.get(report.nodeid, {}).get("failed", False)
            _lines[report.nodeid] = {**line, "failed": failed}


def pytest_terminal_summary(terminalreporter):
    if not _lines or hasattr(terminalreporter.config, "workerinput"):
        return
    lines = [_finished(line) for line in _lines.values()]
    lines.sort(key=lambda line: (line["fault"], line["stage"]))
    folder = Path(os.environ.get(FOLDER) or tempfile.mkdtemp(prefix="dualscope-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    counts = Counter(line["outcome"] for line in lines)
    total = {
        "cells": len(lines),
        "held": counts["held"],
        "lost results": counts["lost"],
        "crashes": counts["crashed"],
        "not usable": counts["not usable"],
    }
    (folder / "fault-matrix.json").write_text(json.dumps({**total, "matrix": lines}, indent=1))
    (folder / "fault-matrix.md").write_text(table(lines, total))
    terminalreporter.section("fault matrix")
    for fault in dict.fromkeys(line["fault"] for line in lines):
        here = [line for line in lines if line["fault"] == fault]
        bad = [line["stage"] for line in here if line["outcome"] != "held"]
        words = f"; NOT HELD: {', '.join(bad)}" if bad else ""
        terminalreporter.line(f"{fault}: {len(here)} stages{words}")
    terminalreporter.line(f"{_counted(total)} ({folder / 'fault-matrix.md'})")


def table(lines, total):
    rows = [
        "| Fault | Stage | What is said | What is kept | Afterwards | Outcome |",
        "|---" * 6 + "|",
    ]
    names = ("fault", "stage", "message", "kept", "usable", "outcome")
    rows += ["| " + " | ".join(_short(line[name]) for name in names) + " |" for line in lines]
    return f"# Fault matrix\n\n{_counted(total)}\n\n" + "\n".join(rows) + "\n"


def _finished(line):
    result = {name: value for name, value in line.items() if name != "failed"}
    return {**result, "outcome": outcome(line, not line["failed"])}


def _counted(total):
    return ", ".join(f"{name}: {count}" for name, count in total.items())


def _short(text):
    text = text.replace("|", "\\|")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
