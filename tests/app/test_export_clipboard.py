"""What is copied is what is on the screen: no more of the patient, no less of the image."""

import numpy as np
import pydicom
import pytest
from PySide6.QtGui import QGuiApplication, QImage, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QApplication

from app.export.controller import copy_pane, copy_table, copy_widget, png_bytes, rgb_of, save_pane
from app.images import overlay
from engine.data.dataset import Placement
from engine.export.outputs import window_to_bytes
from engine.spec.marks import CORNERS, RESEARCH


def pixels(image):
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    flat = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1)
    return flat[:, : 4 * image.width()].copy()


def grey(picture):
    return pixels(picture).reshape(picture.height(), picture.width(), 4)[:, :, :3].max(axis=2)


def test_a_copy_has_every_pixel_of_the_image_however_small_its_pane(pane):
    image = np.random.default_rng(0).normal(40, 300, (512, 640)).astype(np.float32)
    pane.set_image(image)
    pane.resize(220, 200)
    QApplication.processEvents()
    copy_pane(pane)
    copied = QGuiApplication.clipboard().image()
    assert (copied.height(), copied.width()) == (512, 640)
    level = pane.link.window
    wanted = window_to_bytes(image, (level.centre, level.width))
    close = np.abs(grey(copied).astype(int) - wanted) <= 1
    assert close.mean() > 0.9  # the rest is what is marked in it
    assert close[100:300, 100:500].all()


def test_every_picture_carries_its_marks_wherever_they_are_put(pane, monkeypatch):
    pane.set_caption("#2 DC-PnPDP")
    pane.set_run_lines("DC-PnPDP", "20 views", "NFE 5 of 12, cancelled")
    axial = Placement((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 1.0))
    pane.set_placement(axial)
    told = []
    draw = overlay.Drawing.__init__

    def heard(self, rect, text):
        told.append(text)
        draw(self, rect, text)

    monkeypatch.setattr(overlay.Drawing, "__init__", heard)
    wide = pane.picture()
    for corner in CORNERS:
        pane.link.mark_corner = corner
        told.clear()
        picture = pane.picture()
        assert getattr(told[-1], corner.replace(" ", "_")) == (
            RESEARCH,
            "#2 DC-PnPDP",
            "20 views, NFE 5 of 12, cancelled",
            "C 0 W 1600 HU",
        )
        assert (told[-1].letters.left, told[-1].letters.right) == ("R", "L")
        assert told[-1].scale is not None
        assert told[-1].scale.words.endswith(" mm")
        half = grey(picture) != grey(wide)
        assert half.any() == (corner != CORNERS[0])
        assert picture.text("Comment") == RESEARCH


def test_without_a_known_pixel_size_no_bar_pretends_one(pane):
    assert pane.overlay.text.scale is not None
    pane.link.set_source(1, False)
    assert pane.overlay.text.scale is None


def test_the_bar_on_the_screen_is_as_long_as_it_says(pane):
    pane.set_image(np.zeros((100, 100), np.float32), (0.5, 0.5))
    for zoom in (1.0, 2.5):
        pane.link.set_zoom(zoom)
        bar = pane.overlay.text.scale
        millimetres = float(bar.words.split()[0])
        assert bar.pixels == pytest.approx(millimetres * pane.view.pixels_per_mm())
        assert bar.pixels <= pane.view.pane_size[0] / 4


def test_a_zoomed_picture_is_what_is_seen_and_no_coarser(pane):
    pane.set_image(np.random.default_rng(0).normal(0, 300, (512, 512)).astype(np.float32))
    pane.link.set_zoom(4)
    picture = pane.picture()
    seen = pane.view.seen()
    assert picture.width() >= seen.width()
    assert picture.width() / picture.height() == pytest.approx(
        seen.width() / seen.height(), abs=0.01
    )


def test_a_capture_is_a_dicom_file_with_the_same_pixels(qtbot, pane, tasks, tmp_path):
    done = []
    save_pane(pane, tmp_path / "pane.dcm", tasks, done.append)
    qtbot.waitUntil(lambda: bool(done), timeout=60_000)
    file = pydicom.dcmread(tmp_path / "pane.dcm")
    np.testing.assert_array_equal(file.pixel_array, rgb_of(pane.picture()))
    assert file.BurnedInAnnotation == "YES"


def test_a_masked_name_stays_masked_in_the_copy(pane):
    copies = []
    for name in ("Rumpelstilz", "Schneewittchen"):
        pane.set_patient(name)
        pane.set_patient_masked(True)
        copy_pane(pane)
        copies.append(pixels(QGuiApplication.clipboard().image()))
        content = png_bytes(pane.picture())
        assert name.encode() not in content
    np.testing.assert_array_equal(*copies)
    pane.set_patient_masked(False)
    copy_pane(pane)
    shown = pixels(QGuiApplication.clipboard().image())
    assert (shown != copies[0]).any()


def test_any_part_of_the_window_can_be_copied(pane):
    copy_widget(pane)
    assert QGuiApplication.clipboard().image().size() == pane.grab().toImage().size()


def test_a_table_becomes_cells_that_stay_cells(qapp):
    model = QStandardItemModel(2, 2)
    model.setHorizontalHeaderLabels(["Run", "PSNR\ndB"])
    for row, cells in enumerate([("#1 FBP", "21.80"), ("tab\there\nand there", "=cmd()")]):
        for column, text in enumerate(cells):
            model.setItem(row, column, QStandardItem(text))
    copy_table(model)
    assert QGuiApplication.clipboard().text() == (
        "Run\tPSNR dB\n#1 FBP\t21.80\ntab here and there\t'=cmd()\n"
    )


def test_a_pane_is_saved_whole_or_not_at_all(qtbot, pane, tasks, tmp_path):
    done, failed = [], []
    save_pane(pane, tmp_path / "pane.png", tasks, done.append)
    qtbot.waitUntil(lambda: bool(done), timeout=60_000)
    saved = QImage(str(tmp_path / "pane.png"))
    np.testing.assert_array_equal(pixels(saved), pixels(pane.picture()))
    assert saved.text("Comment") == RESEARCH
    save_pane(
        pane, tmp_path / "no" / "pane.png", tasks, done.append, lambda *said: failed.append(said)
    )
    qtbot.waitUntil(lambda: bool(failed), timeout=60_000)
    assert failed[0][0].startswith("Cannot write")
    assert [path.name for path in tmp_path.iterdir()] == ["pane.png"]
