"""The tour points at what is there, stays inside the window and stands in nobody's way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QCoreApplication, QEvent, QRect, QSize, Qt
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QLineEdit, QMainWindow, QWidget

from app.shell.welcome import EDGE_PX, WelcomeTour, spot_beside


@pytest.fixture
def window(qtbot):
    made = QMainWindow()
    qtbot.addWidget(made)
    body = QWidget()
    row = QHBoxLayout(body)
    made.field = QLineEdit()
    made.parts = [QLabel(f"part {number}") for number in range(3)]
    row.addWidget(made.field)
    for part in made.parts:
        row.addWidget(part, 1)
    made.setCentralWidget(body)
    made.resize(900, 500)
    made.show()
    made.field.setFocus()
    QApplication.processEvents()
    return made


@pytest.fixture
def tour(window):
    steps = [(part, f"Title {n}", f"Words about part {n}.") for n, part in enumerate(window.parts)]
    made = WelcomeTour(window, steps)
    made.ends = []
    made.finished.connect(lambda: made.ends.append(True))
    yield made
    made.end()


def inside(tour):
    return tour.window.rect().contains(tour.bubble.geometry())


def arrow_touches(tour, part):
    """The bubble's arrow is on the side where the part is, and right at it."""
    target = QRect(part.mapTo(tour.window, part.rect().topLeft()), part.size())
    bubble = tour.bubble.geometry()
    return {
        "left": bubble.left() == target.right() + 1,
        "right": bubble.right() == target.left() - 1,
        "top": bubble.top() == target.bottom() + 1,
        "bottom": bubble.bottom() == target.top() - 1,
    }.get(tour.bubble.side, False)


def test_it_goes_from_part_to_part_with_the_keyboard_alone(qtbot, window, tour):
    tour.start()
    seen = []
    while tour.running:
        assert tour.bubble.isAncestorOf(window.focusWidget())
        assert inside(tour)
        seen.append((tour.bubble.title.text(), tour.bubble.count.text()))
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Return)
    assert seen == [("Title 0", "1 of 3"), ("Title 1", "2 of 3"), ("Title 2", "3 of 3")]
    assert tour.ends == [True]
    assert window.focusWidget() is window.field


def test_back_goes_back_and_says_why_it_cannot(qtbot, tour):
    tour.start()
    assert not tour.bubble.backButton.isEnabled()
    assert tour.bubble.backButton.toolTip() == "This is the first step."
    tour.next()
    qtbot.mouseClick(tour.bubble.backButton, Qt.MouseButton.LeftButton)
    assert tour.place == 0


def test_tab_stays_inside_the_bubble(qtbot, window, tour):
    tour.start()
    tour.next()
    seen = []
    for _ in range(4):
        seen.append(window.focusWidget().text())
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
    assert seen == ["Next", "Skip", "Back", "Next"]


@pytest.mark.parametrize("way", ["esc", "skip"])
def test_it_can_be_left_at_any_time(qtbot, window, tour, way):
    tour.start()
    if way == "esc":
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Escape)
    else:
        qtbot.mouseClick(tour.bubble.skipButton, Qt.MouseButton.LeftButton)
    assert tour.ends == [True]
    assert not tour.running


def test_the_window_can_be_used_meanwhile(qtbot, window, tour):
    tour.start()
    assert not tour.bubble.isWindow()
    qtbot.mouseClick(window.field, Qt.MouseButton.LeftButton)
    qtbot.keyClicks(window.field, "typed")
    assert window.field.text() == "typed"
    assert tour.running


def test_the_arrow_points_at_the_part_and_follows_it(qtbot, window, tour):
    tour.start()
    assert arrow_touches(tour, window.parts[0])
    before = tour.bubble.geometry()
    window.resize(1200, 700)
    qtbot.waitUntil(lambda: tour.bubble.geometry() != before)
    assert arrow_touches(tour, window.parts[0])
    window.field.hide()  # another part moves this one
    qtbot.waitUntil(lambda: arrow_touches(tour, window.parts[0]))
    assert inside(tour)


def test_hidden_parts_are_passed_over(qtbot, window, tour):
    window.parts[0].hide()
    tour.start()
    assert tour.bubble.title.text() == "Title 1"
    assert tour.bubble.count.text() == "1 of 2"
    window.parts[1].hide()  # while the bubble is beside it
    qtbot.waitUntil(lambda: tour.bubble.title.text() == "Title 2")
    tour.next()
    assert tour.ends == [True]


def test_without_any_part_it_ends_at_once(window, tour):
    for part in window.parts:
        part.hide()
    tour.start()
    assert tour.ends == [True]


def test_a_part_that_was_deleted_is_passed_over(qtbot, window, tour):
    tour.start()
    window.parts[1].deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    tour.next()
    assert tour.bubble.title.text() == "Title 2"


def test_all_words_of_the_bubble_are_in_sight(window, tour):
    tour.steps[0] = (window.parts[0], "Title", "many words " * 30)
    tour.start()
    text = tour.bubble.text
    assert text.height() >= text.heightForWidth(text.width())


@given(st.integers(-50, 900), st.integers(-50, 500), st.integers(1, 900), st.integers(1, 500))
def test_no_target_drives_the_bubble_out_of_the_window(x, y, width, height):
    room, size = QRect(0, 0, 900, 500), QSize(340, 150)
    target = QRect(x, y, width, height).intersected(room)
    spot = spot_beside(target, size, room)
    assert room.adjusted(EDGE_PX, EDGE_PX, -EDGE_PX, -EDGE_PX).contains(spot.rect)
    if spot.side:
        assert not spot.rect.intersects(target)
        length = size.height() if spot.side in ("left", "right") else size.width()
        assert 0 < spot.tip < length
