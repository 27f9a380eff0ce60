"""The library in the window: nothing is lost, and everything can be looked at again."""

import json
import shutil
import time

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox
from window_driver import HU, LONG, activate, click, press, save_phantom, until

from app.tools.run_library.model import DATA, HEADINGS, METHOD, NFE, NOTE, SCAN, STATUS
from app.tools.run_library.view import ALL, EMPTY, NONE_FOUND
from engine.files.kept_result import KeptResult, spread
from engine.files.record import RunRecord
from engine.files.run_library import RunLibrary


def opened(bench):
    """The library's window, with what there is."""
    window = bench.window
    window.menus.actions["library"].trigger()
    return listed(bench)


def listed(bench):
    view = bench.window.run_library.view
    activate(view)
    bench.window.run_library.ask()
    bench.wait_quiet()
    until(lambda: not bench.window.run_library._soon.isActive(), what="the list")
    bench.wait_quiet()
    return view


def shown(view, column):
    return [view.model.index(row, column).data() for row in range(view.model.rowCount())]


def test_a_run_comes_back_with_image_curves_iterations_and_spectra(benches, folders):
    data = save_phantom(folders)
    bench = benches()
    bench.open(data, HU)
    bench.window.center.plots.spectraButton.click()
    run = bench.run(nfe=6)
    frame, history = run.last_frame, run.history
    bench.close()

    bench = benches()
    view = opened(bench)
    assert shown(view, METHOD) == ["DC-PnPDP", "FBP"]
    assert shown(view, NFE)[0] == "6"
    assert shown(view, STATUS) == ["finished", "finished"]
    assert "views / 180°" in shown(view, SCAN)[0]
    assert shown(view, DATA)[0] == data.name
    assert not view.model.index(0, DATA).data(Qt.ItemDataRole.DecorationRole).isNull()
    view.table.selectRow(0)
    click(view.open)
    bench.wait_opened()
    until(lambda: bench.runs(), what="the run")
    (again,) = bench.runs()
    assert np.array_equal(again.images, run.images)
    for name in set(history.names()) - {"seconds_step"}:
        assert np.array_equal(again.history.column(name), history.column(name), equal_nan=True)
    assert again.snapshots.iterations() == run.snapshots.iterations() == [1, 2, 3, 4, 5, 6]
    for k in again.snapshots.iterations():
        mine, theirs = (entry.snapshots.at(k)[2] for entry in (again, run))
        assert np.abs(mine - theirs).max() <= np.ptp(theirs) / 65535
    for name, curve in frame.psd.items():
        assert np.array_equal(again.last_frame.psd[name], curve)
    for name in ("x", "u", "x - z", "residual"):
        assert np.array_equal(again.last_frame.planes[name], frame.planes[name])
    plots = bench.window.center.plots
    until(lambda: any("/" in name for name in plots.psd.names), what="the noise power")
    scrubber = bench.window.center.scrubber
    assert scrubber.run_id == again.run_id
    scrubber.step_by(-1)
    assert not scrubber.live
    assert scrubber.text.text().startswith("k = 5/6")


def test_search_status_and_open_data_choose_and_the_empty_page_says_why(benches, folders):
    data = save_phantom(folders)
    bench = benches()
    view = opened(bench)
    assert view.pages.currentWidget() is view.empty
    assert view.empty.text() == EMPTY
    bench.open(data, HU)
    bench.run(nfe=2)
    view = listed(bench)
    assert len(shown(view, METHOD)) == 2
    activate(view)
    QTest.keyClicks(view.search, "fbp PHANTOM")
    assert shown(listed(bench), METHOD) == ["FBP"]
    view.search.setText("nothing like it")
    listed(bench)
    assert view.empty.text() == NONE_FOUND
    assert view.pages.currentWidget() is view.empty
    view.search.clear()
    view.status.setCurrentText("interrupted")
    assert shown(listed(bench), METHOD) == []
    view.status.setCurrentText(ALL)
    view.only_open.setChecked(True)
    assert len(shown(listed(bench), METHOD)) == 2
    shutil.copy(data, folders / "other.npy")
    bench.open(folders / "other.npy", HU)
    assert shown(listed(bench), METHOD) == []


def test_closing_asks_nothing_and_the_run_goes_on_to_the_same_image(benches, folders):
    data = save_phantom(folders)
    bench = benches()
    bench.open(data, HU)
    whole = bench.run(prior="gaussian", nfe=40)
    bench.fill(nfe=40)
    seen = []
    bench.window.runs.scalars.connect(seen.append)
    control = bench.window.runs
    click(bench.window.left.solver.run)
    until(lambda: len(seen) >= 1, what="an iteration")
    control.pause()
    until(lambda: control.state == "paused", what="the pause")
    boxes = []
    bench.window.gone.connect(lambda: boxes.extend(QApplication.topLevelWidgets()))
    bench.close()
    assert not [box for box in boxes if isinstance(box, QMessageBox)]

    bench = benches()
    bench.window.run_library.tidy()
    bench.wait_quiet()
    assert "1 run was interrupted" in bench.window.messages.queue.current.sentence
    view = opened(bench)
    assert shown(view, STATUS)[0] == "interrupted"
    assert shown(view, NFE)[0].endswith(" of 40")
    view.table.selectRow(0)
    assert view.resume.isEnabled()
    click(view.resume)
    bench.wait_opened()
    until(lambda: bench.runs(), what="the run")
    bench.wait_idle()
    (entry,) = bench.runs()
    assert entry.status == "done"
    assert np.array_equal(entry.images, whole.images)
    assert len(entry.snapshots.iterations()) == 40, "those before the interruption, too"
    view = listed(bench)
    assert shown(view, STATUS)[0] == "finished"
    view.table.selectRow(0)
    assert not view.resume.isEnabled()
    assert "interrupted" in view.resume.toolTip()


def test_a_run_that_goes_on_is_listed_and_not_deleted(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    bench.fill(method="dc-pnpdp", prior="tv", nfe=LONG, cg_iterations=3)
    click(bench.window.left.solver.run)
    until(lambda: any(len(run.history) > 2 for run in bench.runs()), what="some iterations")
    view = opened(bench)
    row = shown(view, STATUS).index("running")
    assert shown(view, NFE)[row].endswith(f" of {LONG}")
    view.table.selectRow(row)
    assert not view.delete.isEnabled()
    assert not view.resume.isEnabled()
    bench.window.runs.cancel()
    bench.wait_idle()
    view = listed(bench)
    assert shown(view, STATUS)[row] == "cancelled"
    assert " of " in shown(view, NFE)[row]


def test_delete_asks_frees_the_space_and_takes_the_run_off_the_list(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    run = bench.run(nfe=2)
    view = opened(bench)
    folder = bench.window.context.run_library.folder(run.run_id)
    assert folder.is_dir()
    view.table.selectRow(shown(view, METHOD).index("DC-PnPDP"))
    before = view.space.text()
    press(view.table, Qt.Key.Key_Delete)
    (box,) = view.findChildren(QMessageBox)
    assert "cannot be brought back" in box.informativeText()
    assert folder.is_dir(), "not before the answer"
    click(box.button(QMessageBox.StandardButton.Yes))
    view = listed(bench)
    assert not folder.exists()
    assert shown(view, METHOD) == ["FBP"]
    assert run.run_id not in bench.window.store
    assert view.space.text() != before


def test_removing_from_the_list_keeps_the_run_in_the_library(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    run = bench.run(nfe=2)
    table = bench.window.right.table
    table.select(run.run_id)
    click(table.deleteButton)
    assert run.run_id not in bench.window.store
    click(table.runLibraryButton)
    view = listed(bench)
    assert "DC-PnPDP" in shown(view, METHOD)
    view.table.selectRow(shown(view, METHOD).index("DC-PnPDP"))
    view.table.setFocus()
    press(view.table, Qt.Key.Key_Return)
    until(lambda: run.run_id in bench.window.store, what="the run")
    bench.window.undo.undo()  # of the removal: it is there already
    assert [one.run_id for one in bench.runs()].count(run.run_id) == 1


def test_notes_and_pins_stay_and_notes_are_one_in_both_lists(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    run = bench.run(nfe=2)
    bench.window.store.change(run.run_id, note="from the list")
    bench.wait_quiet()
    view = opened(bench)
    row = shown(view, METHOD).index("DC-PnPDP")
    assert shown(view, NOTE)[row] == "from the list"
    view.model.setData(view.model.index(row, NOTE), "from the library")
    assert run.note == "from the library"
    view.table.selectRow(row)
    click(view.pin)
    bench.close()
    bench = benches()
    view = opened(bench)
    row = shown(view, METHOD).index("DC-PnPDP")
    assert shown(view, NOTE)[row] == "from the library"
    assert shown(view, DATA)[row].startswith("📌")
    view.table.selectRow(row)
    assert view.pin.text() == "Unpin"


def test_changed_data_are_told(benches, folders):
    data = save_phantom(folders)
    bench = benches()
    bench.open(data, HU)
    bench.run(nfe=2)
    bench.close()
    image = np.load(data)
    np.save(data, image + 1)
    bench = benches()
    view = opened(bench)
    view.table.selectRow(0)
    click(view.open)
    until(lambda: bench.window.messages.queue.current is not None, what="a message")
    assert "have changed since it was made" in bench.window.messages.queue.current.sentence


def test_data_that_are_gone_leave_curves_and_numbers(benches, folders):
    data = save_phantom(folders)
    bench = benches()
    bench.open(data, HU)
    bench.run(nfe=3)
    bench.close()
    data.unlink()
    bench = benches()
    view = opened(bench)
    view.table.selectRow(0)
    click(view.open)
    until(lambda: bench.runs(), what="the run")
    assert len(bench.runs()[0].history) == 3


def test_two_windows_share_the_library(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    run = bench.run(nfe=2)
    other = RunLibrary(bench.window.context.run_library.root)  # another window
    other.agree()
    assert not other.delete(run.run_id)
    assert other.make_room(0) == []
    other.remark(run.run_id, note="theirs")
    view = opened(bench)
    assert "theirs" in shown(view, NOTE)
    other.close()


def test_old_runs_make_room_when_a_run_has_ended(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    first = bench.run(nfe=2)
    bench.window.settings.set("library_mib", 0)
    for entry in bench.runs():
        bench.window.store.remove(entry.run_id)
    bench.wait_quiet()
    second = bench.run(nfe=2)
    bench.wait_quiet()
    library = bench.window.context.run_library
    assert library.get(first.run_id) is None
    assert not library.folder(first.run_id).exists()
    assert library.get(second.run_id).status == "finished", "what is open stays"


def test_everything_in_the_window_can_be_reached_and_named(benches, folders):
    bench = benches(loaded=False)
    view = opened(bench)
    for widget in (view.search, view.status, view.only_open, view.table, view.limit):
        assert widget.accessibleName()
        assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    for button in (view.open, view.resume, view.delete, view.note, view.pin):
        assert button.accessibleName()
        assert button.toolTip()
        assert not button.isEnabled()
    assert view.resize_to_screen() is None
    assert len(HEADINGS) == view.model.columnCount()
    press(view, Qt.Key.Key_Escape)
    assert not view.isVisible()


def test_a_record_without_pictures_is_rebuilt_and_says_what_is_missing(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    run = bench.run(prior="gaussian", nfe=4)
    place = KeptResult.path_beside(run.record_path)
    bench.close()
    place.write_bytes(b"damaged")
    bench = benches()
    view = opened(bench)
    view.table.selectRow(shown(view, METHOD).index("DC-PnPDP"))
    click(view.open)
    until(lambda: bench.runs(), what="the run")
    (again,) = bench.runs()
    assert np.array_equal(again.images, run.images)
    assert "nothing was kept" in again.message


def test_a_full_disk_costs_the_pictures_not_the_run(benches, folders, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.runs.run_group.keep_pictures", full)
    bench = benches()
    bench.open(save_phantom(folders), HU)
    run = bench.run(nfe=2)
    assert run.status == "done"
    assert RunRecord.read(run.record_path).status == "done"
    assert bench.window.context.run_library.get(run.run_id).status == "finished"


@pytest.mark.parametrize("count", [1, 2, 40, 1000])
def test_iterations_are_spread_over_the_run_within_the_space(count):
    image = np.zeros((1, 512, 512), np.float32)
    kept = spread([(k, 1.0, image) for k in range(1, count + 1)])
    assert len(kept) == min(count, 16)
    assert kept[0][0] == 1
    assert kept[-1][0] == count
    assert spread([(1, 1.0, np.zeros((40, 512, 512), np.float32))] * 5) == []


def test_the_record_of_a_library_run_names_what_it_was(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    run = bench.run(nfe=2)
    body = json.loads(run.record_path.read_text())
    assert run.record_path.parent.name == run.run_id
    assert body["status"] == "done"
    entry = bench.window.context.run_library.get(run.run_id)
    assert time.mktime(entry.started) <= time.time()
