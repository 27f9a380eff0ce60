"""The matrix itself: large enough, and honest about what did not hold."""

import pytest
from fault_matrix import Cell, outcome, table

FEWEST = 60


def test_there_are_at_least_sixty_cells(request):
    config = request.config
    if (
        config.option.keyword
        or config.option.markexpr
        or any(str(argument).endswith(".py") or "::" in str(argument) for argument in config.args)
    ):
        pytest.skip("only some of the tests are run")
    cells = [item for item in request.session.items if "cell" in getattr(item, "fixturenames", ())]
    assert len(cells) >= FEWEST


def test_a_cell_that_stops_on_its_way_is_not_counted_as_held():
    cell = Cell()("disk full", "exporting")
    assert outcome(cell.line, passed=False) == "crashed"
    cell.said("dualscope: Cannot write x.npy: No space left on device.", "no space")
    assert outcome(cell.line, passed=False) == "lost"
    cell.kept("the old file")
    assert outcome(cell.line, passed=False) == "not usable"
    cell.usable("it works again")
    assert outcome(cell.line, passed=False) == "not usable"
    assert outcome(cell.line, passed=True) == "held"
    assert "No space left" in table([{**cell.line, "outcome": "held"}], {"cells": 1})


@pytest.mark.parametrize("words", ["", "Traceback (most recent call last):", "one\ntwo"])
def test_a_message_that_is_no_sentence_is_refused(words):
    with pytest.raises(AssertionError):
        Cell()("disk full", "exporting").said(words)
