"""The real window from its start to its end: settings, help, closing, crashes."""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication, QWidget
from window_driver import HU, LONG, PATIENCE_S, click, press, save_phantom, until

from app.main import main
from app.shell.about import AboutDialog
from app.shell.help_window import pages
from app.theme import Theme
from engine.files.folders import state_folder
from engine.files.record import RunRecord
from engine.spec.errors import RequestError

ROOT = Path(__file__).resolve().parents[2]
CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def restored(qapp):
    palette, style, sheet = qapp.palette(), qapp.style().objectName(), qapp.styleSheet()
    yield qapp
    qapp.setStyleSheet(sheet)
    qapp.setStyle(style)
    qapp.setPalette(palette)


class Shown(QObject):
    """Every window that comes on the screen."""

    def __init__(self):
        super().__init__()
        self.windows = []

    def eventFilter(self, watched, event):
        shown = event.type() == QEvent.Type.Show and isinstance(watched, QWidget)
        if shown and watched.isWindow():
            self.windows.append(repr(watched))
        return False


def start_long_run(bench, folder):
    bench.open(save_phantom(folder), HU)
    bench.fill(method="dc-pnpdp", prior="gaussian", nfe=LONG, cg_iterations=2)
    click(bench.window.left.solver.run)
    entry = bench.runs()[-1]
    until(lambda: (entry.history.last("k") or 0) > 3, what="the run")
    return entry


# -- settings -------------------------------------------------------------------------------


def test_settings_survive_a_restart(benches, restored):
    theme = Theme(restored, "dark")
    bench = benches(theme=theme, loaded=False)
    first = bench.window
    first.menus.actions["theme light"].trigger()
    first.menus.actions["mask"].trigger()
    click(first.left.sections["solver"].head)
    press(first, Qt.Key.Key_F3)
    first.split.setSizes([400, 800, 400])
    sizes = first.split.sizes()
    assert not theme.dark
    bench.close()
    again = benches(theme=theme, loaded=False).window
    assert again.settings.get("theme") == "light"
    assert again.menus.actions["theme light"].isChecked()
    assert not again.menus.actions["mask"].isChecked()
    assert not again.grid._masked
    assert again.left.sections["solver"].folded
    assert again.center.plots.folded
    assert again.split.sizes() == sizes
    assert not again.menus.actions["plots"].isChecked()
    press(again, Qt.Key.Key_F3)
    assert not again.center.plots.folded
    theme.deleteLater()


def test_the_columns_are_put_away_by_their_keys(benches):
    window = benches(loaded=False).window
    for key, part in ((Qt.Key.Key_F2, window.left), (Qt.Key.Key_F4, window.right)):
        press(window, key)
        assert not part.isVisible()
        press(window, key)
        assert part.isVisible()


def test_the_export_dialog_that_is_open_at_the_end_is_remembered(benches, folders):
    bench = benches(loaded=False)
    press(bench.window, Qt.Key.Key_E, CTRL)
    bench.window.files.dialog.folder.setText(str(folders))
    bench.close()
    again = benches(loaded=False).window
    assert again.settings.get("export")["folder"] == str(folders)


def test_nothing_but_the_window_comes_on_the_screen(benches, folders, qapp):
    shown = Shown()
    qapp.installEventFilter(shown)
    bench = benches()
    bench.open(save_phantom(folders), HU)
    bench.fill(method="diffpir")
    qapp.removeEventFilter(shown)
    assert shown.windows == [repr(bench.window)]


# -- tour and help --------------------------------------------------------------------------


def test_the_tour_comes_at_the_first_start_only(benches):
    first = benches(loaded=False)
    window = first.window
    window.first_tour()
    until(lambda: hasattr(window, "tour") and window.tour.running, what="the tour")
    titles = []
    while window.tour.running:
        titles.append(window.tour.bubble.title.text())
        click(window.tour.bubble.nextButton)
    assert titles == ["Data", "Acquisition", "Run", "Images", "Curves"]
    first.close()
    again = benches(loaded=False).window
    again.first_tour()
    QApplication.processEvents()
    assert not hasattr(again, "tour")


def test_the_help_menu_opens_every_page(benches):
    window = benches(loaded=False).window
    for name, page in (
        ("help", "workstation"),
        ("reading", "reading-the-plots"),
        ("formulas", "formulas"),
        ("shortcuts", "shortcuts"),
    ):
        window.menus.actions[name].trigger()
        assert window.help_window.isVisible()
        assert window.help_window.page.name == page
    contents = window.help_window.contents
    for row, page in enumerate(pages()):
        contents.setCurrentRow(row)
        assert window.help_window.page == page
        assert len(window.help_window.view.toPlainText()) > 200


def test_the_page_of_shortcuts_lists_those_of_the_menus(benches):
    window = benches(loaded=False).window
    window.menus.actions["shortcuts"].trigger()
    text = window.help_window.view.toPlainText()
    listing = window.menus.listing()
    assert len(listing) > 15
    for _, action, keys in listing:
        assert keys in text, action
        assert action.rstrip("…") in text


def test_the_log_and_about_open(benches):
    window = benches(loaded=False).window
    window.menus.actions["log"].trigger()
    assert window.log_window.isVisible()
    window.menus.actions["about"].trigger()
    (about,) = window.findChildren(AboutDialog)
    assert about.isVisible()
    until(lambda: about.table.rowCount() > 5, what="the list of licences")
    about.close()


# -- ending ---------------------------------------------------------------------------------


def test_closing_during_a_run_does_not_wait_for_its_end_and_saves_it(benches, folders):
    bench = benches()
    entry = start_long_run(bench, folders)
    path = bench.window.context.run_library.record(entry.run_id)
    bench.close()
    record = RunRecord.read(path)
    assert record.status == "interrupted"
    assert 3 < len(record.history) < LONG


# -- starting from a command line -----------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": None, "demo": "pet"}, "--demo is ct or mri, not 'pet'"),
        ({"path": "scan.npy", "demo": "ct"}, "PATH or --demo, not both"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options, words):
    with pytest.raises(RequestError, match=words):
        main(argparse.Namespace(**options))


def test_without_a_display_it_says_what_to_do_instead(monkeypatch):
    for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(RequestError, match="no display"):
        main(argparse.Namespace(path=None, demo=None))


def loads_the_engine(pid):
    """Whether a process has begun to load torch, which it does behind its window."""
    return "libtorch" in Path(f"/proc/{pid}/maps").read_text()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_terminated_workstation_ends_well(folders):
    env = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.cli", "gui", "--demo", "ct"],
        cwd=ROOT,
        env=env,
        stderr=subprocess.PIPE,
    )
    try:
        sessions = state_folder() / "runs"
        until(lambda: loads_the_engine(process.pid), what="its window")
        assert any(sessions.iterdir())
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    left = [path.name for path in sessions.iterdir()]
    assert left == ["library.sqlite"], "the library was closed and holds nothing"
    assert b"Traceback" not in errors
