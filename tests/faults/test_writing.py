"""Disks that are full, read-only or gone: what was there stays, and a sentence says why."""

import os

import pytest
from fault_injection import FULL, GONE, READ_ONLY, failing, strays
from fault_stages import STAGES, copied

FAULTS = {
    "disk full": (FULL, "write"),
    "read-only folder": (READ_ONLY, "create"),
    "vanished network drive": (GONE, "rename"),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_write_keeps_what_was_there(fault, stage, cell, before, inputs, tmp_path):
    cell(fault, stage)
    known = before(stage)
    out = copied(known.folder, tmp_path / "out")
    number, kind = FAULTS[fault]
    with failing(out, number, kind):
        code, words = known.stage.act(inputs, out, "new")
    assert code == 1
    cell.said(words, os.strerror(number))
    assert known.state(out) == "old"
    assert strays(out) == []
    cell.kept("the old content, whole")
    code, words = known.stage.act(inputs, out, "new")
    assert code == 0, words
    assert known.state(out) == "new"
    cell.usable("the same request works when the fault is gone")
