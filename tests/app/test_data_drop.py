"""Files and folders can be dropped anywhere on the window."""

import shutil

import pytest
from data_files import CT_SMALL, FOLDER, STUDY
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QMainWindow

from app.data.drop import DropFilter, input_of
from app.data.presenter import DataPresenter
from app.data.recent import RecentFiles
from engine.spec.errors import RequestError

MOVE_OR_COPY = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction
LEFT, NO_KEYS = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def window(qtbot):
    window = QMainWindow()
    window.setCentralWidget(QLineEdit())
    qtbot.addWidget(window)
    window.show()
    return window


def mime_of(*paths):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return mime


def drag(target, mime):
    """Enter, move and drop; whether each was accepted."""
    accepted = []
    at = QPoint(20, 20)
    for event in (
        QDragEnterEvent(at, MOVE_OR_COPY, mime, LEFT, NO_KEYS),
        QDragMoveEvent(at, MOVE_OR_COPY, mime, LEFT, NO_KEYS),
        QDropEvent(QPointF(at), MOVE_OR_COPY, mime, LEFT, NO_KEYS),
    ):
        event.ignore()
        QApplication.sendEvent(target, event)
        accepted.append(event.isAccepted())
        if event.isAccepted() and mime.hasUrls():
            assert event.dropAction() == Qt.DropAction.CopyAction, "files are never moved"
    return accepted


def test_a_dropped_folder_is_opened(qtbot, tasks, window, tmp_path):
    presenter = DataPresenter(tasks, RecentFiles(tasks, tmp_path / "recent.json"))
    DropFilter(window, presenter.open_dropped)
    with qtbot.waitSignal(presenter.opened) as opened:
        assert drag(window, mime_of(STUDY)) == [True] * 3
    assert opened.args[0].name == "MR series 700"
    qtbot.waitUntil(lambda: not tasks.busy)


def test_a_text_field_does_not_take_the_file_as_text(window):
    dropped = []
    DropFilter(window, dropped.append)
    drag(window.windowHandle(), mime_of(CT_SMALL))
    assert dropped == [[str(CT_SMALL)]]
    assert window.centralWidget().text() == ""


def test_the_filter_finds_the_native_window_when_it_is_made_later(qtbot):
    window = QMainWindow()
    qtbot.addWidget(window)
    dropped = []
    DropFilter(window, dropped.append)
    window.show()
    drag(window.windowHandle(), mime_of(CT_SMALL))
    assert len(dropped) == 1


def test_text_and_web_addresses_are_not_ours(window):
    dropped = []
    DropFilter(window, dropped.append)
    text, web = QMimeData(), QMimeData()
    text.setText("hello")
    web.setUrls([QUrl("https://example.org/scan.dcm")])
    assert drag(window, text) == [False] * 3
    assert drag(window, web) == [False] * 3
    assert dropped == []


def test_several_dicom_files_mean_their_folder(tmp_path):
    for name in ("CT_small.dcm", "MR_small.dcm"):
        shutil.copy(FOLDER / name, tmp_path)
    shutil.copy(FOLDER / "MR_small.dcm", tmp_path / "without_suffix")
    assert input_of([str(path) for path in tmp_path.iterdir()]) == str(tmp_path)


def test_a_sidecar_or_header_dropped_along_is_no_second_file(tmp_path):
    names = ("scan.npy", "scan.json"), ("raw.cfl", "raw.hdr"), ("vol.mhd", "vol.raw")
    for pair in names:
        paths = [tmp_path / name for name in pair]
        assert input_of([str(path) for path in paths]) == str(paths[0])


def test_other_drops_are_explained_in_a_sentence(tmp_path):
    (tmp_path / "a.npy").touch()
    (tmp_path / "b.npy").touch()
    below = tmp_path / "below"
    below.mkdir()
    (below / "c.dcm").touch()
    for names, why in (
        (("a.npy", "b.npy"), "not all are DICOM"),
        (("a.npy", "below"), "a folder among them"),
        (("a.npy", "below/c.dcm"), "2 folders"),
    ):
        with pytest.raises(RequestError, match=why) as error:
            input_of([str(tmp_path / name) for name in names])
        assert "Drop one file, one folder" in str(error.value)


def test_a_drop_that_cannot_be_opened_becomes_one_sentence(qtbot, tasks, window, tmp_path):
    presenter = DataPresenter(tasks, RecentFiles(tasks, tmp_path / "recent.json"))
    DropFilter(window, presenter.open_dropped)
    for name in ("a.npy", "b.npy"):
        (tmp_path / name).touch()
    with qtbot.waitSignal(presenter.failed) as failed:
        drag(window, mime_of(tmp_path / "a.npy", tmp_path / "b.npy"))
    assert failed.args[0].startswith("2 files were dropped")
    qtbot.waitUntil(lambda: not tasks.busy)
