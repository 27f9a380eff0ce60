"""kill -9 in the middle of every write: a reader finds the old content or the new."""

import os

import pytest
from fault_injection import strays
from fault_stages import STAGES, copied

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def moments(events, most):
    """First and last of every kind of event, then others evenly, in order."""
    chosen = {events.index(kind) for kind in events}
    chosen |= {len(events) - 1 - events[::-1].index(kind) for kind in events}
    chosen = sorted(chosen)
    if len(chosen) > most:
        chosen = [chosen[round(i * (len(chosen) - 1) / (most - 1))] for i in range(most)]
    return sorted(set(chosen))


@pytest.mark.parametrize("stage", STAGES)
def test_killed_at_its_writes_it_leaves_old_or_new(stage, cell, before, killer, inputs, tmp_path):
    cell("kill -9", stage)
    known = before(stage)
    whole = killer(stage, copied(known.folder, tmp_path / "whole"))
    assert (whole["killed"], whole["code"]) == (False, 0), whole
    found = []
    for at in moments(whole["events"], known.stage.most_kills):
        out = copied(known.folder, tmp_path / f"killed-{at}")
        assert killer(stage, out, at)["killed"]
        found.append(known.state(out))
        again = killer(stage, out)
        assert (again["killed"], again["code"]) == (False, 0), again
        assert known.state(out) == "new"
        assert strays(out) == [], f"killed at {whole['events'][at]}"
    cell.silent("there is nobody left to say anything")
    assert set(found) <= {"old", "new"}
    assert "old" in found
    cell.kept(f"old or new content at each of {len(found)} moments")
    cell.usable("the next start writes it and clears the interim files")
