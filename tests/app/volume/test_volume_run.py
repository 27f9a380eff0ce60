"""Whole volumes with the real window and the real engine, on tiny slices."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMessageBox
from volume_series import save_series
from window_driver import choose, click, held, press, sentences, until

from app.background import TABLE, Mailbox
from engine.priors.analytic import TVPrior
from engine.workflows.volume.folder import VolumeFolder


@pytest.fixture
def page(bench, tmp_path):
    window = bench.window
    if window.setup.data is None:
        bench.open(save_series(bench.folder / "phantom.nii"), {"unit": "hu"})
    bench.fill(method="dc-pnpdp", prior="tv", nfe=3, cg_iterations=2)
    window.menus.actions["volume"].trigger()
    view = window.volumes.view
    view.panel.folder.setText(str(tmp_path / "slices"))
    view.panel.couple.setChecked(False)
    choose(view.panel.place.kind, "this computer")
    yield view
    view.presenter.cancel()
    until(lambda: not view.presenter.busy, what="the volume to end")
    bench.wait_quiet()
    window.volumes.browser.close()
    window.volumes.browser.sources = {}
    view.close()


def finish(view):
    click(view.start)
    until(lambda: not view.presenter.busy, what="the volume")


def column(view, heading):
    where = view.model.table.headings.index(heading)
    return [row[where] for row in view.model.table.rows]


def wait_looked(bench):
    looking = bench.window.volumes.browser
    until(
        lambda: looking.view is not None and looking.view.panes.panes[2].image is not None,
        what="the cuts",
    )
    bench.wait_quiet()
    return looking.view


def test_a_series_becomes_a_table_of_slices_and_a_volume_to_look_at(bench, page, tmp_path):
    assert "DC-PnPDP" in page.panel.words.text()
    assert not page.look.isEnabled()
    assert page.panel.time.text().startswith("On this computer: 8 slices, ")
    steps = []
    page.presenter.stepped.connect(lambda step: steps.append(step.fraction))
    finish(page)
    assert page.status.text() == "Done: all 8 slices are stored."
    assert column(page, "slice") == [str(n) for n in range(1, 9)]
    assert column(page, "status") == ["✔ stored"] * 8
    assert all(float(psnr) > 10 for psnr in column(page, "PSNR dB"))
    assert steps == sorted(steps), "the progress went back"
    assert steps[-1] == 1
    page.table.selectRow(5)
    press(page.table, Qt.Key.Key_Return)
    view = wait_looked(bench)
    assert view.panes.voxel[0] == 5
    shown = view.facts["A"]
    assert shown.figures.flicker > 0
    assert view.table.figures.table.rows[0][1].startswith(f"{shown.figures.axes[0][0]:.2f} dB")
    plan = json.loads((tmp_path / "slices" / "volume.json").read_text())["plan"]
    assert (plan["job"]["settings"]["nfe"], plan["job"]["prior"]) == (3, "tv")
    assert plan["job"]["settings"]["couple_z"] == 0


def test_stop_keeps_what_is_stored_and_start_goes_on_while_the_view_fills(bench, page, tmp_path):
    with held(TVPrior, lambda: list((tmp_path / "slices").glob("slice-*"))):
        click(page.start)
        until(lambda: page.model.table.rows and page.model.table.stored >= 4, what="a batch")
        assert "A volume is being computed" in bench.window.left.solver.run.toolTip()
        assert bench.window.folders.presenter.blocked
        click(page.cancel)
    until(lambda: not page.presenter.busy, what="the end")
    stored = page.model.table.stored
    assert 4 <= stored < 8, "it was to be stopped half way"
    assert page.status.text().startswith(f"Stopped: {stored} of 8 slices are stored")
    click(page.look)
    view = wait_looked(bench)
    assert len(view.facts["A"].stored) == stored
    coronal = view.panes.panes[1].image
    assert np.isnan(coronal[0]).all(), "the top slice is not there yet"
    assert np.isfinite(coronal[-1]).all()
    assert not view.export.isEnabled()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "slices").glob("slice-*")}
    finish(page)
    bench.wait_quiet()
    assert page.notes.text().startswith(f"{stored} of 8 slices are done already.")
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    assert len(view.facts["A"].stored) == 8
    assert np.isfinite(view.panes.panes[1].image).all(), "the view did not fill"
    assert view.export.isEnabled()


def test_coupling_is_asked_for_where_the_method_can(bench, page, tmp_path):
    page.panel.couple.setChecked(True)
    page.panel.weight.setValue(0.5)
    assert page.panel.value().job.settings["couple_z"] == 0.5
    bench.fill(method="fbp")
    assert not page.panel.couple.isEnabled()
    assert "couple_z" not in page.panel.value().job.settings
    finish(page)
    assert VolumeFolder.open(tmp_path / "slices").complete


def test_the_usual_folder_is_named_after_data_and_method_and_found_again(bench, page):
    page.panel.folder.clear()
    first = page.panel.value().folder
    assert "phantom" not in first, "a file's name is often a patient's"
    assert first == page.panel.value().folder
    bench.fill(nfe=5)
    assert page.panel.value().folder != first, "another request would be refused there"


def test_an_unencrypted_cluster_is_asked_about_and_no_is_the_default(bench, page, monkeypatch):
    asked = []
    monkeypatch.setattr(page.presenter.worker, "start", asked.append)
    choose(page.panel.place.kind, "a cluster")
    page.panel.place.address.setText("nonsense")
    assert "is not the address of a Dask scheduler" in page.start.toolTip()
    page.panel.place.address.setText("tcp://gpu-server:8786")
    click(page.start)
    box = QApplication.activeModalWidget()
    assert isinstance(box, QMessageBox)
    assert "unencrypted" in box.text()
    assert box.defaultButton() is box.button(QMessageBox.StandardButton.No)
    press(box, Qt.Key.Key_Return)
    assert not page.presenter.busy
    assert asked == []
    page.panel.place.address.setText("tcp://127.0.0.1:1")
    assert not page.panel.value().exposed, "this computer is no network"


def test_a_folder_of_other_things_and_a_cluster_that_is_not_there_are_one_sentence(
    bench, page, tmp_path
):
    (tmp_path / "slices").mkdir()
    (tmp_path / "slices" / "notes.txt").write_text("x")
    finish(page)
    assert "holds other things (notes.txt): name an empty folder." in sentences(bench.window)[-1]
    page.panel.folder.setText(str(tmp_path / "other"))
    choose(page.panel.place.kind, "a cluster")
    page.panel.place.address.setText("tcp://127.0.0.1:1")
    finish(page)
    assert "Nobody can be reached at tcp://127.0.0.1:1" in page.status.text()


def test_workers_are_told_apart_by_name_and_only_web_pages_are_linked(tmp_path):
    from app.tools.volume.job import Report
    from engine.workflows.volume.reconstruct import WorkerState

    folder = SimpleNamespace(stored=set(), path=tmp_path)
    run = SimpleNamespace(plan=SimpleNamespace(numbers=(4, 5)), folder=folder, dashboard=None)
    mailbox = Mailbox()
    report = Report(run, mailbox)
    for name, state in (("0", "computing"), ("1", "ready"), ("0", "lost"), ("0", "starting")):
        report.take(WorkerState(name, state, 2, 340_000_000))
    table = mailbox.drain().frames[TABLE]
    assert table.workers.rows == (
        ("0", "◌ starting", "2", "340 MB", "restarted 1 ×"),
        ("1", "◌ idle", "2", "340 MB", ""),
    )
    assert [row[:2] for row in table.rows] == [("5", "◌ waiting"), ("6", "◌ waiting")]
    for address, wanted in (("http://here:8787/status", True), ("file:///etc/passwd", False)):
        run.dashboard = address
        report.tell()
        assert bool(mailbox.drain().frames[TABLE].dashboard) is wanted


def test_closing_during_a_volume_ends_it_with_everything_stored(benches, tmp_path):
    bench = benches(recorded=False)
    bench.open(save_series(tmp_path / "phantom.nii"), {"unit": "hu"})
    bench.fill(method="dc-pnpdp", prior="tv", nfe=4, cg_iterations=2)
    bench.window.menus.actions["volume"].trigger()
    view = bench.window.volumes.view
    view.panel.folder.setText(str(tmp_path / "slices"))
    with held(TVPrior, lambda: list((tmp_path / "slices").glob("slice-*"))):
        click(view.start)
        until(lambda: view.model.table.rows and view.model.table.stored >= 4, what="a batch")
        click(view.look)
        wait_looked(bench)
        worker = view.presenter.worker
        assert worker.alive
        bench.window.close()
    bench.close()
    assert not worker.alive, "the thread outlives the window"
    assert len(VolumeFolder.open(tmp_path / "slices").stored) >= 4


def test_every_control_can_be_named_and_reached_by_keyboard(page):
    panel, place = page.panel, page.panel.place
    controls = [panel.couple, panel.folder, panel.browse, place.kind, place.workers]
    controls += [place.address, *place.files.values(), *place.browse.values()]
    for control in [*controls, page.table, page.start, page.look]:
        assert control.accessibleName()
        assert control.toolTip()
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert page.minimumSizeHint().height() < 700
