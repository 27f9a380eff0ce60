"""Run on a range or the whole stack, from the Run button: the panes fill slice by slice."""

import shutil

import numpy as np
import pytest
from PySide6.QtCore import QTimer
from volume_series import save_series
from window_driver import click, held, slowness, until

from app.bench import Heartbeat
from app.pace_book import UNKNOWN
from engine.files.folders import state_folder
from engine.priors.analytic import TVPrior
from engine.workflows.volume.folder import VolumeFolder


@pytest.fixture
def ct(bench):
    window = bench.window
    if window.setup.data is None or window.setup.data.text in window.data.results:
        bench.open(save_series(bench.folder / "phantom.nii"), {"unit": "hu"})
    bench.fill(method="dc-pnpdp", prior="tv", nfe=3, cg_iterations=2, seed=0)
    window.grid.link.set_slice(4)
    bench.wait_quiet()
    yield bench
    window.stacks.presenter.cancel()
    wait_stack(bench)
    bench.wait_quiet()


def wait_stack(bench):
    until(lambda: not bench.window.stacks.presenter.busy, what="the stack")


def run_all(bench):
    """By the menu beside Run; the method's run."""
    window = bench.window
    window.stacks.menu.refresh()
    window.stacks.menu.all.trigger()
    return bench.runs()[-1]


def one_more_stored():
    """Says in the worker itself when a slice of the method is on the disk that was not before."""

    def stored():
        return set((state_folder() / "stacks").glob("*-dc-pnpdp-*/slice-*"))

    before = stored()
    return lambda: bool(stored() - before)


def arrivals(bench):
    """The slices of the method's stack in the order they come to the window."""
    order = []
    bench.window.stacks.presenter.slices_done.connect(
        lambda slices: order.extend((one.run_id, one.number) for one in slices)
    )
    return order


def test_the_whole_stack_comes_nearest_first_with_figures_of_every_slice(ct):
    window, order = ct.window, arrivals(ct)
    entry = run_all(ct)
    wait_stack(ct)
    assert entry.status == "done"
    came = [number for run_id, number in order if run_id == entry.run_id]
    distance = [abs(number - 4) for number in came]
    assert sorted(came) == list(range(8))
    assert distance == sorted(distance), "the nearest slices come first"
    for number in (4, 0, 7):
        window.grid.link.set_slice(number)
        pane = ct.pane(entry.run_id)
        np.testing.assert_array_equal(pane.image, entry.stack.image(number))
        psnr = entry.stack.metrics[number]["psnr"]
        assert f"{psnr:.2f} dB" in pane.caption.numbers, "the figures are those of the slice"
    assert entry.metric("psnr") == pytest.approx(
        np.mean([one["psnr"] for one in entry.stack.metrics.values()])
    )


def test_a_slice_of_the_stack_is_that_of_a_run_on_it_alone(ct):
    entry = run_all(ct)
    wait_stack(ct)
    folder = VolumeFolder.open(entry.stack.folder)
    assert folder.complete
    assert len(folder.stored) == 8
    one = ct.window.context.start_runs([{**_own(entry), "seed": 0}])
    ct.wait_idle()
    single = ct.window.store.get(one[-1])
    np.testing.assert_allclose(single.images[0], entry.stack.image(4), atol=1e-3)


def _own(entry):
    names = ("solver", "settings", "prior", "device", "preset")
    return {name: entry.job[name] for name in names}


def test_scrolling_changes_what_comes_next_and_says_what_is_not_there(ct):
    window, order = ct.window, arrivals(ct)
    ct.fill(nfe=4)
    with held(TVPrior, one_more_stored()):
        entry = run_all(ct)
        until(lambda: entry.stack is not None and entry.stack.metrics, what="a slice")
        window.grid.link.set_slice(0)
        pane = ct.pane(entry.run_id)
        assert pane.image is None
        assert pane._empty_text == "Slice 1 is not computed yet: it is the next."
        assert not pane.offers.isVisible(), "it comes by itself"
        assert window.run_bar.buttons["cancel"].isEnabled()
        assert "being computed" in window.left.solver.run.toolTip()
    wait_stack(ct)
    came = [number for run_id, number in order if run_id == entry.run_id]
    assert came[0] == 4
    assert came.index(0) <= 2, "at most the slice in hand comes before the one looked at"


def test_a_stopped_stack_offers_to_run_here_and_keeps_what_it_has(ct):
    window = ct.window
    ct.fill(nfe=5)
    with held(TVPrior, one_more_stored()):
        entry = run_all(ct)
        until(lambda: entry.stack is not None and entry.stack.metrics, what="a slice")
        click(window.run_bar.buttons["cancel"])
    wait_stack(ct)
    assert entry.status == "cancelled"
    assert 0 < len(entry.stack.metrics) < 8
    window.grid.link.set_slice(7)
    pane = ct.pane(entry.run_id)
    assert pane.image is None
    assert "dB" not in pane.caption.numbers, "figures of another slice"
    here, rest, back = pane.offers.buttons
    assert (here.text(), rest.text()) == ("Run here", "Go on with the stack")
    assert back.text().startswith("Go to slice ")
    click(here)
    ct.wait_idle()
    newest = ct.runs()[-1]
    assert newest.slices == (7,)
    assert ct.pane(newest.run_id).image is not None
    window.grid.link.set_slice(4)
    pane = ct.pane(newest.run_id)
    until(lambda: pane.image is not None, what="the stack's image")
    np.testing.assert_array_equal(pane.image, entry.stack.image(4)), "the stack stands in"
    assert pane.name == entry.name
    window.grid.link.set_slice(7)
    assert ct.pane(newest.run_id).name == newest.name


def test_a_stopped_stack_goes_on_where_it_was(ct):
    window = ct.window
    ct.fill(nfe=7)
    with held(TVPrior, one_more_stored()):
        entry = run_all(ct)
        until(lambda: entry.stack is not None and entry.stack.metrics, what="a slice")
        window.stacks.presenter.cancel()
    wait_stack(ct)
    had, fresh = set(entry.stack.metrics), []
    window.stacks.presenter.slices_done.connect(
        lambda slices: fresh.extend(one.number for one in slices if one.fresh)
    )
    window.grid.link.set_slice(7)
    click(ct.pane(entry.run_id).offers.buttons[1])
    wait_stack(ct)
    whole = ct.runs()[-1]
    assert sorted(whole.stack.metrics) == list(range(8))
    assert not had & set(fresh), "what is stored is not computed again"


def test_one_click_of_the_wheel_empties_nothing_for_good(ct):
    window = ct.window
    entry = ct.run(nfe=6)
    image, numbers = entry.images[0], ct.pane(entry.run_id).caption.numbers
    window.grid.link.set_slice(5)
    pane = ct.pane(entry.run_id)
    assert pane.image is None
    assert pane.caption.numbers == ""
    assert "not computed" in pane._empty_text
    click(pane.offers.buttons[1])
    assert window.panes.slice == 4
    pane = ct.pane(entry.run_id)
    np.testing.assert_array_equal(pane.image, image)
    assert pane.caption.numbers == numbers
    assert not pane.offers.isVisible()


def test_a_finished_stack_is_a_series_of_the_list_and_leads_back(ct):
    window, source = ct.window, ct.window.setup.data
    entry = run_all(ct)
    wait_stack(ct)
    series = window.browser.series
    rows = [series.items.item(row).text() for row in range(series.items.rowCount())]
    mine = next(row for row, text in enumerate(rows) if entry.name in text)
    before = window.setup.data
    series.setCurrentIndex(series.items.index(mine, 0))
    ct.wait_opened(before)
    opened = window.setup.data
    assert (opened.count, opened.kind) == (8, "image")
    window.grid.link.set_slice(2)
    until(lambda: ct.pane("reference").image is not None, what="the slice")
    ct.wait_quiet()
    shown = ct.pane("reference").image
    assert any(np.allclose(shown, entry.stack.image(n), atol=1.0) for n in (2, 5))
    series.setCurrentIndex(series.items.index(0, 0))
    ct.wait_opened(opened)
    assert window.setup.data.text == source.text


def test_the_same_request_finds_its_slices_again(ct):
    ct.fill(nfe=3)
    first = run_all(ct)
    wait_stack(ct)
    again, fresh = [], ct.window.stacks.presenter
    fresh.slices_done.connect(lambda slices: again.extend(one.fresh for one in slices))
    second = run_all(ct)
    wait_stack(ct)
    assert second.stack.folder == first.stack.folder
    assert not any(again), "stored slices are not computed again"


def test_a_range_is_asked_for_with_its_time(ct):
    window = ct.window
    entry = ct.run(nfe=4)
    assert entry.status == "done"
    window.stacks.menu.refresh()
    assert "8 slices, about" in window.stacks.menu.all.text()
    dialog = window.stacks.ask_range()
    dialog.first.setValue(2)
    dialog.last.setValue(3)
    assert dialog.words.text().startswith("Slice by slice: 2 slices, about")
    click(dialog.run)
    wait_stack(ct)
    assert ct.runs()[-1].slices == (1, 2)
    ct.fill(method="diffpir", prior="tv", nfe=3)
    window.settings.set("paces", {})
    assert window.stacks.estimate(8) == UNKNOWN


def test_the_window_answers_while_a_large_stack_streams_and_is_scrolled(ct, tmp_path):
    window, side = ct.window, 512
    rows, columns = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    body = np.where(rows**2 + columns**2 < 0.7, 40.0, -1000.0)
    np.save(tmp_path / "large.npy", np.stack([body + n for n in range(8)]).astype(np.float32))
    ct.open(tmp_path / "large.npy", {"unit": "hu", "pixel_mm": 0.7})
    ct.fill(method="fbp")
    window.stacks.start(0, 1)  # what is made once
    wait_stack(ct)
    ct.wait_quiet()
    beat, hand = Heartbeat(window), QTimer()
    link = window.grid.link
    hand.timeout.connect(lambda: link.set_slice((link.state.slice + 3) % 8))
    beat.start()
    hand.start(40)
    run_all(ct)
    wait_stack(ct)
    hand.stop()
    beat.stop()
    assert len(ct.runs()[-1].stack.metrics) == 8
    assert beat.busiest < 0.05 * slowness()


def test_back_from_a_result_to_its_dicom_series_its_runs_are_there_again(ct, tmp_path):
    window = ct.window
    first = run_all(ct)
    wait_stack(ct)
    shutil.copytree(first.stack.series, tmp_path / "series")
    ct.open(tmp_path / "series")
    ct.fill(nfe=2)
    entry = run_all(ct)
    wait_stack(ct)
    series, opened = window.browser.series, window.setup.data
    rows = [series.items.item(row).text() for row in range(series.items.rowCount())]
    mine = next(row for row, text in enumerate(rows) if entry.name in text)
    series.setCurrentIndex(series.items.index(mine, 0))
    ct.wait_opened(opened)
    result = window.setup.data
    assert result.text == str(entry.stack.series)
    assert not window.panes.belongs(entry)
    series.setCurrentIndex(series.items.index(0, 0))
    ct.wait_opened(result)
    assert window.panes.belongs(entry)
    assert ct.pane(entry.run_id).image is not None
