"""Errors stay until they are read, notices go, and nobody is interrupted."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QCursor, QGuiApplication
from PySide6.QtWidgets import QApplication, QLineEdit, QMainWindow, QVBoxLayout, QWidget

from app.shell import messages as message_queue
from app.shell.crash import DetailsDialog
from app.shell.messages import MOST, Messages


class Greedy(QLineEdit):
    """Has a use of its own for Esc while it holds words."""

    def keyPressEvent(self, event):
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
            event.accept()
        elif event.key() == Qt.Key.Key_Escape:
            event.ignore()
        else:
            super().keyPressEvent(event)


@pytest.fixture
def window(qtbot):
    # where another test left the pointer, a notice would wait for its reader
    QCursor.setPos(QGuiApplication.primaryScreen().geometry().bottomRight())
    made = QMainWindow()
    qtbot.addWidget(made)
    body = QWidget()
    column = QVBoxLayout(body)
    made.messages = Messages(made)
    made.field = Greedy()
    column.addWidget(made.messages)
    column.addWidget(made.field)
    made.setCentralWidget(body)
    made.resize(640, 200)
    made.show()
    made.field.setFocus()
    QApplication.processEvents()
    yield made
    made.messages.queue.clear()


@pytest.fixture
def messages(window):
    return window.messages


def test_there_is_no_bar_without_a_message(messages):
    assert messages.isHidden()


def test_an_error_stays_and_leaves_the_focus_alone(qtbot, window, messages, monkeypatch):
    messages.error("This went wrong.", "because")
    assert not messages.queue._timer.isActive(), "its time runs out"
    QApplication.processEvents()
    assert messages.isVisible()
    assert messages.sentence.text() == "This went wrong."
    assert messages.sentence.accessibleName() == "Error: This went wrong."
    assert window.field.hasFocus()


def test_a_notice_goes_by_itself(qtbot, messages):
    assert messages.queue._timer.interval() == message_queue.NOTICE_MS == 6000
    messages.queue._timer.setInterval(20)
    messages.notice("Copied.")
    assert messages.isVisible()
    assert not messages.detailsButton.isVisible()
    qtbot.waitUntil(messages.isHidden)


def test_a_notice_under_the_pointer_stays(qtbot, messages):
    messages.notice("Read me slowly.")
    qtbot.mouseMove(messages, QPoint(20, 8))
    messages.queue.hold(True)
    assert not messages.queue._timer.isActive(), "its time runs out"
    assert messages.isVisible()
    messages.queue._timer.setInterval(0)
    messages.queue.hold(False)
    qtbot.waitUntil(messages.isHidden)


def test_a_notice_passes_over_an_error_that_comes_back_after_it(qtbot, messages):
    messages.queue._timer.setInterval(20)
    messages.error("Serious.")
    messages.notice("By the way.")
    assert messages.sentence.text() == "By the way."
    qtbot.waitUntil(lambda: messages.sentence.text() == "Serious.")
    assert not messages.queue._timer.isActive(), "its time runs out"
    assert messages.isVisible()


def test_several_wait_with_a_count_and_come_one_by_one(qtbot, messages):
    for name in ("one", "two", "three"):
        messages.error(name)
    assert messages.count.text() == "+2 more"
    seen = []
    while messages.isVisible():
        seen.append(messages.sentence.text())
        qtbot.mouseClick(messages.dismissButton, Qt.MouseButton.LeftButton)
    assert seen == ["three", "two", "one"]


def test_identical_ones_are_counted_not_repeated(messages):
    for _ in range(3):
        messages.error("Again.", "why")
    messages.error("Other.")
    messages.error("Again.", "newest why")
    assert messages.sentence.text() == "Again.  (4 times)"
    assert messages.count.text() == "+1 more"
    assert messages.queue.current.details == "newest why"


def test_a_flood_does_not_fill_the_memory(messages):
    for number in range(3 * MOST):
        messages.error(f"error {number}")
    assert len(messages.queue.messages) == MOST
    assert messages.sentence.text() == f"error {3 * MOST - 1}"


def test_esc_dismisses_when_nothing_else_has_a_use_for_it(qtbot, window, messages):
    messages.error("one")
    window.field.setText("words")
    qtbot.keyClick(window.field, Qt.Key.Key_Escape)
    assert window.field.text() == ""
    assert messages.isVisible()
    qtbot.keyClick(window.field, Qt.Key.Key_Escape)
    assert messages.isHidden()


def test_esc_dismisses_from_within_the_bar_one_at_a_time(qtbot, messages):
    messages.error("one", "details")
    messages.error("two", "details")
    messages.detailsButton.setFocus()
    qtbot.keyClick(messages.detailsButton, Qt.Key.Key_Escape)
    assert messages.sentence.text() == "one"


def test_details_open_beside_the_work_and_can_be_copied(qtbot, window, messages):
    messages.error("This went wrong.", "Traceback\n  line 3")
    messages.detailsButton.setFocus()
    qtbot.keyClick(messages.detailsButton, Qt.Key.Key_Space)
    (dialog,) = window.findChildren(DetailsDialog)
    assert dialog.isVisible()
    assert not dialog.isModal()
    qtbot.mouseClick(dialog.copyButton, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "This went wrong.\n\nTraceback\n  line 3"
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.findChildren(DetailsDialog))
    assert messages.isVisible()


def test_screen_readers_are_told(messages, monkeypatch):
    spoken = []
    monkeypatch.setattr(
        QAccessible, "updateAccessibility", lambda event: spoken.append(event.message())
    )
    messages.error("Spoken.")
    assert spoken == ["Spoken."]


def test_a_long_sentence_wraps_and_is_not_cut_off(qtbot, window, messages):
    messages.error("a sentence of many words " * 12, "details")
    QApplication.processEvents()
    label = messages.sentence
    assert label.height() >= label.heightForWidth(label.width())
    assert messages.dismissButton.geometry().right() <= messages.width()


def test_markup_in_a_sentence_is_shown_as_it_is(messages):
    messages.error("<b>file</b> & more")
    assert messages.sentence.textFormat() == Qt.TextFormat.PlainText
