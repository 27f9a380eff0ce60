"""Strangers' workspaces in the real window, and what a session leaves behind of a patient."""

import json
import os

import fuzz_files
import pytest
from dicom_files import write_slice
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QMessageBox
from sandbox import Watch
from window_driver import click, sentences, until

from app.shell.crash import CrashFolder, CrashGuard
from app.shell.log import LogBook
from app.widgets import plain_tip
from app.workspace.file import Workspace, runs_folder, write_workspace
from engine.spec.errors import RequestError

MARK, DATE = "zqxheader", "19230405"
FOLDER = "Quillfeather_Zsigmond"  # folders are named after patients, too
SECRETS = (MARK, DATE, "quillfeather", "zsigmond")
TAGS = {
    "PatientName": f"{MARK}^{MARK}",
    "PatientID": f"{MARK}-1",
    "StudyDescription": f"{MARK}-2",
    "SeriesDescription": f"{MARK}-3",
    "InstitutionName": f"{MARK}-4",
    "PatientBirthDate": DATE,
    "StudyDate": DATE,
}


def written(*folders):
    """Every file below, by name, with what is in it."""
    return {
        str(path): path.read_bytes().decode("latin-1").lower()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_log_and_crash_reports_hold_nothing_of_the_patient(qtbot, benches, folders, capsys):
    source = write_slice(folders / FOLDER / f"{FOLDER}.dcm", **TAGS)
    book = LogBook(folders / "log")
    book.start()
    guard = CrashGuard(book, CrashFolder(folders / "crashes"))
    told = []
    guard.crashed.connect(lambda *words: told.append(words))
    guard.install()

    def fail():
        raise ValueError(f"cannot use {source} of {TAGS['PatientName']}")

    try:
        with Watch(all_threads=True) as watch:
            bench = benches()
            bench.open(source)
            bench.run(nfe=2)
            bench.window.data.open(str(source.with_name("gone.dcm")))
            bench.wait_quiet()
            QTimer.singleShot(0, fail)
            until(lambda: told, what="the crash report")
            bench.close()
    finally:
        guard.close()
        book.close()
    files = written(folders / "log", folders / "crashes")
    assert len(files) >= 2
    assert "opened" in "".join(files.values())
    assert "valueerror" in "".join(files.values())
    for name, content in files.items():
        assert not [secret for secret in SECRETS if secret in content], name
    # records and settings name the file, for they lead back to it, but nothing of its header
    for name, content in written(folders / "state", folders / "config").items():
        assert MARK not in content, name
        assert DATE not in content, name
    assert watch.connected == []


@pytest.fixture
def workspace(tmp_path):
    """Writes a workspace with changes in its parts; its path."""
    fuzz_files.save_image(tmp_path)

    def write(**changes):
        body = fuzz_files.workspace() | {"runs": []}
        for name, change in changes.items():
            body[name] = {**body[name], **change}
        path = tmp_path / "w.dualscope"
        path.write_text(json.dumps(body))
        return path

    return write


STRANGE = (
    {"view": {"window": [10**400, 1, 0]}},
    {"view": {"window": [1e308, 1e308, {}]}},
    {"view": {"window": ["x", None, []]}},
    {"solver": {"seed": -1}},
    {"solver": {"seed": 10**30}},
    {"solver": {"seed": True}},
    {"solver": {"settings": [1]}},
    {"solver": {"settings": {"nfe": 10**400}}},
    {"solver": {"settings": {"nfe": {}}, "solver": {"a": 1}}},
    {"solver": {"prior": "/dev/zero", "device": "cuda:99"}},
    {"acquisition": {"views": 10**12, "x" * 999: 1}},
)


def test_strange_values_of_a_workspace_do_no_harm(bench, workspace):
    """Whatever escapes in a slot fails the test."""
    for number, change in enumerate(STRANGE):
        before = bench.window.setup.data
        bench.window.workspaces.open(workspace(**change))
        until(lambda old=before: bench.window.setup.data is not old, what=f"workspace {number}")
        bench.wait_quiet()
        bench.window.messages.queue.clear()


def question(bench):
    return next(iter(bench.window.findChildren(QMessageBox)), None)


@pytest.mark.parametrize("answer", [QMessageBox.StandardButton.No, QMessageBox.StandardButton.Yes])
def test_an_address_on_another_computer_is_asked_about_first(bench, workspace, answer, monkeypatch):
    address, opened = "\\\\server\\share\\x.npy", []
    monkeypatch.setattr(bench.window.data, "open", lambda *data: opened.append(data[0]))
    bench.window.workspaces.open(workspace(data={"text": address}))
    until(lambda: question(bench) is not None, what="the question")
    assert address in question(bench).informativeText()
    assert opened == []
    click(question(bench).button(answer))
    bench.wait_quiet()
    until(lambda: question(bench) is None, what="the question to go")
    assert opened == [address] * (answer == QMessageBox.StandardButton.Yes)
    bench.window.workspaces._pending = None


@pytest.mark.parametrize("place", ["/dev/zero", "/", "./folder/../../x"])
def test_a_workspace_that_names_a_device_or_a_drive_is_refused(bench, workspace, place):
    bench.window.workspaces.open(workspace(data={"text": place}))
    until(lambda: sentences(bench.window), what="a sentence")
    assert "w.dualscope cannot be opened: it names" in sentences(bench.window)[-1]


@pytest.mark.parametrize("words", ["Chest &lt; <img src='//server/x.png'>", "a\n<b>b", "<p>x</p>"])
def test_words_of_a_file_are_never_markup_in_a_tool_tip(qtbot, words):
    document = QTextDocument()
    tip = plain_tip(words)
    document.setHtml(tip)
    assert document.toPlainText() == words


def test_a_series_of_a_stranger_has_a_plain_tip(bench, tmp_path):
    evil = "<img src='//server/share/x.png'>"
    bench.open(write_slice(tmp_path / "a.dcm", SeriesDescription=evil))
    model = bench.window.browser.series.model()
    tips = [
        model.index(row, 0).data(Qt.ItemDataRole.ToolTipRole) for row in range(model.rowCount())
    ]
    assert tips
    assert not any("<img" in tip for tip in tips)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_saving_never_follows_a_link_out_of_the_folder(tmp_path):
    outside, path = tmp_path / "outside", tmp_path / "in" / "w.dualscope"
    outside.mkdir()
    path.parent.mkdir()
    mine = outside / "20250101-120000-abcdef.json"  # named as we name runs
    mine.write_text("mine")
    runs_folder(path).symlink_to(outside, target_is_directory=True)
    with pytest.raises(RequestError, match="link to another folder"):
        write_workspace(path, Workspace())
    assert mine.read_text() == "mine"
    assert not path.exists()
