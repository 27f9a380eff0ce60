"""Many random actions on the real window while runs go on: nothing breaks or stalls."""

import logging
import os
import random
import time

import pytest
from pane_events import drag, move, stroke
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog
from window_driver import HU, save_phantom, sentences, slowness, until, wheel

from app.images.display import Tool
from app.images.window_level import PRESETS
from app.theme import Theme

ACTIONS = int(os.environ.get("DUALSCOPE_MONKEY", "700"))
SEED = 20
SLOWEST_S = 0.2
# Data are read first, then shown; for another theme Qt restyles every widget in one call.
ALLOWED_S = {"open_data": 1.0, "change_theme": 1.5}
LEFT, MIDDLE, RIGHT = (Qt.MouseButton[n] for n in ("LeftButton", "MiddleButton", "RightButton"))
NONE, CONTROL, SHIFT = (
    Qt.KeyboardModifier[n] for n in ("NoModifier", "ControlModifier", "ShiftModifier")
)
KEYS = [Qt.Key[f"Key_{name}"] for name in "0123456789IRLHVFDS"] + [
    Qt.Key[f"Key_{name}"]
    for name in ("Space", "Up", "Down", "Home", "End", "Plus", "Minus", "Equal", "Escape", "Delete")
]
DIALOGS = ("export", "open", "open folder", "save workspace", "save picture", "help", "log")
DIALOGS += ("about", "shortcuts", "diff", "geometry", "tour", "spectra")


class Monkey:
    """Knows what a person can do; every method is one action, the number how often it comes."""

    def __init__(self, bench, paths, seed):
        self.bench, self.window, self.paths = bench, bench.window, paths
        self.random = random.Random(seed)
        self.actions = {
            self.press_key: 30,
            self.drag_image: 25,
            self.turn_wheel: 15,
            self.move_mouse: 15,
            self.draw_shape: 12,
            self.choose_tool: 8,
            self.choose_preset: 6,
            self.scrub: 12,
            self.use_run_bar: 6,
            self.start: 12,
            self.choose_run: 10,
            self.tick_run: 4,
            self.delete_run: 3,
            self.undo_or_redo: 6,
            self.type_number: 5,
            self.toggle_plane: 5,
            self.compare: 6,
            self.double_click: 3,
            self.fold: 4,
            self.resize: 3,
            self.change_theme: 1,
            self.toggle_view: 4,
            self.dialog: 4,
            self.read_curve: 6,
            self.open_data: 1,
        }

    def act(self):
        """One action with all that follows from it at once; its name and its computing time."""
        names, weights = list(self.actions), list(self.actions.values())
        action = self.random.choices(names, weights)[0]
        before = time.thread_time()
        words = action()
        QApplication.processEvents()
        spent = time.thread_time() - before
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)  # as a real loop does
        return " ".join(filter(None, (action.__name__, words))), spent

    # -- images -----------------------------------------------------------------------------

    def pane(self):
        grid = self.window.grid
        panes = [*grid.image_panes(), *(grid.extra(key) for key in grid.extra_keys())]
        panes += [grid.compare_pane] if grid.compare_pane is not None else []
        shown = [pane for pane in panes if pane.isVisible()]
        return self.random.choice(shown) if shown else None

    def place(self, pane):
        area = pane.view.viewport().rect()
        return self.random.randint(1, area.width() - 1), self.random.randint(1, area.height() - 1)

    def press_key(self):
        if (pane := self.pane()) is not None:
            pane.setFocus()
            QTest.keyClick(pane, self.random.choice(KEYS))

    def drag_image(self):
        if (pane := self.pane()) is not None:
            dx, dy = (self.random.randint(-80, 80) for _ in range(2))
            drag(pane, self.random.choice([LEFT, MIDDLE, RIGHT]), dx, dy, self.place(pane))

    def turn_wheel(self):
        if (pane := self.pane()) is not None:
            wheel(pane, self.random.choice([-2, -1, 1, 2]), self.random.choice([NONE, CONTROL]))

    def move_mouse(self):
        if (pane := self.pane()) is not None:
            move(pane, *self.place(pane), self.random.choice([NONE, SHIFT]))

    def draw_shape(self):
        if (pane := self.pane()) is not None:
            tools = [tool for tool in Tool if tool is not Tool.WINDOW]
            self.window.grid.link.set_tool(self.random.choice(tools))
            stroke(pane, self.place(pane), self.place(pane))

    def double_click(self):
        if (pane := self.pane()) is not None:
            keys = self.random.choice([NONE, CONTROL])
            QTest.mouseDClick(pane.view.viewport(), LEFT, keys, QPoint(*self.place(pane)))

    def choose_tool(self):
        self.random.choice(list(self.window.center.bar.tools.values())).click()

    def choose_preset(self):
        box = self.window.center.bar.window_box
        if box.isEnabled():
            box.activated.emit(self.random.randrange(len(PRESETS) + 1))

    def compare(self):
        bar = self.window.center.bar
        self.random.choice(list(bar.modes.values())).click()
        box = self.random.choice([bar.a, bar.b])
        if box.isVisible() and box.count():
            box.setCurrentIndex(self.random.randrange(box.count()))
            box.activated.emit(box.currentIndex())

    def toggle_plane(self):
        self.random.choice(list(self.window.center.bar.plane_actions.values())).trigger()

    # -- runs -------------------------------------------------------------------------------

    def start(self):
        """Only when idle; the other actions shall meet a run most of the time."""
        solver = self.window.left.solver
        self.random.choice([solver.run, solver.run, solver.both]).click()

    def use_run_bar(self):
        buttons = self.window.run_bar.buttons
        buttons[self.random.choice(["pause", "pause", "step", "finish", "cancel"])].click()

    def scrub(self):
        scrubber = self.window.center.scrubber
        slider = scrubber.slider
        match self.random.randrange(4):
            case 0:
                scrubber.liveButton.click()
            case 1:
                self.random.choice([scrubber.back, scrubber.forth]).click()
            case 2:
                slider.setValue(self.random.randint(slider.minimum(), slider.maximum()))
            case _:
                at = QPoint(self.random.randrange(slider.width()), slider.height() // 2)
                QTest.mouseClick(slider, LEFT, NONE, at)

    def run_row(self):
        table = self.window.right.table
        rows = table.model.rowCount()
        return (table, self.random.randrange(rows)) if rows else (table, None)

    def choose_run(self):
        table, row = self.run_row()
        if row is not None:
            table.table.selectRow(row)

    def tick_run(self):
        table, row = self.run_row()
        if row is not None:
            index = table.model.index(row, 0)
            state = self.random.choice([Qt.CheckState.Checked, Qt.CheckState.Unchecked])
            table.model.setData(index, state, Qt.ItemDataRole.CheckStateRole)

    def delete_run(self):
        self.choose_run()
        self.window.right.table.deleteButton.click()

    def undo_or_redo(self):
        actions = self.window.menus.actions
        actions[self.random.choice(["undo", "undo", "redo"])].trigger()

    def type_number(self):
        self.window.history.set("nfe", self.random.choice([20, 40, 80]))

    # -- window -----------------------------------------------------------------------------

    def fold(self):
        window = self.window
        sections = [*window.left.sections.values(), *window.right.sections.values()]
        button = self.random.choice([*(s.head for s in sections), window.center.plots.foldButton])
        button.click()

    def resize(self):
        self.window.resize(self.random.randint(1280, 1700), self.random.randint(720, 1050))

    def change_theme(self):
        self.window.menus.actions[self.random.choice(["theme light", "theme dark"])].trigger()

    def toggle_view(self):
        names = ["left", "right", "plots", "mask", "bars", "invert", "fit", "rotate", "flip"]
        names += ["layout reading", "layout compare", "layout research", "next images"]
        self.window.menus.actions[self.random.choice(names)].trigger()

    def dialog(self):
        """Open one, let it be drawn, close it."""
        before = {w for w in QApplication.topLevelWidgets() if w.isVisible()}
        name = self.random.choice(DIALOGS)
        self.window.menus.actions[name].trigger()
        QApplication.processEvents()
        tour = getattr(self.window, "tour", None)
        if tour is not None and tour.running:
            tour.end()
        for widget in QApplication.topLevelWidgets():
            if widget.isVisible() and widget not in before and isinstance(widget, QDialog):
                widget.reject()
            elif widget.isVisible() and widget not in before:
                widget.close()
        return name

    def read_curve(self):
        plot = self.random.choice(self.window.center.plots.plots)
        if plot.isVisible():
            area = plot.viewport().rect()
            at = QPoint(self.random.randrange(area.width()), self.random.randrange(area.height()))
            QTest.mouseMove(plot.viewport(), at)
            QTest.keyClick(plot, self.random.choice([Qt.Key.Key_Left, Qt.Key.Key_Right]))

    def open_data(self):
        self.window.data.open(*self.random.choice(self.paths))


@pytest.fixture
def theme(qapp):
    """Taken back afterwards: the look belongs to the whole application."""
    palette, style = qapp.palette(), qapp.style().objectName()
    made = Theme(qapp, "dark")
    yield made
    qapp.setStyleSheet("")
    qapp.setPalette(palette)
    qapp.setStyle(style)
    made.deleteLater()


def test_random_actions_during_runs_neither_break_nor_stall(
    theme, benches, folders, collecting, caplog
):
    bench = benches(theme=theme)
    paths = [
        (str(save_phantom(folders)), HU),
        (str(save_phantom(folders, 4, "slices.npy")), HU),
        ("demo:mri", None),
    ]
    bench.open(*paths[1])
    bench.fill(prior="gaussian", nfe=40, cg_iterations=2)
    monkey = Monkey(bench, paths, SEED)
    print(f"seed {SEED}")
    allowed = slowness()
    slowest: dict[str, float] = {}
    late: dict[str, list[str]] = {}
    busy = 0
    for number in range(ACTIONS):
        name, seconds = monkey.act()
        slowest[name] = max(slowest.get(name, 0.0), seconds)
        busy += bench.window.runs.busy
        if seconds > allowed * ALLOWED_S.get(name, SLOWEST_S):
            late.setdefault(name, []).append(f"action {number}, {name}: {1e3 * seconds:.0f} ms")
    order = sorted(slowest.items(), key=lambda item: -item[1])
    print(", ".join(f"{name} {1e3 * seconds:.0f} ms" for name, seconds in order))
    print(f"{len(bench.runs())} runs; one was going on during {busy} of {ACTIONS} actions")
    assert busy > ACTIONS / 3
    # What is slow is slow again; once, it was the machine, whose other work slows this, too.
    again = [words for words in late.values() if len(words) > 1]
    assert not again, f"seed {SEED}: {again}"
    bench.window.runs.cancel()
    until(lambda: not bench.window.runs.busy, what="the last run")
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    faults = [words for words in sentences(bench.window) if "fault" in words]
    assert not errors + faults, f"seed {SEED}"
