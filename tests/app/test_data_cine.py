"""Playing the slices: all of them, in the order of InstanceNumber, none before the last is seen."""

import numpy as np
import pytest
from dicom_files import write_series
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from window_driver import until

from app.data.cine import CineBar
from app.tasks import Newest


@pytest.fixture
def bar(qtbot):
    bar = CineBar()
    qtbot.addWidget(bar)
    bar.show()
    bar.set_series(4)
    yield bar
    bar.stop()


def test_a_slice_is_asked_for_only_when_the_last_one_was_seen(bar):
    asked = []
    bar.wanted.connect(asked.append)
    bar.set_number(2)
    bar._on_time()
    bar._on_time()
    bar._on_time()
    assert asked == [3]
    bar.set_number(3)
    bar.on_seen(3)
    bar._on_time()
    assert asked == [3, 0], "after the last slice comes the first"
    bar.set_series(4, step=-1)
    bar.set_number(0)
    bar._on_time()
    assert asked == [3, 0, 3]


def test_the_speed_is_in_slices_per_second(bar):
    bar.speed.setValue(25)
    assert bar.timer.interval() == 40
    QTest.mouseClick(bar.button, Qt.MouseButton.LeftButton)
    assert bar.timer.isActive()
    QTest.mouseClick(bar.button, Qt.MouseButton.LeftButton)
    assert not bar.timer.isActive()
    bar.set_series(1)
    bar.button.setChecked(True)
    assert not bar.timer.isActive(), "one slice is no film"


def test_a_series_is_played_in_the_order_of_its_numbers(bench, tmp_path):
    """InstanceNumbers of these files run against the positions of the slices."""
    write_series(tmp_path, np.arange(4) * 2.0)
    bench.open(tmp_path)
    link, slices = bench.window.grid.link, bench.window.browser.slices
    seen = []
    bench.window.data.preview.connect(lambda number, image: seen.append(number))
    slices.cine.speed.setValue(60)
    slices.cine.button.click()
    until(lambda: len(seen) > 5, what="the slices")
    slices.cine.button.click()
    steps = np.diff(seen) % 4
    assert set(steps) == {3}, "the step to the next InstanceNumber leads to the slice before"
    until(lambda: link.state.slice == seen[-1], what="the last one")
    slices.cine.button.click()
    bench.open("demo:ct")
    assert not slices.cine.timer.isActive(), "other data begin at rest"


def test_what_was_dropped_does_not_answer_even_when_it_had_just_ended(tasks, qtbot):
    """A task whose work is done, but whose answer has not arrived, cannot be cancelled."""
    newest, answers = Newest(tasks), []
    tasks.start("first", int, lambda answer: newest.drop())
    newest.ask("old", lambda: "old", answers.append)
    tasks._pool.submit(int).result()  # both have ended; their answers come one after the other
    qtbot.waitUntil(lambda: not tasks.busy)
    newest.ask("new", lambda: "new", answers.append)
    qtbot.waitUntil(lambda: "new" in answers)
    assert answers == ["new"]
