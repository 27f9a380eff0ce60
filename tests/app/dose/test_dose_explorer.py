"""The dose explorer with the real window and the real engine, on tiny images."""

from itertools import count

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from window_driver import HU, choose, click, held, press, save_phantom, until

from app.pace_book import UNKNOWN
from engine.files.record import RunRecord
from engine.priors.analytic import TVPrior
from engine.spec.marks import RESEARCH


@pytest.fixture
def page(bench):
    window = bench.window
    if window.setup.data is None:
        bench.open(save_phantom(bench.folder), HU)
    bench.fill(method="dc-pnpdp", prior="tv", nfe=4, cg_iterations=4)
    window.menus.actions["dose"].trigger()
    view = window.doses.view
    choose(view.panel.box, "Views")
    view.panel.values.setText("4, 12, 40")
    yield view
    view.presenter.cancel()
    until(lambda: not view.presenter.busy, what="the sweep to end")
    bench.wait_quiet()
    view.close()


def sweep(view):
    click(view.start)
    until(lambda: not view.presenter.busy, what="the sweep")


def column(view, heading):
    where = view.model.table.headings.index(heading)
    return [row[where] for row in view.model.table.rows]


def test_one_click_gives_an_image_and_a_point_of_the_curve_for_every_dose(bench, page):
    window = bench.window
    window.settings.set("paces", {})
    page.panel.refresh()
    assert page.panel.time.text() == f"3 images, {UNKNOWN}"
    window.grid.link.set_zoom(2.0)
    sweep(page)
    assert column(page, "dose") == ["4 views", "12 views", "40 views"]
    quality = [float(value) for value in column(page, "PSNR dB")]
    assert quality == sorted(quality)
    assert quality[-1] > quality[0] + 3, "more views were to be better"
    assert page.grid.keys() == ["truth", "4", "12", "40"]
    assert page.link.state.zoom == 2.0, "the crop is that of the main window"
    x, y = page.plots["psnr"].curves["ours"].getData()
    assert x.tolist() == [4, 12, 40]
    np.testing.assert_allclose(y, quality, atol=0.01)
    assert "direct" in page.plots["ssim"].curves
    assert page.panel.time.text().startswith("3 images, about")
    window.grid.link.reset()


def test_a_tile_becomes_a_run_with_its_record(bench, page):
    sweep(page)
    page.table.selectRow(1)
    press(page.table, Qt.Key.Key_Return)
    entry = bench.runs()[-1]
    until(lambda: entry.record_path is not None, what="the record")
    tile = page.tiles[1]
    np.testing.assert_array_equal(bench.pane(entry.run_id).image, tile.images[0])
    assert entry.job["acquisition"]["views"] == 12
    assert (entry.status, entry.nfe, entry.note) == ("done", 4, "12 views")
    record = RunRecord.read(entry.record_path)
    assert record.status == "done"
    assert entry.metric("psnr") == pytest.approx(float(column(page, "PSNR dB")[1]), abs=0.01)


def test_the_picture_carries_all_tiles_and_the_mark(bench, page, tmp_path):
    sweep(page)
    path = tmp_path / "doses.png"
    page.save_picture(path)
    bench.wait_quiet()
    picture = QImage(str(path))
    pane = page.grid.pane("4").picture()
    assert picture.width() >= 4 * min(pane.width(), page.grid.pane("truth").picture().width())
    assert picture.text("Comment") == RESEARCH
    assert "Views" in picture.text("Title")


def test_cancel_keeps_what_is_there(bench, page):
    calls = count()
    with held(TVPrior, lambda: next(calls) >= 5):  # the first image takes four
        click(page.start)
        until(lambda: page.tiles, what="a tile")
        assert "dose sweep" in bench.window.left.solver.run.toolTip()
        click(page.cancel)
    until(lambda: not page.presenter.busy, what="the end")
    assert len(page.tiles) == 1
    assert len(page.grid.keys()) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [("4, many", "Type numbers"), ("4", "Give from 2"), ("4, 12.5", "whole"), ("0, 4", "above")],
)
def test_what_cannot_be_swept_is_said_under_the_field(page, text, said):
    page.panel.values.setText(text)
    assert said in page.panel.fault.text()
    assert not page.start.isEnabled()


def test_a_dose_that_cannot_be_is_a_row_that_says_why(bench, page):
    page.panel.values.setText("4, 99999")
    sweep(page)
    assert len(page.tiles) == 1
    assert "10000" in column(page, "note")[1].replace(",", "")


def test_calls_are_offered_only_for_methods_that_make_them(bench, page):
    bench.fill(method="fbp")
    page.panel.refresh()
    assert page.panel.box.findText("NFE (denoiser calls)") < 0
    bench.fill(method="dc-pnpdp", prior="tv")
    page.panel.refresh()
    choose(page.panel.box, "NFE (denoiser calls)")
    page.panel.values.setText("2, 3")
    sweep(page)
    assert [tile.history[-1]["nfe"] for tile in page.tiles] == [2, 3]


def test_of_an_mr_image_the_acceleration_is_swept(bench, page, tmp_path):
    before = bench.window.setup.data
    np.save(tmp_path / "mr.npy", np.load(save_phantom(tmp_path)) / 1500 + 1)
    bench.open(tmp_path / "mr.npy", {"kind": "image", "modality": "mr"})
    bench.fill(method="dc-pnpdp", prior="tv", nfe=3)
    page.panel.refresh()
    assert page.panel.box.findText("Views") < 0
    choose(page.panel.box, "Acceleration R")
    page.panel.values.setText("2, 8")
    sweep(page)
    less, more = (float(value) for value in column(page, "PSNR dB"))
    assert less > more
    assert "direct" in page.plots["psnr"].curves
    bench.open(before.text, before.options)
