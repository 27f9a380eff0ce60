"""Step 4 with the real window and the real engine: runs, watched and steered."""

import re

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from window_driver import (
    HU,
    LONG,
    click,
    held,
    press,
    save_phantom,
    sentences,
    stands_at,
    unhurried,
    until,
)

from app.session.panes import PLANES
from engine.priors.analytic import TVPrior

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def ct(bench):
    if bench.window.setup.data is None:
        bench.open(save_phantom(bench.folder), HU)
    return bench


@pytest.fixture
def going(ct):
    """A run of many iterations that has begun to show itself."""
    ct.fill(method="dc-pnpdp", prior="tv", nfe=LONG, cg_iterations=3)
    click(ct.window.left.solver.run)
    until(lambda: ct.runs()[-1].history.last("k") is not None, what="the first iteration")
    return ct


def newest(bench):
    return bench.runs()[-1]


def test_both_methods_run_side_by_side_and_show_themselves_live(ct):
    window, seen = ct.window, {}
    window.runs.frame.connect(lambda run_id, frame: seen.setdefault(run_id, []).append(frame.k))
    ct.fill(method="dc-pnpdp", prior="tv", nfe=8, cg_iterations=3)
    with unhurried():
        window.menus.actions["both"].trigger()
        until(lambda: window.runs.state == "running", what="the start")
        ours, other = ct.runs()[-2:]
        assert (ours.solver, other.solver) == ("dc-pnpdp", "diffpir")
        told = re.compile(r"DC-PnPDP \d/8, DiffPIR \d/8")
        until(lambda: told.search(window.run_bar.status.text()), what="the progress in words")
        assert window.run_bar.bar.value() > 0
        assert "data" in window.run_bar.times.text()
        assert not window.left.solver.run.isEnabled()
        ct.wait_idle()
    for entry in (ours, other):
        assert entry.status == "done"
        assert len(set(seen[entry.run_id])) > 1, "frames came only at the end"
        np.testing.assert_array_equal(ct.pane(entry.run_id).image, entry.images[0])
        assert entry.history.column("k").tolist() == list(range(1, 9))
    assert ours.job["seed"] == other.job["seed"]
    assert window.left.solver.run.isEnabled()


def test_the_curves_of_both_runs_grow_in_the_same_plots(ct):
    plots = ct.window.center.plots
    ct.fill(method="dc-pnpdp", prior="tv", nfe=6)
    click(ct.window.left.solver.both)
    ct.wait_idle()
    until(lambda: not plots._timer.isActive(), what="the plots")
    for entry in ct.runs()[-2:]:
        x, y = plots.residual.curves[entry.run_id].getData()
        assert x.tolist() == [1, 2, 3, 4, 5, 6]
        assert np.isfinite(y).all()
        assert plots.psnr.curves[entry.run_id].getData()[1][-1] == pytest.approx(
            entry.history.last("psnr")
        )


def test_the_direct_image_is_made_along_with_the_first_run(ct):
    ct.run(nfe=3)
    ct.run(nfe=4)
    assert [entry.solver for entry in ct.runs()].count("fbp") == 1


def test_pause_step_and_resume_by_their_keys(going):
    window, entry = going.window, newest(going)
    press(window, Qt.Key.Key_P, CTRL)
    until(lambda: window.runs.state == "paused", what="the button")
    stood = stands_at(window.runs, entry.run_id)
    assert stands_at(window.runs, entry.run_id) == stood == entry.history.last("k")
    assert window.run_bar.buttons["pause"].text() == "Resume"
    press(window, Qt.Key.Key_Period, CTRL)
    until(lambda: entry.history.last("k") > stood, what="one step")
    assert stands_at(window.runs, entry.run_id) == stood + 1 == entry.history.last("k")
    press(window, Qt.Key.Key_P, CTRL)
    until(lambda: entry.history.last("k") > stood + 2, what="the run to go on")


def test_finish_keeps_the_image_of_the_moment(going):
    window, entry = going.window, newest(going)
    press(window, Qt.Key.Key_Return, CTRL)
    going.wait_idle()
    assert entry.status == "finished early"
    assert entry.history.last("k") < LONG
    np.testing.assert_array_equal(going.pane(entry.run_id).image, entry.images[0])


def test_cancel_ends_the_run_within_a_step(going):
    window, entry = going.window, newest(going)
    before = entry.history.last("k")
    press(window, Qt.Key.Key_Escape, CTRL)
    going.wait_idle()
    assert entry.status == "cancelled"
    assert entry.history.last("k") < LONG
    assert entry.history.last("k") >= before
    assert entry.images is not None


def test_the_planes_of_the_run_appear_beside_it(ct):
    window = ct.window
    for action in window.center.bar.plane_actions.values():
        action.trigger()
    entry = ct.run(nfe=5)
    assert window.grid.extra_keys() == list(PLANES)
    for name in PLANES:
        shown = window.grid.extra(name).image
        np.testing.assert_array_equal(shown, entry.last_frame.planes[name])
    x, z = entry.last_frame.planes["x"], entry.images[0]
    np.testing.assert_allclose(window.grid.extra("x - z").image, x - z, atol=0.1)
    for action in window.center.bar.plane_actions.values():
        action.trigger()
    assert window.grid.extra_keys() == []


def test_the_spectra_window_gets_pictures(ct):
    spectra = ct.window.center.plots.spectra
    click(ct.window.center.plots.spectraButton)
    assert spectra.isVisible()
    ct.run(nfe=5)
    until(lambda: spectra.images.images["homogenized"].image is not None, what="the spectra")
    for picture in spectra.images.images.values():
        assert picture.image.shape == (64, 64)
    spectra.close()
    assert not ct.window.center.plots.spectraButton.isChecked()


def test_a_run_that_fails_is_one_message_with_details_and_the_window_goes_on(ct):
    window = ct.window
    ct.fill(method="dc-pnpdp", prior=str(ct.folder / "no-such-prior.safetensors"), nfe=3)
    click(window.left.solver.run)
    ct.wait_idle()
    assert newest(ct).status == "failed"
    errors = [message for message in window.messages.queue.messages if message.error]
    assert len(errors) == 1
    assert "no-such-prior.safetensors" in errors[0].sentence
    assert errors[0].details
    assert window.messages.detailsButton.isVisible()
    press(window, Qt.Key.Key_Escape)
    assert not sentences(window)
    assert ct.run(nfe=3).status == "done"


def test_a_measurement_with_nan_is_one_message_and_the_window_goes_on(bench):
    path = save_phantom(bench.folder, slices=3, name="broken.npy")
    images = np.load(path)
    images[1, 5, 5] = np.nan
    np.save(path, images)
    bench.open(path, HU)
    bench.window.panes.grid.link.set_slice(0)
    choice = bench.window.left.slices.box
    choice.setCurrentIndex(choice.findData("all"))
    assert bench.run(nfe=3).status == "failed"
    errors = [text for text in sentences(bench.window) if "NaN" in text]
    assert len(errors) == 1
    assert "slice 1 (counted from 0)" in errors[0]
    choice.setCurrentIndex(choice.findData("this"))
    assert bench.run(nfe=3).status == "done"


def test_a_range_of_slices_is_reconstructed_and_each_shows_its_own(bench):
    bench.open(save_phantom(bench.folder, slices=4, name="four.npy"), HU)
    slices = bench.window.left.slices
    slices.box.setCurrentIndex(slices.box.findData("range"))
    slices.first.setValue(2)
    slices.last.setValue(3)
    entry = bench.run(nfe=3)
    assert entry.slices == (1, 2)
    assert entry.images.shape[0] == 2
    for number in (1, 2):
        bench.window.panes.grid.link.set_slice(number)
        np.testing.assert_array_equal(bench.pane(entry.run_id).image, entry.images[number - 1])
    bench.window.panes.grid.link.set_slice(0)
    assert bench.pane(entry.run_id).image is None


def test_touching_the_images_during_a_run_disturbs_nothing(going):
    window, pane = going.window, going.pane(newest(going).run_id)
    pane.setFocus()
    for key in (Qt.Key.Key_2, Qt.Key.Key_I, Qt.Key.Key_Plus, Qt.Key.Key_R, Qt.Key.Key_Space):
        QTest.keyClick(pane, key)
        QApplication.processEvents()
    assert window.runs.state == "running"
    assert not sentences(window)


def test_a_preview_stands_until_the_run_is_better_and_is_kept_nowhere(bench):
    window, shown = bench.window, []
    bench.open("demo:ct")
    window.runs.preview.connect(lambda run_id, preview: shown.append(preview.factor))
    bench.fill(method="dc-pnpdp", prior="tv", nfe=40, cg_iterations=2)
    with held(TVPrior, lambda: bool(shown)):
        click(window.left.solver.run)
        until(lambda: shown, what="the preview")
        entry = bench.runs()[-1]
        pane = bench.pane(entry.run_id)
        assert pane.name == f"{entry.name}, preview at 1/2 of its size"
        assert pane.annotations.run_lines[0] == "PREVIEW"
        assert pane.image.shape == bench.pane("reference").image.shape
        assert (entry.images, entry.nfe, entry.metrics) == (None, None, {})
        assert "dB" not in pane.caption.numbers
    bench.wait_idle()
    pane = bench.pane(entry.run_id)
    assert pane.name == entry.name
    assert "PREVIEW" not in pane.annotations.run_lines
    assert entry.nfe == 40
    np.testing.assert_array_equal(pane.image, entry.images[0])
