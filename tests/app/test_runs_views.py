"""The run bar, the scrubber and the table, under the mouse and the keyboard."""

import numpy as np
import pytest
from PySide6.QtCore import QItemSelectionModel, QPoint, Qt
from PySide6.QtWidgets import QDialog, QLineEdit

from app.forms.choices import load_choices
from app.runs.bar import RunBar, left_text, times_text
from app.runs.presenter import RunPresenter
from app.runs.progress import Progress
from app.runs.scrubber import Scrubber
from app.runs.store import RunStore
from app.runs.table import RunsTable
from app.runs.table_model import NOTE, PSNR, RUN, TIME


@pytest.fixture
def store(qapp):
    made = RunStore()
    for n, (solver, psnr) in enumerate([("fbp", 21.8), ("diffpir", 33.9), ("dc-pnpdp", 36.4)]):
        job = {"solver": solver, "settings": {"nfe": 20 + n}, "seed": 0}
        made.create(f"run{n}", job, solver)
        grow(made, f"run{n}", 20)
        made.change(f"run{n}", status="done", metrics={"psnr": psnr}, seconds=1.5)
    return made


def grow(store, run_id, until, total=20):
    entry = store.get(run_id)
    first = len(entry.history) + 1
    for k in range(first, until + 1):
        entry.snapshots.add(k, 1 / k, np.full((1, 4, 4), k, np.float32))
    store.grow((run_id, {"k": k, "K": total, "nfe": k}) for k in range(first, until + 1))


@pytest.fixture
def bar(qtbot):
    presenter = RunPresenter(RunStore())
    made = RunBar(presenter)
    qtbot.addWidget(made)
    made.show()
    yield made
    presenter.close()


def enabled(bar):
    return {name for name, button in bar.buttons.items() if button.isEnabled()}


@pytest.mark.parametrize(
    ("state", "buttons"),
    [
        ("idle", set()),
        ("preparing", {"pause", "cancel"}),
        ("running", {"pause", "step", "finish", "cancel"}),
        ("paused", {"pause", "step", "finish", "cancel"}),
        ("ending", set()),
    ],
)
def test_buttons_act_when_they_can_and_say_why_when_they_cannot(bar, state, buttons):
    bar.show_state(state)
    assert enabled(bar) == buttons
    for name, button in bar.buttons.items():
        if name not in buttons:
            assert "running" in button.toolTip() or "run " in button.toolTip()
    assert bar.buttons["pause"].text() == ("Resume" if state == "paused" else "Pause")
    assert not bar.buttons["pause"].shortcut().isEmpty()


def test_the_bar_shows_progress_and_times_with_units(bar):
    bar.show_state("running")
    ms = {"data": 38.2, "sh": 1.04, "denoiser": 94.4}
    bar.show_progress(Progress("DC-PnPDP 23/50", 0.46, 3.2, ms))
    assert bar.status.text() == "DC-PnPDP 23/50"
    assert bar.bar.value() == 460
    assert bar.left.text() == "3 s left"
    assert bar.times.text() == "data 38 ms  SH 1.0 ms  denoise 94 ms"


def test_the_bar_does_not_move_its_buttons_when_the_numbers_change(bar):
    bar.resize(1100, 40)
    bar.show_state("running")
    places = set()
    for seconds, data in ((3.0, 3.0), (59.0, 388.0), (1200.0, 12.0)):
        bar.show_progress(
            Progress("DC-PnPDP 23/50", 0.4, seconds, {"data": data, "sh": 1, "denoiser": data})
        )
        bar.layout().activate()
        places.add((bar.buttons["pause"].x(), bar.left.x()))
    bar.show_state("paused")
    bar.layout().activate()
    places.add((bar.buttons["pause"].x(), bar.left.x()))
    assert len(places) == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.2, "< 1 s left"),
        (40, "40 s left"),
        (600, "10 min left"),
        (7200, "2.0 h left"),
    ],
)
def test_time_left_reads_naturally(seconds, text):
    assert left_text(seconds) == text


def test_no_times_no_text():
    assert times_text({}) == ""


@pytest.fixture
def scrubber(qtbot, store):
    made = Scrubber(store)
    qtbot.addWidget(made)
    made.resize(600, 40)
    made.show()
    return made


def test_the_scrubber_follows_until_touched_then_stays_and_end_follows_again(
    qtbot, store, scrubber
):
    store.create("live", {}, "live")
    scrubber.set_run("live")
    assert not scrubber.slider.isEnabled()
    grow(store, "live", 8)
    assert scrubber.slider.value() == 8
    assert scrubber.text.text() == "k = 8/20  σ 0.125"

    chosen = []
    scrubber.chosen.connect(lambda *values: chosen.append(values))
    qtbot.keyClick(scrubber.slider, Qt.Key.Key_Left)
    assert not scrubber.live
    assert chosen[-1][:2] == ("live", 7)
    assert (chosen[-1][3] == 7).all()
    grow(store, "live", 15)
    assert scrubber.slider.value() == 7
    assert scrubber.text.text().startswith("k = 7/20")

    qtbot.keyClick(scrubber.slider, Qt.Key.Key_End)
    assert scrubber.live
    assert chosen[-1][1] == 15
    grow(store, "live", 18)
    assert scrubber.slider.value() == 18


def test_the_step_buttons_go_to_kept_iterations(qtbot, store, scrubber):
    scrubber.set_run("run1")
    chosen = []
    scrubber.chosen.connect(lambda run_id, k, sigma, images: chosen.append(k))
    qtbot.mouseClick(scrubber.back, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(scrubber.back, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(scrubber.forth, Qt.MouseButton.LeftButton)
    assert chosen == [19, 18, 19]
    qtbot.mouseClick(scrubber.liveButton, Qt.MouseButton.LeftButton)
    assert scrubber.live
    assert scrubber.liveButton.isChecked()


def test_dragging_the_slider_beyond_what_is_computed_shows_the_newest(qtbot, store, scrubber):
    store.create("live", {}, "live")
    scrubber.set_run("live")
    grow(store, "live", 8)
    chosen = []
    scrubber.chosen.connect(lambda run_id, k, sigma, images: chosen.append(k))
    scrubber.slider.setValue(19)
    assert chosen == [8]


def test_the_scrubber_lets_go_of_a_deleted_run(store, scrubber):
    scrubber.set_run("run1")
    store.remove("run1")
    assert scrubber.run_id is None
    assert not scrubber.slider.isEnabled()
    assert scrubber.slider.toolTip().startswith("Nothing to go back to")


@pytest.fixture
def table(qtbot, store):
    made = RunsTable(store)
    qtbot.addWidget(made)
    made.resize(480, 240)
    made.show()
    return made


def test_names_of_runs_are_seen_whole(table, store):
    for n, label in enumerate(["DC-PnPDP"] * 9 + ["FDK, all of the views"], 3):
        store.create(f"run{n}", {"solver": "dc-pnpdp", "settings": {}, "seed": 0}, label)
        assert table.table.columnWidth(RUN) >= table.table.sizeHintForColumn(RUN), label


def click_row(qtbot, table, row, modifier=Qt.KeyboardModifier.NoModifier):
    cell = table.table.visualRect(table.model.index(row, PSNR)).center()
    qtbot.mouseClick(
        table.table.viewport(), Qt.MouseButton.LeftButton, modifier, QPoint(cell.x(), cell.y())
    )


def cell(table, row, column):
    return table.model.index(row, column).data()


def test_the_newest_run_is_on_top_with_its_figures(table):
    assert cell(table, 0, RUN) == "#3 dc-pnpdp"
    assert cell(table, 0, PSNR) == "36.40"
    assert cell(table, 2, PSNR) == "21.80"
    assert cell(table, 0, TIME) == "1.5"


def test_selecting_a_run_shows_it(qtbot, table):
    shown = []
    table.shown.connect(shown.append)
    click_row(qtbot, table, 1)
    assert shown == ["run1"]
    qtbot.keyClick(table.table, Qt.Key.Key_Down)
    assert shown == ["run1", "run0"]


def test_two_runs_are_compared_with_the_older_on_the_left(qtbot, table):
    load_choices()  # the labels of the methods' settings come with the engine
    assert not table.compareButton.isEnabled()
    click_row(qtbot, table, 0)
    assert "Select exactly two" in table.compareButton.toolTip()
    click_row(qtbot, table, 1, Qt.KeyboardModifier.ControlModifier)
    qtbot.mouseClick(table.compareButton, Qt.MouseButton.LeftButton)
    (dialog,) = table.findChildren(QDialog)
    assert not dialog.isModal()
    shown = dialog.view.table
    rows = {
        shown.item(r, 0).text(): (shown.item(r, 1).text(), shown.item(r, 2).text())
        for r in range(shown.rowCount())
    }
    assert rows == {
        "Method": ("diffpir", "dc-pnpdp"),
        "NFE (denoiser calls)": ("21", "22"),
        "How it ended": ("done, 20 of 21 calls", "done, 20 of 22 calls"),
    }
    assert "differ in 3 points" in dialog.view.summary.text()
    dialog.close()


def test_deleting_is_undone_in_the_same_place(qtbot, store, table):
    click_row(qtbot, table, 0)
    click_row(qtbot, table, 1, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(table.table, Qt.Key.Key_Delete)
    assert [entry.run_id for entry in store] == ["run0"]
    assert table.model.rowCount() == 1
    table.undo.undo()
    assert [entry.run_id for entry in store] == ["run0", "run1", "run2"]
    assert cell(table, 0, RUN) == "#3 dc-pnpdp"
    table.undo.redo()
    assert len(store) == 1


def test_a_running_run_cannot_be_deleted(qtbot, store, table):
    store.create("live", {}, "live")
    click_row(qtbot, table, 0)
    assert not table.deleteButton.isEnabled()
    assert "ended" in table.deleteButton.toolTip()
    qtbot.keyClick(table.table, Qt.Key.Key_Delete)
    assert "live" in store


def test_a_note_is_written_in_place(qtbot, store, table):
    index = table.model.index(0, NOTE)
    table.table.setCurrentIndex(index)
    table.table.selectionModel().select(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
    qtbot.keyClick(table.table, Qt.Key.Key_F2)
    editor = table.table.viewport().findChild(QLineEdit)
    qtbot.keyClicks(editor, "sharper")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: store.get("run2").note == "sharper")
    assert cell(table, 0, NOTE) == "sharper"


def test_an_empty_table_says_what_to_do(qtbot):
    table = RunsTable(RunStore())
    qtbot.addWidget(table)
    table.show()
    assert table.empty.isVisible()
    assert "press Run" in table.empty.text()
