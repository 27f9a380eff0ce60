"""Small habits: what a comparison begins with, where a dialog opens, colours on paper."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from window_driver import until

from app.runs.store import RunStore
from app.window import OPEN_DATA
from engine.export.report import styles_of


@pytest.fixture
def opened(bench):
    bench.open("demo:ct")
    return bench.window


def test_a_comparison_begins_with_dc_pnpdp_against_the_reference(opened):
    data, store = opened.setup.data, opened.store
    for run_id, solver in (("a", "dc-pnpdp"), ("b", "diffpir")):
        job = {"input": data.text, "options": data.options, "solver": solver}
        store.create(run_id, job, solver)
    opened.panes.follow()
    assert opened.grid.keys() == ["reference", "a", "b"]
    assert opened.grid.compare_keys() == ("a", "reference")
    store.change("a", visible=False)
    opened.panes.follow()
    assert opened.grid.compare_keys() == ("b", "reference")


def test_open_begins_in_the_folder_of_the_last_time(opened, tmp_path):
    menu = opened.browser.menu
    (tmp_path / "x.npy").write_bytes(b"")
    menu._on_selected(str(tmp_path / "x.npy"))  # as the dialog says it
    menu.ask_file()
    assert Path(menu.dialog.directory().absolutePath()) == tmp_path
    menu.dialog.reject()
    until(lambda: menu.dialog is None, what="the dialog to go")
    assert opened.context.folder_for("open") == str(tmp_path)
    until(lambda: not opened.tasks.busy, what="the empty file to be refused")
    opened.messages.queue.clear()


def test_a_report_has_the_colours_and_dashes_of_the_window(opened):
    jobs = [
        {"solver": "dc-pnpdp"},
        {"solver": "diffpir"},
        {"solver": "dc-pnpdp", "settings": {"nfe": 10}},
        {"solver": "dc-pnpdp", "settings": {"injection": "awgn"}},
        {"solver": "fbp"},
    ]
    store = RunStore()
    entries = [store.create(str(number), job, "") for number, job in enumerate(jobs)]
    of_window = [(one.colour, " ".join(f"{part:g}" for part in one.dash)) for one in entries]
    assert styles_of(jobs) == of_window
    assert len(set(of_window)) == len(jobs)


def test_names_of_tools_are_whole_or_not_there(opened):
    bar, before = opened.center.bar, opened.size()
    for width in (1280, 1500, 1700, 2000, 2600):
        opened.resize(width, 900)
        QApplication.processEvents()
        for button in (*bar.tools.values(), *bar.modes.values()):
            assert button.width() >= button.sizeHint().width(), (width, button.text())
    assert bar.tool_buttons.labelled, "there is room for all names"
    opened.resize(before)


def test_the_tour_does_not_ask_to_open_what_is_open(opened):
    opened.start_tour()
    assert opened.tour.steps[0][2] == OPEN_DATA
    opened.tour.end()
