"""Step 5 with the real window: linked panes, comparisons, measuring, the table of runs."""

import numpy as np
import pytest
from pane_events import SHIFT, drag, move, stroke
from PySide6.QtCore import QItemSelectionModel, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit
from window_driver import HU, activate, choose, click, press, save_phantom, until, wheel

from app.images.display import Tool
from app.images.grid import CompareMode
from app.runs.settings_diff import SettingsDiffDialog
from app.runs.table_model import NOTE, RUN

CTRL = Qt.KeyboardModifier.ControlModifier
Key = Qt.Key


@pytest.fixture(scope="module")
def compared(shared):
    """FBP, DC-PnPDP and DiffPIR of all three slices of a volume."""
    shared.open(save_phantom(shared.folder, slices=3), HU)
    choose(shared.window.left.slices.box, "all")
    shared.fill(method="dc-pnpdp", prior="tv", nfe=5, cg_iterations=3)
    click(shared.window.left.solver.both)
    shared.wait_idle()
    return shared


@pytest.fixture
def runs(compared, bench):
    """The window with its runs; every test begins with the same view."""
    window = bench.window
    yield bench
    window.grid.set_compare(CompareMode.NONE)
    window.grid.link.set_tool(Tool.WINDOW)
    window.grid.link.reset()
    window.grid.link.set_slice(1)
    window.center.scrubber.go_live()


def panes(bench):
    return [bench.pane(key) for key in bench.window.grid]


def entry_of(bench, solver):
    return next(entry for entry in bench.runs() if entry.solver == solver)


def place(pane):
    """What a pane has in its middle, in mm, and how large."""
    centre = QPointF(*(length / 2 for length in pane.view.pane_size))
    return (*pane.view.to_mm(centre), pane.view.canvas.transform().m11())


# -- linked ---------------------------------------------------------------------------------


def test_four_panes_stand_side_by_side(runs):
    names = [pane.name for pane in panes(runs)]
    assert names == ["Reference", "#1 FBP", "#2 DC-PnPDP", "#3 DiffPIR"]
    assert all(pane.isVisible() for pane in panes(runs))


@pytest.mark.parametrize(
    ("button", "dx", "dy"),
    [(Qt.MouseButton.MiddleButton, 30, 20), (Qt.MouseButton.RightButton, 0, 40)],
)
def test_panning_and_zooming_one_pane_moves_all(runs, button, dx, dy):
    before = [place(pane) for pane in panes(runs)]
    drag(panes(runs)[2], button, dx, dy)
    after = [place(pane) for pane in panes(runs)]
    assert all(now != was for now, was in zip(after, before, strict=True))
    np.testing.assert_allclose(after, [after[0]] * 4, rtol=0.01)  # panes differ by a pixel


def test_the_wheel_over_one_pane_changes_the_slice_of_all(runs):
    wheel(panes(runs)[1], -1)
    assert runs.window.panes.slice == 2
    for entry in runs.runs():
        np.testing.assert_array_equal(runs.pane(entry.run_id).image, entry.images[2])


def test_left_drag_in_one_pane_windows_all(runs):
    drag(panes(runs)[3], Qt.MouseButton.LeftButton, 40, 10)
    levels = {tuple(pane.view.image_item.levels) for pane in panes(runs)}
    assert levels == {runs.window.grid.link.window.levels}


def test_the_crosshair_stands_in_every_pane(runs):
    move(panes(runs)[0], 90, 100, SHIFT)
    for pane in panes(runs):
        assert all(line.isVisible() for line in pane.view._crosshair)
    lines = {tuple(pane.view._crosshair[0].line().toTuple()) for pane in panes(runs)}
    assert len(lines) == 1


def test_a_double_click_shows_one_pane_alone_and_back(runs):
    pane = panes(runs)[2]
    QTest.mouseDClick(pane.view.viewport(), Qt.MouseButton.LeftButton)
    assert [one.isVisible() for one in panes(runs)] == [False, False, True, False]
    QTest.mouseDClick(pane.view.viewport(), Qt.MouseButton.LeftButton)
    assert all(one.isVisible() for one in panes(runs))


# -- comparisons ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "mode"),
    [
        (Key.Key_D, CompareMode.DIFFERENCE),
        (Key.Key_F, CompareMode.FLICKER),
        (Key.Key_S, CompareMode.SWIPE),
    ],
)
def test_comparisons_open_by_key_and_by_button(runs, key, mode):
    grid, bar = runs.window.grid, runs.window.center.bar
    press(panes(runs)[1], key)
    assert grid.mode is mode
    assert bar.modes[mode].isChecked()
    assert grid.compare_pane.image is not None
    press(panes(runs)[1], Key.Key_Escape)
    assert grid.mode is CompareMode.NONE
    click(bar.modes[mode])
    assert grid.mode is mode
    click(bar.modes[mode])
    assert grid.mode is CompareMode.NONE
    assert not bar.sources.isVisible()


def test_the_boxes_choose_what_is_compared(runs):
    window = runs.window
    click(window.center.bar.modes[CompareMode.DIFFERENCE])
    choose(window.center.bar.a, "#2 DC-PnPDP")
    choose(window.center.bar.b, "#3 DiffPIR")
    pane = window.grid.compare_pane
    a, b = (entry_of(runs, name).images[1] for name in ("dc-pnpdp", "diffpir"))
    np.testing.assert_array_equal(pane.image, a - b)
    assert pane.name == "#2 DC-PnPDP − #3 DiffPIR"
    assert pane.window_model is not window.grid.link.window_model


@pytest.mark.parametrize("chosen", [False, True])
def test_a_comparison_ends_with_the_run_that_it_shows(runs, chosen):
    window, old = runs.window, runs.run(nfe=3)
    click(window.center.bar.modes[CompareMode.DIFFERENCE])
    assert old.name in window.grid.compare_pane.name
    if chosen:
        choose(window.center.bar.b, "#1 FBP")
    new = runs.run(nfe=2)  # of the same method: the old one steps aside
    assert old.run_id not in window.grid
    assert window.grid.mode is CompareMode.NONE
    click(window.center.bar.modes[CompareMode.DIFFERENCE])
    assert window.grid.compare_pane.name == f"{new.name} − Reference"


def test_the_flicker_shows_a_and_b_in_turn(runs):
    press(panes(runs)[1], Key.Key_F)
    pane = runs.window.grid.compare_pane
    assert pane.name.startswith("A:")
    press(pane, Key.Key_F)
    assert pane.name.startswith("B:")


# -- measuring ------------------------------------------------------------------------------


def test_a_region_drawn_with_the_mouse_is_measured_in_every_pane(runs):
    window = runs.window
    click(window.center.bar.tools[Tool.RECTANGLE])
    pane = panes(runs)[0]
    size = pane.view.viewport().size()
    stroke(
        pane,
        (size.width() // 2 - 30, size.height() // 2 - 20),
        (size.width() // 2 + 40, size.height() // 2 + 50),
    )
    left, top, right, bottom = window.grid.link.measurements.region.box
    centres = np.arange(64) - 31.5
    rows = (centres >= top) & (centres <= bottom)
    columns = (centres >= left) & (centres <= right)
    measured = window.grid.inspector.statistics
    assert [one.name for one in measured] == [pane.name for pane in panes(runs)]
    for one, pane in zip(measured, panes(runs), strict=True):
        inside = pane.image[np.ix_(rows, columns)].astype(np.float64)
        found = one.statistics
        assert found.mean == pytest.approx(inside.mean())
        assert found.sd == pytest.approx(inside.std())
        assert (found.minimum, found.maximum) == (inside.min(), inside.max())
        assert found.area_mm2 == inside.size
    table = window.right.statistics.table
    assert table.rowCount() == 4
    assert table.item(1, 1).text() == f"{measured[1].statistics.mean:.0f}"
    press(pane, Key.Key_Delete)
    assert window.grid.link.measurements.region is None


def test_a_line_gives_the_profiles_of_all_images_in_one_plot(runs):
    window = runs.window
    click(window.center.bar.tools[Tool.RULER])
    stroke(panes(runs)[1], (60, 120), (180, 130))
    assert window.right.profile.isVisible()
    assert list(window.right.profile.curves) == [pane.name for pane in panes(runs)]
    for curve in window.right.profile.curves.values():
        x, y = curve.getOriginalDataset()
        assert len(x) > 10
        assert np.isfinite(y).any()


# -- scrubber and table ---------------------------------------------------------------------


def test_the_scrubber_goes_back_to_an_iteration_and_live_returns(runs):
    window = runs.window
    ours, other = entry_of(runs, "dc-pnpdp"), entry_of(runs, "diffpir")
    window.show_run(ours.run_id)
    scrubber = window.center.scrubber
    click(scrubber.back)
    click(scrubber.back)
    assert scrubber.slider.value() == 3
    assert scrubber.text.text().startswith("k = 3/5")
    for entry in (ours, other):
        k, _, images = entry.snapshots.at(3)
        assert k == 3
        np.testing.assert_array_equal(runs.pane(entry.run_id).image, images[1])
    click(scrubber.liveButton)
    assert scrubber.live
    np.testing.assert_array_equal(runs.pane(ours.run_id).image, ours.images[1])


def test_a_note_is_written_in_the_table(runs):
    table, entry = runs.window.right.table, entry_of(runs, "dc-pnpdp")
    index = table.model.index(table.model.row_of(entry.run_id), NOTE)
    table.table.setCurrentIndex(index)
    table.table.edit(index)
    editor = table.table.findChild(QLineEdit)
    QTest.keyClicks(editor, "best so far")
    QTest.keyClick(editor, Key.Key_Return)
    until(lambda: entry.note == "best so far", what="the note")
    assert index.data() == "best so far"


def test_a_row_that_is_clicked_becomes_the_current_run(runs):
    table, entry = runs.window.right.table, entry_of(runs, "diffpir")
    index = table.model.index(table.model.row_of(entry.run_id), 1)
    click(table.table.viewport(), at=table.table.visualRect(index).center())
    assert runs.window.panes.current == entry.run_id
    assert runs.window.center.scrubber.run_id == entry.run_id


def test_the_settings_of_two_runs_are_told_apart(runs):
    window, table = runs.window, runs.window.right.table
    first = entry_of(runs, "dc-pnpdp")
    second = runs.run(nfe=7)
    table.table.clearSelection()
    for entry in (first, second):
        table.table.selectionModel().select(
            table.model.index(table.model.row_of(entry.run_id), RUN),
            QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows,
        )
    click(table.compareButton)
    (dialog,) = table.findChildren(SettingsDiffDialog)
    shown = dialog.view.table
    rows = [
        [shown.item(row, column).text() for column in range(3)] for row in range(shown.rowCount())
    ]
    assert rows == [["NFE (denoiser calls)", "5", "7"]]
    dialog.close()
    activate(window)
    QTest.keyClick(table.table, Key.Key_Home)


def test_a_deleted_run_comes_back_with_ctrl_z(runs):
    window, table = runs.window, runs.window.right.table
    entry = runs.run(nfe=3)
    table.select(entry.run_id)
    click(table.deleteButton)
    assert entry.run_id not in window.store
    until(lambda: entry.run_id not in window.grid)
    press(window, Key.Key_Z, CTRL)
    assert window.store.get(entry.run_id) is entry
    np.testing.assert_array_equal(runs.pane(entry.run_id).image, entry.images[1])
    press(window, Key.Key_Y, CTRL)
    assert entry.run_id not in window.store


def test_an_unticked_run_leaves_the_panes(runs):
    entry = runs.run(nfe=3)
    model = runs.window.right.table.model
    index = model.index(model.row_of(entry.run_id), RUN)
    model.setData(index, Qt.CheckState.Unchecked, Qt.ItemDataRole.CheckStateRole)
    until(lambda: entry.run_id not in runs.window.grid)
    model.setData(index, Qt.CheckState.Checked, Qt.ItemDataRole.CheckStateRole)
    until(lambda: entry.run_id in runs.window.grid)
