"""The log keeps what happened and nothing about patients."""

import logging
import threading
import warnings

import pytest
from PySide6.QtCore import Qt, qWarning
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication

from app.shell import log_window
from app.shell.log import FILE_NAME, KEPT_LINES, LogBook
from app.shell.log_window import LEVEL, TEXT, LogWindow
from app.shell.privacy import clean

log = logging.getLogger("app.something")


@pytest.fixture
def book(qapp, tmp_path):
    made = LogBook(tmp_path / "log")
    made.start()
    yield made
    made.close()


@pytest.fixture
def window(qtbot, tmp_path, monkeypatch):
    """Open, on a book that does not hear what the platform has to say about windows."""
    monkeypatch.setattr("app.shell.log.qInstallMessageHandler", lambda handler: None)
    book = LogBook(tmp_path / "log")
    book.start()
    made = LogWindow(book)
    qtbot.addWidget(made)
    made.show()
    yield made
    book.close()


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Cannot write /data/Mary Ann Doe/x.dcm: full.", "Cannot write <data>.dcm: full."),
        ("Cannot read /data/Mary Ann Doe: nothing", "Cannot read <data>: nothing"),
        ("Cannot read /data/J.Doe Ann.", "Cannot read <data>."),
        ('File "/home/jane/my code/app/x.py", line 3', 'File "x.py", line 3'),
        ("at ~/code/y.py:33: UserWarning", "at y.py:33: UserWarning"),
        (r"C:\Users\Jane Doe\scan 1\IM.dcm failed", "<data>.dcm failed"),
        (r"\\server\share\Doe\a.nii.gz", "<data>.nii.gz"),
        ("[Errno 2] No such file: '/x/Doe/a b.dcm'", "[Errno 2] No such file: '<data>.dcm'"),
        ("""open("/data/O'Brien/x.dcm")""", 'open("<data>.dcm")'),
        ("/data/Doe (John)/x.dcm bad", "<data>.dcm bad"),
        ("Doe/John/scan.h5 gone", "<data>.h5 gone"),
        ("Patient DOE^JOHN^A", "Patient <name>"),
        ("and/or 3/4 mm/s, sigma^2, A^T, a / b", "and/or 3/4 mm/s, sigma^2, A^T, a / b"),
        ("see https://example.org/page", "see https://example.org/page"),
    ],
)
def test_paths_and_names_of_patients_are_taken_out(text, cleaned):
    assert clean(text) == cleaned


def test_lines_are_in_memory_and_after_closing_in_the_file(book):
    log.info("CG took %d steps", 20)
    log.warning("read /scans/Doe^John/Doe.dcm")
    try:
        raise ValueError("no such thing in /scans/Doe/x.npy")
    except ValueError:
        log.exception("failed")
    book.close()
    texts = [line.text for line in book.last(3)]
    assert texts[0] == "CG took 20 steps"
    assert texts[1] == "read <data>.dcm"
    assert "Traceback" in texts[2]
    written = (book.folder / FILE_NAME).read_text()
    assert "INFO app.something: CG took 20 steps" in written
    assert "no such thing in <data>.npy" in written
    for text in (written, *texts):
        assert "Doe" not in text
        assert "/" not in text.replace("app/", "")


def test_warnings_of_python_and_messages_of_qt_are_lines_too(book):
    warnings.warn("an odd value", UserWarning, stacklevel=1)
    qWarning("a word from Qt")
    by_source = {line.source: line for line in book.last(2)}
    assert "an odd value" in by_source["py.warnings"].text
    assert by_source["qt"].text == "a word from Qt"
    assert by_source["qt"].level == logging.WARNING


def test_closing_leaves_everything_as_it_was(qapp, tmp_path):
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    book = LogBook(tmp_path)
    book.start()
    book.close()
    book.close()
    assert (root.handlers, root.level) == (handlers, level)
    log.error("after the end")
    assert book.last(1) == []


def test_only_the_last_lines_stay_in_memory_and_the_file_rotates(qapp, tmp_path, monkeypatch):
    monkeypatch.setattr("app.shell.log.FILE_BYTES", 20_000)
    book = LogBook(tmp_path)
    book.start()
    for number in range(KEPT_LINES + 10):
        log.info("line %d", number)
    book.close()
    lines = book.after(-1)
    assert len(lines) == KEPT_LINES
    assert lines[0].text == "line 10"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        FILE_NAME,
        f"{FILE_NAME}.1",
        f"{FILE_NAME}.2",
    ]


def test_without_a_folder_the_lines_are_still_in_memory(qapp, tmp_path):
    (tmp_path / "log").write_text("in the way")
    book = LogBook(tmp_path / "log")
    book.start()
    log.info("still here")
    book.close()
    assert book.problem.startswith("There is no log file")
    assert book.last(1)[0].text == "still here"


def test_lines_from_other_threads_appear_in_the_open_window(qtbot, window):
    thread = threading.Thread(target=lambda: log.error("from a thread"))
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: window.model.rowCount() == 1)
    assert window.model.index(0, TEXT).data() == "app.something: from a thread"
    assert window.model.index(0, LEVEL).data() == "✖ error"


def test_a_closed_window_takes_no_lines_and_shows_them_when_it_comes_back(qtbot, window):
    window.close()
    log.info("meanwhile")
    QApplication.processEvents()
    assert window.model.rowCount() == 0
    window.show()
    assert window.model.rowCount() == 1


def test_the_level_hides_what_is_less_serious(qtbot, window):
    log.info("a")
    log.warning("b")
    log.error("c")
    window.levels.setFocus()
    qtbot.keyClick(window.levels, Qt.Key.Key_Down)
    assert [line.text for line in window.model.lines] == ["b", "c"]
    log.info("d")
    log.error("e")
    qtbot.waitUntil(lambda: window.model.rowCount() == 3)
    qtbot.keyClick(window.levels, Qt.Key.Key_Home)
    assert window.model.rowCount() == 5


def test_find_goes_round_and_says_when_there_is_nothing(qtbot, window):
    for text in ("one fish", "two", "red fish"):
        log.info(text)
    qtbot.waitUntil(lambda: window.model.rowCount() == 3)
    qtbot.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    line = window.finder.line
    qtbot.keyClicks(line, "FISH")
    rows = []
    for _ in range(3):
        qtbot.keyClick(line, Qt.Key.Key_Return)
        rows.append(window.table.currentIndex().row())
    assert rows == [0, 2, 0]
    qtbot.keyClick(line, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert window.table.currentIndex().row() == 2
    qtbot.keyClicks(line, "!")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert window.finder.told.text() == "not found"


def test_copy_takes_the_selected_lines_or_all(qtbot, window):
    log.info("first")
    log.info("second")
    qtbot.waitUntil(lambda: window.model.rowCount() == 2)
    qtbot.mouseClick(window.copyButton, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text().count("\n") == 1
    window.table.setFocus()
    window.table.selectRow(1)
    qtbot.keyClick(window.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().endswith("app.something: second")


def test_the_window_shows_no_more_lines_than_are_kept(qtbot, window, monkeypatch):
    monkeypatch.setattr(log_window, "KEPT_LINES", 5)
    for number in range(8):
        log.info("%d", number)
    qtbot.waitUntil(lambda: bool(window.model.lines) and window.model.lines[-1].text == "7")
    assert [line.text for line in window.model.lines] == ["3", "4", "5", "6", "7"]


def test_the_folder_opens_in_the_file_manager(qtbot, window, monkeypatch):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    qtbot.mouseClick(window.folderButton, Qt.MouseButton.LeftButton)
    assert opened == [str(window.book.folder)]
