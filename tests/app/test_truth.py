"""What stands on the screen of a run is what was made, and it is said everywhere alike."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from window_driver import HU, LONG, click, save_phantom, until

from app.runs.progress import Progress
from app.runs.table_model import NFE, RUN, TIME
from app.tools.trust.view import NOTHING_YET, UNDER_WAY
from engine.files.record import RunRecord


def cancelled(bench, nfe=LONG):
    bench.fill(method="dc-pnpdp", prior="gaussian", nfe=nfe, cg_iterations=3)
    click(bench.window.left.solver.run)
    entry = bench.runs()[-1]
    until(lambda: (entry.history.last("k") or 0) > 3, what="some iterations")
    bench.window.runs.cancel()
    bench.wait_idle()
    return entry


def cell(bench, entry, column, role=Qt.ItemDataRole.DisplayRole):
    model = bench.window.right.table.model
    return model.index(model.row_of(entry.run_id), column).data(role)


def overlay(bench, entry):
    return bench.pane(entry.run_id).annotations.run_lines


def test_a_cancelled_run_says_so_in_overlay_list_comparison_and_library(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    whole = bench.run(prior="gaussian", nfe=4)
    entry = cancelled(bench)
    said = f"{entry.nfe} of {LONG}"
    assert f"NFE {said}, cancelled" in overlay(bench, entry)
    assert cell(bench, entry, NFE) == f"{said}\ncancelled"
    assert cell(bench, whole, NFE) == "4"
    table = bench.window.right.table
    table.table.selectAll()
    other = next(one for one in bench.runs() if one.solver == "fbp")
    table.table.selectionModel().clearSelection()
    for one in (whole, entry):
        row = table.model.row_of(one.run_id)
        flags = table.table.selectionModel().SelectionFlag
        table.table.selectionModel().select(table.model.index(row, 0), flags.Select | flags.Rows)
    table.compare()
    dialog = table.children()[-1]
    shown = dialog.view.table
    rows = {shown.item(r, 0).text(): shown.item(r, 2).text() for r in range(shown.rowCount())}
    assert rows["How it ended"] == f"cancelled, {said} calls"
    dialog.close()
    assert cell(bench, other, NFE) == "–"


def test_true_acceleration_prior_and_size_stand_on_the_image(benches):
    bench = benches()
    bench.open("demo:mri")
    entry = bench.run(method="dds", prior="auto", nfe=2)
    lines = overlay(bench, entry)
    record = RunRecord.read(entry.record_path)
    factor = record.operator["true_acceleration"]
    assert f"R {factor:.3g}" in lines
    assert not [line for line in lines if line.startswith("R 6")], "one number everywhere"
    assert f"R {factor:.3g}" in cell(bench, entry, RUN)
    assert f"{factor:.3g}" in bench.window.left.mri.words.text()
    assert "prior mr-base, 308 patients" in lines
    assert "256 × 256, 0.898 mm" in lines
    assert "256 × 256, 0.898 mm" in bench.pane("reference").annotations.run_lines


def test_the_list_names_slice_and_scan_and_greys_runs_of_other_data(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    entry = bench.run(nfe=2)
    assert cell(bench, entry, RUN).splitlines()[1].startswith("slice 1, ")
    ticked = Qt.ItemDataRole.CheckStateRole
    assert cell(bench, entry, RUN, ticked) == Qt.CheckState.Checked
    bench.open("demo:mri")
    assert cell(bench, entry, RUN, ticked) is None, "no tick of what cannot be shown"
    assert cell(bench, entry, RUN, Qt.ItemDataRole.ForegroundRole) is not None
    assert cell(bench, entry, RUN).splitlines()[1].startswith("phantom.npy, slice 1")


def test_the_highlighted_row_is_the_current_run_and_the_export_names_it(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    first = bench.run(nfe=2)
    second = bench.run(method="diffpir", nfe=2)
    table = bench.window.right.table
    assert [one.run_id for one in table.selected()] == [second.run_id]
    bench.window.show_run(first.run_id)
    assert [one.run_id for one in table.selected()] == [first.run_id]
    bench.window.files.export()
    choice = bench.window.files.dialog.what.buttons["current"]
    assert choice.text() == f"Current run ({first.name})"


def test_one_time_everywhere(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    entry = bench.run(nfe=4)
    told = RunRecord.read(entry.record_path).timings["total"]
    assert entry.seconds == told
    assert cell(bench, entry, TIME) == f"{told:.1f}"
    assert bench.window.context.run_library.get(entry.run_id).seconds == told


def test_paused_says_so_and_nothing_counts_down_after_finish(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    bench.fill(method="dc-pnpdp", prior="gaussian", nfe=LONG, cg_iterations=3)
    click(bench.window.left.solver.run)
    entry = bench.runs()[-1]
    until(lambda: (entry.history.last("k") or 0) > 3, what="some iterations")
    bar, runs = bench.window.run_bar, bench.window.runs
    runs.pause()
    assert bar.status.text().startswith("Paused")
    assert bar.left.text() == "paused"
    runs.finish()
    bar.show_progress(Progress("late", 0.5, 120.0))
    assert bar.left.text() == "ending …"
    bench.wait_idle()


def test_an_old_error_of_opening_goes_with_a_good_opening(benches, folders):
    bench = benches()
    queue = bench.window.messages.queue
    bench.window.data.open(str(folders / "nowhere.npy"), HU)
    until(lambda: queue.current is not None, what="the error")
    bench.window.messages.error("Another matter.")
    bench.open(save_phantom(folders), HU)
    assert [message.sentence for message in queue.messages] == ["Another matter."]


@pytest.mark.parametrize("pixel", [None, 0.5])
def test_the_size_of_data_without_a_spacing_says_that(benches, folders, pixel):
    np.save(folders / "image.npy", np.zeros((40, 64), np.float32))
    bench = benches(loaded=False)
    options = {**HU, **({"pixel_mm": pixel} if pixel else {})}
    bench.open(folders / "image.npy", options)
    words = bench.window.setup.data.size_words
    assert words.startswith("64 × 40, ")


def test_one_verdict_line_under_the_result_leads_to_why(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    entry = bench.run(prior="gaussian", nfe=3)
    caption = bench.pane(entry.run_id).caption
    line = entry.verdicts["summary"]
    assert "% of edge detail supplied by the prior" in line
    bench.pane(entry.run_id).window().resize(1600, 1000)
    assert line.startswith(caption.verdict_shown().split(";")[0].rstrip(" …"))
    click(caption, at=caption.rect().bottomLeft() + QPoint(20, -4))
    view = bench.window.trust.view
    assert view is not None
    assert view.isVisible()
    assert entry.name in view.head.text()
    view.close()
    note = bench.window.right.table.note
    assert line in note.sentences.text()
    click(note.whyButton)
    assert view.isVisible()
    assert RunRecord.read(entry.record_path).verdicts["summary"] == line


def test_the_trust_page_says_that_it_computes(benches, folders):
    bench = benches()
    bench.open(save_phantom(folders), HU)
    entry = bench.run(prior="gaussian", nfe=3)
    bench.window.show_why(entry.run_id)
    view = bench.window.trust.view
    page = view.pages[view.kind]
    assert page.empty.text() == NOTHING_YET
    bench.window.trust.ask(view.kind)
    assert page.empty.text() == UNDER_WAY
    until(lambda: not bench.window.trust.busy, what="the answer")
    assert page.empty.text() != UNDER_WAY or not page.empty.isVisible()
    view.close()
