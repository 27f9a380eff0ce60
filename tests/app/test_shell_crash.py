"""What escapes becomes a report and one message, and the program goes on."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QThread, QTimer, Slot

from app.shell.crash import MOST_REPORTS, CrashFolder, CrashGuard
from app.shell.log import LogBook

ROOT = Path(__file__).resolve().parents[2]


class Listener(QObject):
    def __init__(self):
        super().__init__()
        self.told = []
        self.threads = []

    @Slot(str, str)
    def hear(self, sentence, report):
        self.told.append((sentence, report))
        self.threads.append(QThread.currentThread())


@pytest.fixture
def folder(tmp_path):
    return CrashFolder(tmp_path / "crashes")


@pytest.fixture
def guard(qapp, folder, tmp_path, capsys):
    book = LogBook(tmp_path / "log")
    book.start()
    made = CrashGuard(book, folder)
    made.listener = Listener()
    made.crashed.connect(made.listener.hear)
    made.install()
    yield made
    made.close()
    book.close()


def fail(name="x"):
    secret = "DOE^JOHN"  # a local variable: must not be in any report
    raise ValueError(f"cannot read /scans/Doe/{name}.dcm" + secret[:0])


def test_a_slot_that_fails_gives_one_report_and_one_message(qtbot, guard, folder):
    logging.getLogger("app.x").info("a step before")
    guard.device = "cpu"
    QTimer.singleShot(0, fail)
    qtbot.waitUntil(lambda: len(guard.listener.told) == 1)
    sentence, report = guard.listener.told[0]
    (path,) = folder.reports()
    assert path.name in sentence
    assert "ValueError" in sentence
    assert path.read_text() == report
    for words in ("Traceback", "in fail", "test_shell_crash.py", "a step before", "Python 3"):
        assert words in report
    assert "Device    cpu" in report
    assert "<data>.dcm" in report
    for secret in ("Doe", "DOE^JOHN", str(Path.home()), str(ROOT)):
        assert secret not in report


def test_a_thread_that_fails_is_told_in_the_gui_thread(qtbot, guard, qapp):
    thread = threading.Thread(target=fail, name="worker-7")
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: bool(guard.listener.told))
    assert guard.listener.threads == [qapp.thread()]
    assert "thread worker-7" in guard.listener.told[0][1]


def test_what_cannot_be_raised_is_reported_without_the_object(qtbot, guard):
    class Patient:
        def __repr__(self):
            return "DOE JOHN"

        def __del__(self):
            raise RuntimeError("while being deleted")

    Patient()
    qtbot.waitUntil(lambda: bool(guard.listener.told))
    assert "while being deleted" in guard.listener.told[0][1]
    assert "DOE JOHN" not in guard.listener.told[0][1]


def test_an_event_loop_tells_of_its_failures(qtbot, guard):
    loop = asyncio.new_event_loop()
    guard.close()
    guard.install(loop)
    loop.call_soon(fail)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    qtbot.waitUntil(lambda: bool(guard.listener.told))
    assert "event loop" in guard.listener.told[0][1]


def test_a_fault_that_repeats_is_told_once_a_second_and_written_once(guard, folder, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("app.shell.crash.time.monotonic", lambda: clock[0])
    for _ in range(100):
        _provoke(guard)
    assert len(guard.listener.told) == 1
    clock[0] = 5.0
    _provoke(guard)
    assert len(guard.listener.told) == 2
    assert len(folder.reports()) == 1


def _provoke(guard):
    try:
        fail()
    except ValueError as error:
        guard.report(error, "a test")


def test_a_folder_that_cannot_be_written_still_gives_the_message(guard, folder):
    folder.path = folder.path / "gone" / "\0"
    _provoke(guard)
    assert "Traceback" in guard.listener.told[0][1]


def test_closing_puts_the_hooks_back_and_leaves_no_file(qapp, folder):
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    guard = CrashGuard(folder=folder)
    guard.install()
    assert sys.excepthook != hooks[0]
    assert len(list(folder.path.iterdir())) == 1
    guard.close()
    assert (sys.excepthook, threading.excepthook, sys.unraisablehook) == hooks
    assert list(folder.path.iterdir()) == []


def test_a_report_of_a_session_that_did_not_end_well_is_offered_once(qapp, folder):
    path = folder.write("Dualscope crash report\nTraceback ...\n")
    assert CrashGuard(folder=folder).last_crash() == path
    assert CrashGuard(folder=folder).last_crash() is None


def test_what_was_told_before_a_clean_end_is_not_offered_again(guard, folder):
    _provoke(guard)
    guard.close()
    assert folder.reports()
    assert CrashGuard(folder=folder).last_crash() is None


def test_a_native_fault_leaves_a_report_for_the_next_start(qapp, folder):
    code = (
        "import faulthandler, sys\n"
        "from pathlib import Path\n"
        "from app.shell.crash import CrashGuard\n"
        "from app.shell.crash import CrashFolder\n"
        "guard = CrashGuard(folder=CrashFolder(Path(sys.argv[1])))\n"
        "guard.install()\n"
        "faulthandler._sigsegv()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-c", code, str(folder.path)], env=environment, cwd=ROOT, check=False
    )
    assert ended.returncode != 0
    path = CrashGuard(folder=folder).last_crash()
    assert path is not None
    text = path.read_text()
    assert "Segmentation fault" in text or "Windows fatal exception" in text
    assert "Versions  Dualscope" in text
    assert str(ROOT) not in text
    assert [path.name for path in folder.path.glob("running-*")] == []
    assert CrashGuard(folder=folder).last_crash() is None


def test_the_file_of_a_window_that_is_still_open_is_left_alone(qapp, folder):
    folder.path.mkdir()
    other = folder.path / "running-1.txt"
    other.write_text("Dualscope crash report\n")
    assert CrashGuard(folder=folder).last_crash() is None
    assert other.exists()


def test_old_reports_make_room(qapp, folder):
    paths = [folder.write(f"{number}") for number in range(MOST_REPORTS + 3)]
    assert set(folder.reports()) == set(paths[3:])
