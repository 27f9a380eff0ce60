"""The real window with the real engine, in folders of its own, driven by events.

`Bench` builds and closes it as `app.main` does. A window may serve a whole module; `settled`
then leaves nothing of one test to the next.
"""

import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
import pytest
import qasync
from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QCursor, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.background import Mailbox
from app.shell.settings import AppSettings
from app.tasks import Tasks
from app.window import MainWindow
from engine.files.folders import state_folder

HU = {"unit": "hu"}
SIDE = 64
PATIENCE_S = 600.0  # only ends what would hang: a machine may be busy with other things
USUAL_S = 0.004  # for the work of `slowness`, where the limits were measured
LONG = 100_000  # iterations of a run that a test ends itself, however fast the machine


def pause(milliseconds):
    """Let the window live on; unlike QTest.qWait, worker threads get the interpreter, too."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def until(condition, seconds=PATIENCE_S, what=""):
    """Let events happen until ``condition`` holds; fails when it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain for {what or condition}"
        pause(5)


@contextmanager
def held(denoiser, reached):
    """Before its next step after ``reached`` a job of ``denoiser`` stands until the block ends.

    However slow the screen and however fast the machine, the job is going on inside the block.
    """
    denoise, released = denoiser.__call__, threading.Event()

    def brake(*args):
        if reached():
            assert released.wait(PATIENCE_S), "nobody let the job go on"
        return denoise(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(denoiser, "__call__", brake)
        try:
            yield
        finally:
            released.set()


@contextmanager
def unhurried():
    """Whoever computes waits until the screen has taken each of its frames: it misses none."""
    put = Mailbox.put_frame

    def patient(mailbox, key, frame):
        put(mailbox, key, frame)
        if threading.current_thread() is not threading.main_thread():
            deadline = time.monotonic() + PATIENCE_S
            while mailbox.has_frame(key):
                assert time.monotonic() < deadline, "nobody takes the frame"
                time.sleep(0.001)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Mailbox, "put_frame", patient)
        yield


def stands_at(presenter, run_id, seconds=PATIENCE_S):
    """The iteration at which a paused run stands, from the worker itself.

    It is asked for another plane: the answer comes when the step it was in has ended, and no
    step begins any more.
    """
    frames, shown = [], presenter.worker.shown
    asked = shown.wanted ^ {"residual"}

    def take(name, frame):
        if name == run_id and ("residual" in frame.planes) == ("residual" in asked):
            frames.append(frame.k)

    presenter.frame.connect(take)
    presenter.show(asked, shown.sample)
    until(lambda: frames, seconds, "the paused run to answer")
    presenter.frame.disconnect(take)
    return frames[-1]


def slowness():
    """How many times as long as usual this machine computes now; limits of computing grow by it."""
    spent = []
    for _ in range(9):
        before = time.thread_time()
        sum(len(str(number)) for number in range(50_000))
        spent.append(time.thread_time() - before)
    return max(1.0, median(spent) / USUAL_S)


def phantom(seed=0):
    """A disc of tissue with a bone, in HU; no two of them alike."""
    rows, columns = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    image = np.full((SIDE, SIDE), -1000.0, dtype=np.float32)
    image[rows**2 + columns**2 < 0.8] = 40 + 5 * seed
    image[(rows - 0.3) ** 2 + (columns + 0.1 * seed) ** 2 < 0.05] = 400
    return image


def save_phantom(folder, slices=1, name="phantom.npy"):
    path = Path(folder) / name
    images = [phantom(number) for number in range(slices)]
    np.save(path, np.stack(images) if slices > 1 else images[0])
    return path


@contextmanager
def own_folders(folder):
    """Settings, presets and runs go below ``folder``."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CONFIG", "STATE"):
            place = Path(folder) / name.lower()
            place.mkdir(exist_ok=True)
            patch.setenv(f"DUALSCOPE_{name}", str(place))
        yield


class Bench:
    """One window from its start to its end.

    Without ``recorded`` runs live in memory only; ``loaded`` waits for the engine.
    """

    def __init__(self, theme=None, recorded=True, loaded=True):
        assert "DUALSCOPE_CONFIG" in os.environ, "a window of a test needs folders of its own"
        self.loop = qasync.QEventLoop(QApplication.instance())
        self.tasks = Tasks(self.loop)
        settings = AppSettings(tasks=self.tasks)
        path = state_folder() / "runs" if recorded else None
        self.window = MainWindow(self.tasks, settings, theme, path)
        self.ready, self.gone, self.ended = [], [], False
        self.window.ready.connect(lambda: self.ready.append(True))
        self.window.gone.connect(lambda: self.gone.append(True))
        self.window.resize(1600, 1000)
        self.window.show()
        activate(self.window)
        if loaded:
            self.window.load_engine()
            until(lambda: self.ready, what="the engine")

    # -- data and runs ----------------------------------------------------------------------

    def open(self, path, options=None):
        """Open data as a dialog's answer would; wait until they are on the screen."""
        before = self.window.setup.data
        self.window.data.open(str(path), options)
        self.wait_opened(before)

    def wait_opened(self, before=None):
        until(lambda: self.window.setup.data is not before, what="the data")
        until(lambda: self.pane("reference").image is not None, what="the picture of the data")
        self.wait_quiet()

    def pane(self, key):
        self.window.panes.follow()
        return self.window.grid.pane(key)

    def runs(self):
        return list(self.window.store)

    def run(self, method="dc-pnpdp", prior="tv", nfe=4, **settings):
        """One run of a method with the panel's fields; the entry when it has ended."""
        self.fill(method=method, prior=prior, nfe=nfe, cg_iterations=3, **settings)
        click(self.window.left.solver.run)
        self.wait_idle()
        return self.runs()[-1]

    def fill(self, **values):
        """Put values into the solver's fields, all in one step."""
        self.window.history.set_many(values)

    def wait_idle(self):
        until(lambda: self.window.runs.state == "idle", what="the run")

    def wait_quiet(self):
        """Nothing is read, simulated or written any more."""
        timers = (self.window.setup._timer, self.window.settings._timer)
        until(
            lambda: not self.tasks.busy and not any(timer.isActive() for timer in timers),
            what="the tasks",
        )

    # -- ending -----------------------------------------------------------------------------

    def settle(self):
        """Between two tests on one window: nothing runs, nothing is said, nothing is drawn."""
        window = self.window
        if window.runs.busy:
            window.runs.cancel()
            self.wait_idle()
        window.messages.queue.clear()
        window.grid.link.measurements.clear()
        self.wait_quiet()
        until(lambda: not window.center.plots._timer.isActive(), what="the plots")
        window.grid.inspector.stop()

    def close(self):
        """As a person does, by the cross."""
        if self.ended:
            return
        self.window.messages.queue.clear()
        self.window.close()
        until(lambda: self.gone, what="the window to go")
        self.end()

    def end(self):
        """What `app.main` does when the window has gone."""
        self.ended = True
        QCursor.setPos(self.window.screen().geometry().bottomRight())  # out of others' way
        self.tasks.close()
        if self.window.context.run_library is not None:
            self.window.context.run_library.close()
        self.window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.processEvents()
        self.loop.close()


# -- hands ----------------------------------------------------------------------------------


def activate(window):
    """Without a screen a list that closes gives the keyboard to nobody."""
    window.activateWindow()
    assert QTest.qWaitForWindowActive(window)


def click(widget, modifiers=Qt.KeyboardModifier.NoModifier, at=None):
    where = at if at is not None else widget.rect().center()
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, modifiers, where)


def press(widget, key, modifiers=Qt.KeyboardModifier.NoModifier):
    widget.setFocus()
    QTest.keyClick(widget, key, modifiers)


def retype(line, text):
    """Replace the text of a field, letter by letter."""
    line.setFocus()
    line.selectAll()
    if text:
        QTest.keyClicks(line, text)
    else:
        QTest.keyClick(line, Qt.Key.Key_Delete)


def choose(box, words):
    """Pick an entry of a combo box with the keyboard; ``words`` begin it."""
    names = [box.itemText(row) for row in range(box.count())]
    row = next(row for row, name in enumerate(names) if name.startswith(words))
    box.setFocus()
    box.showPopup()
    box.view().setCurrentIndex(box.model().index(row, box.modelColumn(), box.rootModelIndex()))
    QTest.keyClick(box.view(), Qt.Key.Key_Return)
    assert box.currentText().startswith(words)
    activate(box.window())


def wheel(pane, notches, modifiers=Qt.KeyboardModifier.NoModifier):
    """Towards the user is negative."""
    target = pane.view.viewport()
    at = QPointF(target.rect().center())
    event = QWheelEvent(
        at,
        QPointF(target.mapToGlobal(at)),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(target, event)


def sentences(window):
    """What the message bar has to say, the newest last."""
    return [message.sentence for message in window.messages.queue.messages]
