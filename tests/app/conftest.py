"""Every test of the app runs without a screen and leaves nothing behind."""

import functools
import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtWidgets import QApplication
from window_fixtures import (
    bench,
    benches,
    collecting,
    collects_in_the_gui_thread,
    folders,
    leaves_nothing_behind,
    shared,
    started,
)

__all__ = [
    "bench",
    "benches",
    "collecting",
    "collects_in_the_gui_thread",
    "folders",
    "leaves_nothing_behind",
    "shared",
    "started",
]


@pytest.fixture
def qtbot(qtbot):
    """Waits for what shall happen as long as a busy machine needs."""
    from window_driver import PATIENCE_S

    for name in ("waitUntil", "waitSignal", "waitSignals", "waitExposed"):
        patient = functools.partial(getattr(qtbot, name), timeout=int(1000 * PATIENCE_S))
        setattr(qtbot, name, patient)
    return qtbot


@pytest.fixture
def grid(qtbot):
    """Four panes of 64 x 64 pixels, shown."""
    from pane_events import PIXEL, picture

    from app.images.grid import PaneGrid
    from app.theme import run_style

    grid = PaneGrid()
    qtbot.addWidget(grid)
    grid.resize(900, 640)
    for seed, key in enumerate(("reference", "fbp", "diffpir", "dc-pnpdp")):
        grid.add(key, key.upper(), run_style(key)).set_image(picture(seed), PIXEL)
    grid.show()
    QApplication.processEvents()
    return grid


@pytest.fixture
def pane(qtbot):
    """One pane with noise of 60 x 80 pixels, shown."""
    from pane_events import picture

    from app.images.pane import ImagePane

    pane = ImagePane()
    qtbot.addWidget(pane)
    pane.resize(402, 430)
    pane.set_image(3 * picture(0, 60, 80) - 120)
    pane.show()
    QApplication.processEvents()
    return pane


@pytest.fixture
def tasks(qapp):
    """Work in a thread whose answers arrive while qtbot waits."""
    import qasync

    from app.tasks import Tasks

    loop = qasync.QEventLoop(qapp)
    tasks = Tasks(loop)
    yield tasks
    tasks.close()
    loop.close()
