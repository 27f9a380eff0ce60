"""A CT record that says nothing of the width of bins was made with rays that are lines."""

import pytest

from engine.data.source import open_input
from engine.files.record import RunRecord
from engine.physics.aperture import ApertureCT
from engine.runs.prepare import prepare, recorded_job
from engine.spec.input_options import InputOptions
from engine.spec.job import Job


@pytest.mark.parametrize("fine_grid", [1, 2])
def test_a_new_record_is_repeated_as_it_was_and_an_older_one_with_lines(fine_grid):
    asked = {"views": 3, "fine_grid": fine_grid}
    job = Job("demo:ct", options={"size": 64}, acquisition=asked, solver="fbp")
    dataset = open_input("demo:ct", InputOptions(size=64))
    new = prepare(job, dataset)
    assert isinstance(new.problem.operator, ApertureCT) == (fine_grid > 1)
    said = new.problem.operator.describe()
    again = recorded_job(RunRecord(job.to_dict(), operator=said), "the record")
    assert "aperture" not in again.acquisition
    said.pop("aperture", None)
    old = prepare(recorded_job(RunRecord(job.to_dict(), operator=said), "the record"), dataset)
    assert not isinstance(old.problem.operator, ApertureCT)
    assert old.problem.measurement.equal(new.problem.measurement) == (fine_grid == 1)
