"""The presenter opens in the background, keeps what is open, and reads only what is wanted."""

import threading

import numpy as np
import pytest
from data_files import CT_SMALL, RAYS, STUDY, VOLUME, sinogram_file, volume_file
from PySide6.QtWidgets import QApplication

from app.data import opening
from app.data.presenter import DataPresenter
from app.data.recent import RecentFiles
from app.data.thumbnails import PreviewCache


@pytest.fixture
def presenter(tasks, tmp_path, qtbot):
    recent = RecentFiles(tasks, tmp_path / "config" / "recent.json")
    presenter = DataPresenter(tasks, recent)
    yield presenter
    qtbot.waitUntil(lambda: not tasks.busy)


def opened(qtbot, presenter, text, options=None):
    with qtbot.waitSignal(presenter.opened) as signal:
        presenter.open(str(text), options)
    return signal.args[0]


@pytest.fixture
def volume(qtbot, presenter, tmp_path):
    return opened(qtbot, presenter, volume_file(tmp_path), VOLUME)


@pytest.fixture
def reads(monkeypatch):
    """Numbers of the slices that were read, in their order, and a gate to hold the reader."""
    gate = threading.Event()
    gate.set()
    numbers = []
    read = opening.preview_of

    def watched(data, number):
        numbers.append(number)
        assert gate.wait(10)
        return read(data, number)

    monkeypatch.setattr(opening, "preview_of", watched)
    numbers_and_gate = numbers, gate
    yield numbers_and_gate
    gate.set()


@pytest.mark.parametrize(("name", "modality"), [("ct", "CT"), ("mri", "MR")])
def test_the_demos_open(qtbot, presenter, name, modality):
    with qtbot.waitSignal(presenter.opened) as signal:
        presenter.open_demo(name)
    assert signal.args[0].modality == modality
    with qtbot.waitSignal(presenter.preview) as shown:
        presenter.show_slice(0)
    assert shown.args[0] == 0
    assert shown.args[1].dtype == np.float32


def test_opening_happens_off_the_gui_thread(qtbot, presenter, monkeypatch):
    threads = []
    open_data = opening.open_data
    monkeypatch.setattr(
        opening,
        "open_data",
        lambda *args: threads.append(threading.current_thread()) or open_data(*args),
    )
    opened(qtbot, presenter, CT_SMALL)
    assert threads
    assert threads[0] is not threading.main_thread()


def test_a_broken_file_is_one_sentence_and_the_open_data_stay(qtbot, presenter, volume, tmp_path):
    broken = tmp_path / "broken.dcm"
    broken.write_bytes(CT_SMALL.read_bytes()[:700])
    with qtbot.waitSignal(presenter.failed) as failed:
        presenter.open(str(broken))
    assert failed.args[0].count("\n") == 0
    assert "broken.dcm" in failed.args[0]
    assert presenter.current is volume
    with qtbot.waitSignal(presenter.preview) as shown:
        presenter.show_slice(3)
    assert np.all(shown.args[1] == 3)


def test_a_missing_file_is_one_sentence(qtbot, presenter, tmp_path):
    with qtbot.waitSignal(presenter.failed) as failed:
        presenter.open(str(tmp_path / "gone.npy"))
    assert failed.args[0].endswith("gone.npy does not exist.")
    assert presenter.current is None


def test_of_two_openings_the_newest_wins(qtbot, presenter):
    names = []
    presenter.opened.connect(lambda data: names.append(data.name))
    presenter.open(str(STUDY))
    presenter.open(str(CT_SMALL))
    qtbot.waitUntil(lambda: "CT series 1" in names)
    qtbot.waitUntil(lambda: not presenter.tasks.busy)
    assert names == ["CT series 1"]


def test_a_sinogram_without_geometry_asks_and_opens_with_the_answer(qtbot, presenter, tmp_path):
    path = sinogram_file(tmp_path)
    with qtbot.waitSignal(presenter.geometry_needed) as asked:
        presenter.open(str(path), {"kind": "sinogram"})
    question = asked.args[0]
    assert set(question.missing) == set(RAYS)
    assert presenter.current is None
    data = opened(qtbot, presenter, question.text, {**question.options, **RAYS})
    assert data.views.views == 36


def test_fast_wheeling_reads_the_first_and_the_newest_slice_only(qtbot, presenter, volume, reads):
    numbers, gate = reads
    gate.clear()
    shown = []
    presenter.preview.connect(lambda number, image: shown.append((number, float(image[0, 0]))))
    for number in range(30):
        presenter.show_slice(number)
    gate.set()
    qtbot.waitUntil(lambda: (29, 29.0) in shown)
    assert numbers == [0, 29]
    assert shown == [(0, 0.0), (29, 29.0)]


def test_a_slice_seen_before_comes_at_once_and_is_not_read_again(qtbot, presenter, volume, reads):
    numbers, gate = reads
    for number in (5, 6):
        with qtbot.waitSignal(presenter.preview):
            presenter.show_slice(number)
    gate.clear()
    presenter.show_slice(7)
    qtbot.waitUntil(lambda: 7 in numbers)  # on its way when the person goes back
    with qtbot.waitSignal(presenter.preview, timeout=0) as shown:
        presenter.show_slice(5)
    assert shown.args[0] == 5
    late = []
    presenter.preview.connect(lambda number, image: late.append(number))
    gate.set()
    qtbot.waitUntil(lambda: not presenter.tasks.busy)
    QApplication.processEvents()  # what is late may come now
    assert late == [], "an older slice does not replace the one that is looked at"
    assert numbers == [5, 6, 7]


def test_a_slice_outside_the_data_is_the_nearest_one(qtbot, presenter, volume):
    with qtbot.waitSignal(presenter.preview) as shown:
        presenter.show_slice(1000)
    assert shown.args[0] == 39


def test_a_slice_that_cannot_be_read_is_a_sentence_and_the_next_one_works(
    qtbot, presenter, volume, monkeypatch
):
    read = opening.preview_of

    def broken(data, number):
        if number == 2:
            raise opening.RequestError("Slice 2 is damaged.")
        return read(data, number)

    monkeypatch.setattr(opening, "preview_of", broken)
    with qtbot.waitSignal(presenter.failed) as failed:
        presenter.show_slice(2)
    assert failed.args[0] == "Slice 2 is damaged."
    with qtbot.waitSignal(presenter.preview):
        presenter.show_slice(3)


def test_the_cache_stays_within_its_bytes_and_forgets_the_oldest():
    cache = PreviewCache(3000)
    for number in range(4):
        cache.put(number, np.zeros((10, 25), np.float32))
        cache.get(0)
    assert cache.nbytes <= 3000
    assert cache.get(0) is not None, "just looked at"
    assert cache.get(1) is None
    cache.put(9, np.zeros((100, 100), np.float32))
    assert len(cache) == 1, "one slice is kept, however large"


def test_every_series_gets_a_thumbnail_and_another_series_keeps_them(qtbot, presenter):
    pictures = {}
    presenter.thumbnails.connect(pictures.update)
    data = opened(qtbot, presenter, STUDY)
    qtbot.waitUntil(lambda: set(pictures) == set(range(1, 8)))
    with qtbot.waitSignal(presenter.thumbnails) as again:
        presenter.choose_series(data.series[3].key)
    assert set(again.args[0]) == set(range(1, 8)), "not drawn anew"
    assert [item.number for item in presenter.current.series if item.chosen] == [4]


def test_what_is_being_read_is_said_and_unsaid(qtbot, presenter, tmp_path):
    words = []
    presenter.busy.connect(words.append)
    opened(qtbot, presenter, volume_file(tmp_path), VOLUME)
    with qtbot.waitSignal(presenter.preview):
        presenter.show_slice(4)
    assert words == ["Opening volume.npy …", "", "Reading slice 5 …", ""]


def test_the_words_of_tasks_do_not_name_the_file(qtbot, presenter):
    words = []
    presenter.tasks.busy_changed.connect(words.append)
    opened(qtbot, presenter, STUDY)
    assert words
    assert not any("98892003" in text or "Doe" in text for text in words)


def test_warnings_that_reading_brings_are_told(qtbot, presenter, tmp_path):
    path = sinogram_file(tmp_path, slices=3)
    stack = np.load(path)
    stack[2, :, 5] = np.nan  # a dead detector bin in the last slice
    np.save(path, stack)
    opened(qtbot, presenter, path, {"kind": "sinogram", **RAYS})
    with qtbot.waitSignal(presenter.warnings_changed) as told:
        presenter.show_slice(2)
    assert any("dead" in words for words in told.args[0])


def test_the_sinogram_of_the_acquisition_follows_the_newest_request(qtbot, presenter, tmp_path):
    opened(qtbot, presenter, volume_file(tmp_path, 2), VOLUME)
    made = []
    presenter.sinogram.connect(made.append)
    for views in range(3, 12):
        presenter.simulate(0, {"views": views})
    qtbot.waitUntil(lambda: bool(made) and len(made[-1]) == 11)
    assert len(made) <= 2


def test_opened_files_become_recent_ones_and_demos_do_not(qtbot, presenter):
    opened(qtbot, presenter, CT_SMALL)
    qtbot.waitUntil(lambda: bool(presenter.recent.entries))
    presenter.open_demo("ct")
    qtbot.waitUntil(lambda: presenter.current.name == "CT demo")
    qtbot.waitUntil(lambda: not presenter.tasks.busy)
    assert [entry.text for entry in presenter.recent.entries] == [str(CT_SMALL)]
