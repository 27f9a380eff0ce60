"""Where is it guessing? In the real window with the real engine, on a tiny image."""

import threading
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QApplication
from window_driver import (
    HU,
    LONG,
    PATIENCE_S,
    click,
    held,
    phantom,
    save_phantom,
    sentences,
    until,
)

from app.tools.trust.model import CERTIFICATE, PULL, SPLIT, SPREAD, TITLES
from app.tour import parts as tour
from app.tour.visit import Camera, Visit, walk
from engine.export.outputs import physical_array
from engine.physics.fourier import fft2c
from engine.priors.analytic import TVPrior
from engine.runs.reopen import Rebuilder
from engine.runs.rerun import run_again
from engine.spec.control import RunControl
from engine.workflows.trust import words
from engine.workflows.trust.assess import conclude, noise_weights
from engine.workflows.trust.split import Spread


@pytest.fixture
def run(bench):
    """A finished run on noisy data, the current one; made once."""
    if not bench.runs():
        bench.open(save_phantom(bench.folder), HU)
        bench.window.left.ct.set_values({"views": 12, "gaussian_noise": 0.01})
        bench.wait_quiet()
        bench.run()
    entry = bench.runs()[-1]
    bench.window.show_run(entry.run_id)
    return entry


@pytest.fixture
def page(bench, run):
    bench.window.menus.actions["trust"].trigger()
    view = bench.window.trust.view
    until(lambda: view.pages[SPLIT].reading.text(), what="the explanations")
    view.seeds.setValue(3)
    yield view
    view.presenter.cancel()
    until(lambda: not view.presenter.busy, what="the end")
    view.close()


def ask(view, kind):
    view.choose(kind)
    click(view.compute)
    until(lambda: not view.presenter.busy, what=TITLES[kind])
    return view.pages[kind]


def engines_own(entry, seeds=3):
    """What the command line would find out about the recorded run."""
    rebuilt = Rebuilder().rebuild(entry.record_path, entry.job)
    prepared, spread, first = rebuilt.prepared, Spread(), None
    for seed in range(seeds):
        made = run_again(prepared, rebuilt.k, RunControl(), seed=seed)
        first = first or made
        spread.add(physical_array(made.problem, made.image))
    return conclude(first, spread, seeds, None, noise_weights(prepared))


def test_every_map_is_the_engines_and_explains_itself(bench, run, page):
    found = engines_own(run)
    split = ask(page, SPLIT)
    measured, guessed, over = split.panes
    assert np.allclose(measured.image, found.measured()[0], atol=0.05)
    assert np.allclose(guessed.image, found.guessed()[0], atol=0.05)
    assert guessed.signed
    assert np.array_equal(over.values, np.abs(guessed.image))
    assert np.array_equal(over.image, run.images[0])
    assert np.allclose(measured.image + guessed.image, run.images[0], atol=0.05)
    assert f"{100 * found.split.detail[0]:.0f} % of the edges inside the body" in split.says.text()
    spread = ask(page, SPREAD)
    assert np.allclose(spread.panes[0].image, found.spread.sd[0], atol=1e-3)
    assert spread.panes[0].image.any()
    assert spread.says.text() == found.spread_sentence()
    pull = ask(page, PULL)
    assert np.array_equal(pull.panes[0].image, found.pull[0])
    certificate = ask(page, CERTIFICATE)
    (own,) = found.certificates
    assert certificate.plot.certificate == own
    assert words.verdict_sentence(own) in certificate.says.text()
    assert own.verdict in ("fits", "worse", "closer")
    for kind, said in words.ALL.items():
        shown = page.pages[kind]
        page.choose(kind)
        for label, sentence in (
            (shown.reading, said.how_to_read),
            (shown.limits, said.cannot_tell),
        ):
            assert sentence in label.text()
            assert label.isVisible()
            assert label.height() >= label.heightForWidth(label.width())


def test_maps_have_colour_bars_and_move_with_the_images(bench, run, page):
    split = ask(page, SPLIT)
    link = bench.window.grid.link
    for pane in split.panes:
        assert pane.link is link
    for pane in split.panes[1:]:
        assert pane.overlay.text.bar is not None
        assert pane.overlay.text.bar.unit == "HU"
    link.set_cursor((0.0, 0.0))
    row = column = 32
    assert f"@ ({column}, {row})" in split.panes[2].readout()
    value = split.panes[2].values[row, column]
    assert split.panes[2].readout().startswith(f"{value:.4g} HU over ")
    link.set_cursor(None)
    before = split.panes[0].view.canvas.transform().m11()
    link.set_zoom(2.0)
    assert split.panes[0].view.canvas.transform().m11() == pytest.approx(2 * before)
    link.reset()
    drawn = split.panes[2].snapshot()
    colours = {drawn.pixelColor(x, drawn.height() // 2).rgb() for x in range(drawn.width())}
    assert any((rgb >> 16 & 255) > (rgb & 255) + 40 for rgb in colours), "nothing is orange"
    split.panes[2].maximise_requested.emit()
    assert [pane.isVisible() for pane in split.panes] == [False, False, True]
    split.panes[2].maximise_requested.emit()
    assert all(pane.isVisible() for pane in split.panes)


def test_stopping_the_spread_keeps_the_seeds_that_are_done(page, monkeypatch):
    asked, stopped = [], threading.Event()

    def unsettled(spread, below=None):
        asked.append(None)
        if len(asked) >= 3:  # after the third seed it goes no further before it is stopped
            assert stopped.wait(PATIENCE_S)
        return False

    def stop_at_three(step):
        if step.words.lower().startswith("seed 3 of 40"):
            page.presenter.cancel()
            stopped.set()

    monkeypatch.setattr("engine.workflows.trust.split.Spread.settled", unsettled)
    page.seeds.setValue(40)
    page.presenter.stepped.connect(stop_at_three)
    spread = ask(page, SPREAD)
    page.presenter.stepped.disconnect(stop_at_three)
    count = int(spread.says.text().split(" of 40 seeds")[0])
    assert 2 <= count <= 3
    assert spread.panes[0].image is not None
    assert page.status.text() == "Stopped: what is done is kept."
    click(page.compute)
    page.presenter.cancel()
    until(lambda: not page.presenter.busy, what="the end")
    assert spread.panes[0].image is not None, "an older map was lost"


def test_answers_belong_to_their_run(bench, run, page):
    window = bench.window
    ask(page, CERTIFICATE)
    says = page.pages[CERTIFICATE].says
    other = next(entry for entry in bench.runs() if entry.run_id != run.run_id)
    window.show_run(other.run_id)
    assert page.head.text().startswith(other.name)
    assert not says.text()
    window.show_run(run.run_id)
    assert says.text().startswith("Reduced chi-square")
    place, entry = window.store.remove(run.run_id)
    assert not says.text()
    window.store.add(entry, place)
    window.show_run(run.run_id)
    assert not says.text(), "an answer outlived its run"


def test_nothing_is_asked_while_a_run_computes_and_no_run_starts_meanwhile(bench, run, page):
    window = bench.window
    page.choose(SPREAD)
    page.seeds.setValue(64)
    with held(TVPrior, lambda: True):
        click(page.compute)
        assert "Where is it guessing?" in window.left.solver.run.toolTip()
        assert window.start_runs([window.left.solver.value()]) == []
        assert window.experiments.presenter.blocked
        click(page.stop)
    until(lambda: not page.presenter.busy, what="the end")
    assert not window.experiments.presenter.blocked
    bench.fill(method="dc-pnpdp", prior="tv", nfe=LONG, cg_iterations=3)
    click(window.left.solver.run)
    assert not page.compute.isEnabled()
    assert "A run is going on" in page.status.text()
    window.trust.ask(SPLIT)
    assert not page.presenter.busy
    assert "A run is going on" in sentences(window)[-1]
    window.runs.cancel()
    bench.wait_idle()
    newest = bench.runs()[-1]
    window.store.remove(newest.run_id)
    assert page.status.text() == "Choose a finished run in the list of runs."


def test_data_that_are_gone_give_one_sentence(bench, run, page):
    path = Path(run.job["input"])
    path.rename(path.with_suffix(".away"))
    try:
        ask(page, SPLIT)
    finally:
        path.with_suffix(".away").rename(path)
    (said,) = sentences(bench.window)
    assert "does not exist" in said
    assert "\n" not in said
    assert page.status.text() == f"⚠ {said}"


def test_controls_can_be_named_and_the_page_fits_a_small_screen(bench, page):
    for control in (page.tabs, page.seeds, page.help, page.stop, page.compute):
        assert control.accessibleName()
    for control in (page.seeds, page.help, page.stop, page.compute):
        assert control.toolTip()
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus
    page.resize(1240, 660)
    QApplication.processEvents()
    assert page.minimumSizeHint().height() < 660
    assert page.minimumSizeHint().width() < 1240
    assert ("Tools", "Where is it guessing?…", "Ctrl+G") in bench.window.menus.listing()


def test_the_tour_shows_it(bench, run, tmp_path):
    window = bench.window
    visit = Visit(window, Camera(window, tmp_path, QSize(1280, 720)), tmp_path, tmp_path, 4)
    said = []
    assert walk(visit, tour.TRUST, said.append), said
    assert len(list(tmp_path.glob("*.png"))) == len(tour.TRUST)
    window.trust.view.close()
    window.resize(1600, 1000)


def test_a_reopened_run_of_several_mr_slices_is_made_again_for_its_pull(benches, tmp_path):
    volume = np.abs(np.stack([phantom(n) + 1000 for n in range(2)])) / 1500
    np.save(tmp_path / "mr.npy", volume.astype(np.float32))
    bench = benches()
    window = bench.window
    bench.open(tmp_path / "mr.npy", {"kind": "image", "modality": "mr"})
    window.left.slices.box.setCurrentText("all slices")
    entry = bench.run()
    window.workspaces.save(tmp_path / "kept.dualscope")
    bench.wait_quiet()
    window.store.remove(entry.run_id)
    before = {run.run_id for run in bench.runs()}
    window.workspaces.open(tmp_path / "kept.dualscope")
    until(lambda: any(e.images is not None and e.run_id not in before for e in bench.runs()))
    bench.wait_quiet()
    entry = bench.runs()[-1]
    assert len(entry.slices) == 2
    window.grid.link.set_slice(1)
    window.show_run(entry.run_id)
    window.trust.show()
    page = window.trust.view
    problem, image = rebuilt(entry)
    pull = ask(page, PULL)
    assert pull.panes[0].image.max() > 0
    assert not pull.panes[0].signed
    guessed = ask(page, SPLIT).panes[1]
    sampled = problem.operator.mask.to_tensor().expand(1, 1, *image.shape[-2:])[0, 0]
    hidden = fft2c(image[1:]) * ~sampled
    energy = problem.intensity.scale * float(hidden.square().sum().sqrt())
    assert np.sqrt((guessed.image**2).sum()) == pytest.approx(energy, rel=1e-4)
    assert "lines" in ask(page, CERTIFICATE).says.text()
    window.grid.link.set_slice(0)
    assert page.head.text().endswith("slice 1")
    assert page.pages[SPLIT].answer is None


def rebuilt(entry):
    found = Rebuilder().rebuild(entry.record_path, entry.job)
    return found.prepared.problem, found.image


def test_closing_the_window_mid_way_leaves_no_thread(benches, tmp_path):
    bench = benches()
    bench.open(save_phantom(tmp_path), HU)
    bench.run()
    bench.window.trust.show()
    view = bench.window.trust.view
    view.seeds.setValue(64)
    steps = []
    view.presenter.stepped.connect(steps.append)
    view.choose(SPREAD)
    assert view.status.text().startswith("64 seeds: about"), "the time is said beforehand"
    click(view.compute)
    until(lambda: steps, what="the first step")
    presenter = view.presenter
    bench.window.close()
    assert not bench.window.isVisible()
    bench.close()
    assert not presenter.worker.alive, "the thread outlives the window"
