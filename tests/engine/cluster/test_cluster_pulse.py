"""When a worker counts as frozen: times are told, not waited for."""

import pytest

from engine.workflows.cluster import pulse
from engine.workflows.cluster.pulse import Pulse


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1000.0

        def pass_by(self, seconds, *alive):
            for _ in range(round(seconds)):
                self.now += 1
                for one in alive:
                    one.beat(self.now)

    clock = Clock()
    monkeypatch.setattr(pulse.time, "monotonic", lambda: clock.now)
    return clock


def worked(clock, seconds, slices=1):
    one = Pulse()
    one.begin()
    clock.pass_by(seconds, one)
    one.finish(slices)
    return one


def test_three_times_its_own_pace_is_the_end(clock):
    one = worked(clock, 80, slices=4)
    assert one.pace == 20
    clock.pass_by(119, one)
    assert not one.overdue(2, None, alike=False)
    clock.pass_by(2, one)
    assert one.overdue(2, None, alike=False) == "not done after 121 s"


def test_a_machine_that_is_busy_for_a_moment_is_no_frozen_worker(clock):
    one = worked(clock, 1)
    clock.pass_by(10, one)
    assert not one.overdue(1, None, alike=True)
    clock.pass_by(1, one)
    assert one.overdue(1, None, alike=True)


def test_a_new_worker_is_measured_by_the_others(clock):
    slowest, new = worked(clock, 20), Pulse()
    new.begin()
    clock.pass_by(61, new)
    assert new.overdue(1, slowest.pace, alike=True), "another process on the same computer"
    assert not new.overdue(1, slowest.pace, alike=False), "it may be a slower computer"
    clock.pass_by(140, new)
    assert new.overdue(1, slowest.pace, alike=False)


def test_a_process_that_is_not_heard_of_is_frozen_whatever_its_pace(clock):
    one = worked(clock, 1000)
    clock.pass_by(31)
    assert one.overdue(1, None, alike=True) == "the worker has not been heard of for 31 s"


def test_while_nobody_knows_the_pace_iterations_are_the_sign(clock):
    one = Pulse()
    one.begin()
    for k in range(1, 10):
        clock.pass_by(100, one)
        assert not one.overdue(1, None, alike=False)
        one.step(k)
    clock.pass_by(100, one)
    one.step(9)  # the same one again is none
    clock.pass_by(21, one)
    assert one.overdue(1, None, alike=False) == "no iteration for 121 s"
