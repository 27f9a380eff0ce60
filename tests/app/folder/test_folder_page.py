"""A folder of inputs with the real window and the real engine, on tiny images."""

import json

import pytest
from folder_inputs import save_slice, table_rows
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication
from window_driver import HU, LONG, choose, click, held, press, save_phantom, sentences, until

from engine.files.presets import Preset, PresetStore
from engine.priors.analytic import TVPrior


@pytest.fixture
def opened(monkeypatch):
    """What the system was asked to show."""
    shown = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: shown.append(url.toLocalFile()))
    return shown


@pytest.fixture
def page(bench, tmp_path):
    """The page, asked for a quick method on two inputs and a broken one."""
    window = bench.window
    if window.setup.data is None:
        bench.open(save_phantom(bench.folder), HU)
    bench.fill(method="dc-pnpdp", prior="tv", nfe=4, cg_iterations=2)
    for number, name in enumerate(("a.npy", "b.npy")):
        save_slice(tmp_path / "in" / name, number)
    (tmp_path / "in" / "broken.npy").write_bytes(b"x")
    window.menus.actions["folder"].trigger()
    view = window.folders.view
    panel = view.panel
    panel.inputs.setText(str(tmp_path / "in"))
    panel.folder.setText(str(tmp_path / "out"))
    choose(panel.preset, "As set")
    choose(panel.unit, "HU")
    for box in (panel.watch, panel.retry, panel.deidentify, *panel.formats.values()):
        box.setChecked(False)
    panel.formats["npy"].setChecked(True)
    yield view
    view.presenter.cancel()
    until(lambda: not view.presenter.busy, what="the folder to end")
    view.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Files of a test are complete at once."""
    monkeypatch.setattr("app.tools.folder.panel.SETTLE_SECONDS", 0.02)


def finish(view):
    click(view.start)
    until(lambda: not view.presenter.busy, what="the folder")


def column(view, heading):
    where = view.model.table.headings.index(heading)
    return [row[where] for row in view.model.table.rows]


def test_every_input_becomes_a_row_and_a_result(page, tmp_path, opened):
    steps = []
    page.presenter.stepped.connect(lambda step: steps.append(step.fraction))
    click(page.start)
    assert not page.panel.isEnabled()
    assert page.cancel.isEnabled()
    until(lambda: not page.presenter.busy, what="the folder")
    assert column(page, "input") == ["a.npy", "b.npy", "broken.npy"]
    assert column(page, "status") == ["✔ done", "✔ done", "✖ failed"]
    assert all(float(value) > 5 for value in column(page, "PSNR dB")[:2])
    assert column(page, "why not")[2] == "broken.npy cannot be read as a NumPy array."
    assert page.status.text() == "Done: 2 done, 1 failed."
    assert steps
    record = json.loads((tmp_path / "out" / "a" / "RUN.json").read_text())
    assert record["job"]["settings"]["nfe"] == 4
    assert (record["job"]["solver"], record["job"]["prior"]) == ("dc-pnpdp", "tv")
    page.table.selectRow(0)
    press(page.table, Qt.Key.Key_Return)
    page.table.selectRow(2)
    press(page.table, Qt.Key.Key_Return)
    click(page.open_folder)
    assert opened == [str(tmp_path / "out" / "a"), str(tmp_path / "out")]


def test_a_saved_preset_is_offered_and_used(page, tmp_path):
    PresetStore().save(Preset("Few views", "CT", "sirt", {"iterations": 3}, {"views": 6}))
    page.panel.refresh()
    choose(page.panel.preset, "CT: Few views")
    finish(page)
    job = json.loads((tmp_path / "out" / "b" / "RUN.json").read_text())["job"]
    assert (job["solver"], job["settings"]["iterations"]) == ("sirt", 3)
    assert job["acquisition"] == {"views": 6}
    choose(page.panel.preset, "MRI: MRI 6x (paper)")
    assert page.panel.value().request.job.prior == "auto", "the window's prior is for CT"
    assert page.panel.words.text() == "Single coil, acceleration 6."


def test_stop_keeps_what_is_done_and_start_goes_on(bench, page, tmp_path):
    bench.fill(nfe=400)
    with held(TVPrior, lambda: page.bar.value() > 0):
        click(page.start)
        until(lambda: page.bar.value() > 0, what="the first input")
        assert "A folder is being worked through" in bench.window.left.solver.run.toolTip()
        assert bench.window.start_runs([bench.window.left.solver.value()]) == []
        assert bench.window.experiments.presenter.blocked
        click(page.cancel)
    until(lambda: not page.presenter.busy, what="the end")
    assert page.status.text().startswith("Stopped")
    assert "■ stopped" in column(page, "status")
    assert bench.window.left.solver.run.isEnabled()
    bench.fill(nfe=4)
    finish(page)
    assert column(page, "status")[:2] == ["✔ done", "✔ done"]


def test_a_watched_folder_takes_what_is_put_into_it_until_it_is_stopped(page, tmp_path):
    page.panel.watch.setChecked(True)
    click(page.start)
    until(lambda: page.status.text().startswith("Watching"), what="the first inputs")
    save_slice(tmp_path / "in" / "late.npy", 5)
    until(lambda: "late.npy" in str(page.model.table.rows), what="the new input")
    until(lambda: column(page, "status")[-1] == "✔ done", what="its result")
    click(page.cancel)
    until(lambda: not page.presenter.busy, what="the end")
    assert page.status.text() == "Done: 3 done, 1 failed."
    assert table_rows(tmp_path / "out")["late.npy"]["status"] == "done"


def test_files_are_named_as_they_are_and_the_reasons_are_in_the_pages_words(page, tmp_path):
    choose(page.panel.unit, "as the files say")
    save_slice(tmp_path / "in" / "<b>bold<" / "i>.npy")
    finish(page)
    row = column(page, "input").index("<b>bold</i>.npy")
    assert column(page, "why not")[row].endswith(
        "has no unit: say “Arrays in” hu, mu, mu-cm or normalised."
    )
    tip = page.model.data(page.model.index(row, 0), Qt.ItemDataRole.ToolTipRole)
    assert "&lt;b&gt;" in tip, "a file's name was taken for markup"
    assert page.status.textFormat() == Qt.TextFormat.PlainText


def test_what_cannot_start_says_why_and_a_bad_folder_is_one_sentence(bench, page, tmp_path):
    page.panel.formats["npy"].setChecked(False)
    assert page.start.toolTip() == "Tick at least one format."
    page.panel.formats["npy"].setChecked(True)
    page.panel.inputs.setText("")
    assert page.start.toolTip() == "Choose a folder of inputs."
    page.panel.inputs.setText(str(tmp_path / "nowhere"))
    finish(page)
    (said,) = sentences(bench.window)
    assert said.endswith("nowhere is not a folder.")
    assert page.status.text() == f"⚠ {said}"


def test_closing_the_window_ends_a_folder_cleanly(benches, tmp_path):
    bench = benches(recorded=False)
    bench.fill(method="dc-pnpdp", prior="tv", nfe=LONG, cg_iterations=2)
    save_slice(tmp_path / "in" / "a.npy")
    bench.window.menus.actions["folder"].trigger()
    view = bench.window.folders.view
    view.panel.inputs.setText(str(tmp_path / "in"))
    view.panel.folder.setText(str(tmp_path / "out"))
    choose(view.panel.unit, "HU")
    view.panel.watch.setChecked(True)
    click(view.start)
    until(lambda: view.bar.value() > 0, what="the input")
    worker = view.presenter.worker
    bench.window.close()
    assert not bench.window.isVisible()
    bench.close()
    assert not worker.alive, "the thread outlives the window"
    assert table_rows(tmp_path / "out")["a.npy"]["status"] == "stopped"


def test_every_control_can_be_named_and_reached_by_keyboard(page):
    panel = page.panel
    controls = [panel.inputs, panel.browse_inputs, panel.folder, panel.browse_folder, panel.preset]
    controls += [panel.unit, panel.watch, panel.retry, panel.deidentify, *panel.formats.values()]
    for control in [*controls, page.table, page.start]:
        assert control.accessibleName()
        assert control.toolTip()
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus
    page.resize(1000, 520)
    QApplication.processEvents()
    assert page.minimumSizeHint().height() < 520
