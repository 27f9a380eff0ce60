"""What the window says about a result: whole sentences where there is room, else short forms."""

import pytest
from PySide6.QtWidgets import QApplication

from app.images.caption import Caption
from app.images.grid import PaneGrid
from app.images.text import verdict_lines
from app.runs.events import RunFinished
from app.runs.result_note import ResultNote
from app.runs.store import RunStore
from app.runs.table_model import describe
from app.session.jobs import without_prior

VERDICTS = {
    "noise": "Noise was fitted: reduced chi-square 0.61.",
    "prior": "Unlike the slices this prior was trained on: prefer TV, or another prior.",
}
METRICS = {"psnr": 31.0, "ssim": 0.9, "psnr_body": 29.5, "ssim_body": 0.85, "hu_mae_body": 12.3}
JOB = {"solver": "dc-pnpdp", "input": "a.npy", "settings": {"nfe": 9}, "preset": "SVCT-20"}


@pytest.fixture
def store(qapp):
    store = RunStore()
    store.create("one", dict(JOB), "DC-PnPDP")
    store.finish(
        RunFinished("one", "done", None, METRICS, 1.0, None, verdicts=VERDICTS, compare_with="tv")
    )
    return store


def test_a_caption_shows_the_longest_form_that_fits(qtbot):
    caption = Caption()
    qtbot.addWidget(caption)
    caption.set_text("#1 DC-PnPDP", "31.00 dB", VERDICTS)
    whole, short, *single = verdict_lines(VERDICTS)
    width = caption.fontMetrics().horizontalAdvance
    for line in (whole, short, *single):
        caption.resize(width(line) + 20, caption.sizeHint().height())
        assert caption.verdict_shown() == line
    assert single == ["Unlike the slices this prior was trained on", "Noise was fitted"]
    caption.resize(40, caption.sizeHint().height())
    assert caption.verdict_shown().endswith("…")
    assert all(sentence in caption.toolTip() for sentence in VERDICTS.values())


def test_a_verdict_moves_no_image(qtbot):
    grid = PaneGrid()
    qtbot.addWidget(grid)
    grid.resize(500, 400)
    pane = grid.add("one", "#1 DC-PnPDP")
    grid.add("two", "#2 TV")
    grid.show()
    qtbot.waitExposed(grid)
    before = pane.view.geometry(), pane.geometry()
    pane.set_caption("#1 DC-PnPDP", 31.0, 0.9, VERDICTS)
    QApplication.processEvents()
    assert (pane.view.geometry(), pane.geometry()) == before


def test_the_note_says_everything_in_whole_and_offers_the_comparison(qtbot, store):
    note = ResultNote(store)
    qtbot.addWidget(note)
    note.set_run("one")
    shown = note.sentences.text()
    assert "In the body: PSNR 29.50 dB, SSIM 0.850, MAE 12.3 HU." in shown
    assert all(sentence in shown for sentence in VERDICTS.values())
    assert note.compareButton.text() == "Run TV to compare"
    with qtbot.waitSignal(note.compare_requested) as asked:
        note.compareButton.click()
    assert asked.args == ["one"]


def test_the_note_is_hidden_without_anything_to_say(qtbot, store):
    note = ResultNote(store)
    qtbot.addWidget(note)
    note.show()
    note.set_run(None)
    assert note.isHidden()
    store.create("two", dict(JOB), "DC-PnPDP")
    note.set_run("two")  # it runs
    assert note.isHidden()
    note.set_run("one")
    assert not note.isHidden()
    store.remove("one")
    assert note.isHidden()


def test_a_familiar_image_offers_no_comparison(qtbot, store):
    store.create("two", dict(JOB), "DC-PnPDP")
    said = {"prior": "Like the slices this prior was trained on."}
    store.finish(RunFinished("two", "done", None, {}, 1.0, None, verdicts=said))
    note = ResultNote(store)
    qtbot.addWidget(note)
    note.set_run("two")
    assert said["prior"] in note.sentences.text()
    assert note.compareButton.isHidden()


def test_the_tip_of_a_run_holds_body_metrics_and_verdicts(store):
    tip = describe(store.get("one"))
    assert "In the body: PSNR 29.50 dB" in tip
    assert VERDICTS["prior"] in tip


def test_the_comparison_is_the_same_scan_with_the_other_method_as_it_comes(store):
    job = without_prior(store.get("one"))
    assert job == {**JOB, "solver": "tv", "settings": {}, "preset": None}
