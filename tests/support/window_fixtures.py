"""Fixtures of every test with a window: its folders, itself, and that it leaves nothing behind.

A test fails on any Qt warning, and on a thread, timer or window that outlives it.
"""

import gc
import threading
import time
import weakref

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QThread, QTimer, QtMsgType
from PySide6.QtWidgets import QApplication, QWidget

# what the platform, not our code, has to say
HARMLESS = (
    "This plugin does not support",
    "QFontDatabase: Cannot find font directory",
    "propagateSizeHints",
    "Populating font family aliases",
)
QUIET = (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg)
PATIENCE_S = 60.0  # threads and pools may take a moment to end


@pytest.fixture
def started(monkeypatch):
    """Timers and threads that were started from Python since the test began."""
    seen = []

    def watch(kind):
        start = kind.start

        def watched(self, *args, **kwargs):
            seen.append(weakref.ref(self))
            return start(self, *args, **kwargs)

        monkeypatch.setattr(kind, "start", watched)

    watch(QTimer)
    watch(QThread)
    return seen


def _busy(started):
    for reference in started:
        thing = reference()
        if thing is None or not shiboken6.isValid(thing):
            continue
        if thing.isRunning() if isinstance(thing, QThread) else thing.isActive():
            yield repr(thing)


def _new(windows):
    """Windows that were not there before; the lists of combo boxes belong to their window.

    Of every graphics view that it draws, Qt keeps a bare and hidden widget as long as the view
    lives: not ours to close, and of no matter when the view's window was there before.
    """
    for window in QApplication.topLevelWidgets():
        bare = type(window) is QWidget and not window.children() and not window.isVisible()
        if bare and windows:
            continue
        owner = window
        while owner is not None and owner not in windows:
            owner = owner.parentWidget()
        if owner is None:
            yield window


def _settle():
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QCoreApplication.processEvents()


@pytest.fixture(scope="module", autouse=True)
def collects_in_the_gui_thread():
    """Garbage is collected between tests, not when some thread happens to ask for memory.

    A window that has ended leaves Qt objects in cycles of Python: its settings with their timer,
    the timers of its event loop. Python may collect them in the thread that computes for the
    next window, and Qt, handling events meanwhile, then crashes on a timer that is gone.
    """
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture
def collecting():
    """Python collects by itself, as in the program; nothing has been left to it before."""
    gc.enable()
    yield
    gc.disable()


@pytest.fixture(autouse=True)
def leaves_nothing_behind(qapp, qtlog, started, request):
    windows = set(QApplication.topLevelWidgets())
    threads = set(threading.enumerate())
    yield
    deadline = time.monotonic() + PATIENCE_S
    while True:
        _settle()
        left = [f"window {w!r}" for w in _new(windows)]
        left += _busy(started)
        left += [
            f"thread {t.name}" for t in threading.enumerate() if t not in threads and not t.daemon
        ]
        if not left or time.monotonic() > deadline:
            break
        gc.collect()
        time.sleep(0.01)
    for window in list(_new(windows)):  # the next test shall not suffer for it
        window.close()
        window.deleteLater()
    _settle()
    gc.collect(1)  # all that is new: nothing was collected since the test before
    assert not left, f"{request.node.name} left behind: {'; '.join(left)}"
    warnings = [
        record.message
        for record in qtlog.records
        if record.type not in QUIET and not any(text in record.message for text in HARMLESS)
    ]
    assert not warnings, f"{request.node.name}: Qt warned: {'; '.join(warnings)}"


@pytest.fixture
def folders(tmp_path):
    """Settings, presets and runs of this test go below ``tmp_path``."""
    from window_driver import own_folders

    with own_folders(tmp_path):
        yield tmp_path


@pytest.fixture
def benches(folders, qapp):
    """Makes real windows that share the folders of this test; closes those still open."""
    from window_driver import Bench

    made = []

    def build(**options):
        made.append(Bench(**options))
        return made[-1]

    yield build
    for bench in made:
        bench.close()


@pytest.fixture(scope="module")
def shared(qapp, tmp_path_factory):
    """One real window for the tests of a module, and a folder for its data."""
    from window_driver import Bench, own_folders

    folder = tmp_path_factory.mktemp("window")
    with own_folders(folder):
        bench = Bench()
        bench.folder = folder
        yield bench
        bench.close()


@pytest.fixture
def bench(shared):
    """The module's window; no test leaves the next one a run, a message or a drawing."""
    yield shared
    shared.settle()
