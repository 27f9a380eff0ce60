"""The experiments page with the real window and the real engine, on a tiny image."""

import json
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from window_driver import HU, LONG, choose, click, held, save_phantom, sentences, unhurried, until

from app.tools.experiments.panel import OPEN
from engine.priors.analytic import TVPrior
from engine.workflows.experiments.catalogue import EXPERIMENTS

METHODS = [method.label for method in EXPERIMENTS["ablation"].methods]


@pytest.fixture
def page(bench, tmp_path):
    """The page, asked for a quick ablation of the open phantom with the TV prior."""
    window = bench.window
    if window.setup.data is None:
        bench.open(save_phantom(bench.folder), HU)
    window.menus.actions["experiments"].trigger()
    view = window.experiments.view
    until(lambda: view.panel.offers.experiments, what="the experiments")
    view.panel.choose("ablation")
    choose(view.panel.inputs, "The open data")
    view.panel.prior.chosen.emit("tv")
    view.panel.quick.setChecked(True)
    view.panel.again.setChecked(False)
    view.panel.folder.setText(str(tmp_path / "out"))
    yield view
    view.presenter.cancel()
    until(lambda: not view.presenter.busy, what="the experiment to end")
    view.close()


def finish(view):
    click(view.start)
    until(lambda: not view.presenter.busy, what="the experiment")


def column(view, heading):
    where = view.model.table.headings.index(heading)
    return [row[where] for row in view.model.table.rows]


def cases(folder, name="ablation"):
    return json.loads((Path(folder) / f"{name}.json").read_text())["cases"]


def test_the_page_is_one_and_offers_every_experiment_with_its_question(bench, page):
    bench.window.menus.actions["experiments"].trigger()
    assert bench.window.experiments.view is page
    rows = [page.panel.experiments.item(n).text() for n in range(page.panel.experiments.count())]
    assert rows == [f"{one.name}\n{one.question}" for one in EXPERIMENTS.values()]
    assert {"ct-small", "mr-small", "tv"} <= set(page.panel.offers.priors)
    assert page.start.isEnabled()
    assert not page.cancel.isEnabled()


def test_rows_arrive_one_by_one_and_the_figure_follows(page, tmp_path):
    seen, words = [], []
    page.presenter.table_changed.connect(lambda table: seen.append(len(table.rows)))
    page.presenter.stepped.connect(lambda step: words.append((step.words, step.fraction)))
    with unhurried():
        click(page.start)
        assert not page.panel.isEnabled()
        assert not page.start.isEnabled()
        until(lambda: not page.presenter.busy, what="the experiment")
    assert seen == sorted(seen)
    assert len(set(seen)) > 2, "the rows came all at once"
    assert column(page, "method") == METHODS
    assert column(page, "paper PSNR")[-1] == "37.02"
    assert all(5 < float(psnr) < 60 for psnr in column(page, "PSNR dB"))
    fractions = [fraction for _, fraction in words]
    assert fractions == sorted(fractions)
    assert words[-1][0].startswith("LACT-90, dual and SH (DC-PnPDP), slice 1")
    (picture,) = page.figures.pictures
    assert picture.path == tmp_path / "out" / "ablation.png"
    until(picture.isVisible, what="the figure")
    drawn = picture.grab().toImage()
    assert len({drawn.pixel(x, drawn.height() // 2) for x in range(drawn.width())}) > 5
    assert page.status.text() == "Done."
    assert page.panel.isEnabled()
    assert json.loads((tmp_path / "out" / "ablation.json").read_text())["complete"] is True


def test_cancel_keeps_what_is_done_and_start_goes_on_from_there(page, tmp_path):
    def cancel_after_one(table):
        if len(table.rows) == 1:
            page.presenter.cancel()

    page.presenter.table_changed.connect(cancel_after_one)
    with unhurried():
        finish(page)
    page.presenter.table_changed.disconnect(cancel_after_one)
    kept = cases(tmp_path / "out")
    assert 1 <= len(kept) < len(METHODS)
    assert "Cancelled" in page.status.text()
    assert page.figures.pictures, "what is done is drawn"
    finish(page)
    assert f"{len(kept)} of 4 cases are done already." in page.notes.text()
    after = cases(tmp_path / "out")
    assert len(after) == len(METHODS)
    assert {key: after[key] for key in kept} == kept, "a case was computed twice"


def test_other_settings_are_refused_in_the_pages_own_words(bench, page, tmp_path):
    page.panel.choose("injection")
    finish(page)
    assert [p.path.suffix for p in page.figures.pictures] == [".svg", ".png"]
    page.panel.prior.chosen.emit("gaussian")
    finish(page)
    (said,) = sentences(bench.window)
    assert "other settings" in said
    assert said.endswith("choose another folder (“Folder”), or begin again (“Begin again”).")
    assert page.status.text() == f"⚠ {said}"
    page.panel.again.setChecked(True)
    finish(page)
    assert page.status.text() == "Done."


@pytest.mark.parametrize(
    ("wrong", "words"), [("results", "Cannot make the folder"), ("inputs", "does not exist")]
)
def test_a_bad_folder_gives_one_sentence(bench, page, tmp_path, wrong, words):
    if wrong == "results":
        (tmp_path / "file").write_text("in the way")
        page.panel.folder.setText(str(tmp_path / "file" / "out"))
    else:
        page.panel.inputs.take_files([str(tmp_path / "nowhere")])
        assert page.panel.inputs.currentText() == "nowhere"
    finish(page)
    (said,) = sentences(bench.window)
    assert words in said
    assert "\n" not in said
    page.panel.folder.setText("")
    assert page.start.toolTip() == "Choose a folder for the results."


def test_files_are_taken_and_an_array_without_a_unit_is_explained(bench, page, tmp_path):
    path = tmp_path / "array.npy"
    np.save(path, np.zeros((32, 32), dtype=np.float32))
    page.panel.inputs.take_files([str(path)])
    finish(page)
    (said,) = sentences(bench.window)
    assert "Open it in the main window first" in said
    choose(page.panel.inputs, "The open data")
    assert page.panel.value().request.options == HU


def test_a_run_and_an_experiment_do_not_compute_together(bench, page):
    window = bench.window
    page.panel.quick.setChecked(False)
    with held(TVPrior, lambda: True):
        click(page.start)
        assert "An experiment is going on" in window.left.solver.run.toolTip()
        assert window.start_runs([window.left.solver.value()]) == []
        click(page.cancel)
    until(lambda: not page.presenter.busy, what="the end")
    assert window.left.solver.run.isEnabled()
    bench.fill(method="dc-pnpdp", prior="tv", nfe=LONG, cg_iterations=3)
    click(window.left.solver.run)
    assert "A run is going on" in page.start.toolTip()
    page.presenter.start(page.panel.value())
    assert not page.presenter.busy
    window.runs.cancel()
    bench.wait_idle()
    assert page.start.isEnabled()


def test_closing_the_window_mid_way_keeps_what_is_done_and_leaves_no_thread(benches, tmp_path):
    bench = benches(recorded=False)
    bench.window.menus.actions["experiments"].trigger()
    view = bench.window.experiments.view
    inputs = view.panel.inputs
    assert not inputs.model().item(inputs.findData(OPEN)).isEnabled()
    until(lambda: view.panel.offers.experiments, what="the experiments")
    bench.open(save_phantom(tmp_path), HU)
    choose(inputs, "The open data")
    view.panel.prior.chosen.emit("tv")
    view.panel.choose("views-sweep")
    assert view.panel.slices.text() == "automatic (2)"
    view.panel.folder.setText(str(tmp_path / "out"))
    with held(TVPrior, lambda: view.model.rowCount() > 1):
        click(view.start)
        until(lambda: view.model.rowCount() > 1 or not view.presenter.busy, what="two rows")
        assert view.presenter.busy
        worker = view.presenter.worker
        bench.window.close()
    assert not bench.window.isVisible()
    bench.close()
    assert not worker.alive, "the thread outlives the window"
    result = json.loads((tmp_path / "out" / "views-sweep.json").read_text())
    assert result["complete"] is False
    assert len(result["cases"]) > 1


def test_every_control_can_be_named_and_reached_by_keyboard(page):
    panel = page.panel
    controls = [
        *(panel.experiments, panel.inputs, panel.slices, panel.prior.combo, panel.quick),
        *(panel.folder, panel.browse, panel.again, page.table, page.start),
    ]
    for control in controls:
        assert control.accessibleName()
        assert control.toolTip()
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus
    page.resize(1200, 620)
    QApplication.processEvents()
    assert page.minimumSizeHint().height() < 620
