"""What is copied is what is on the screen: no more of the patient, no less of the image."""

import numpy as np
from PySide6.QtGui import QGuiApplication, QImage, QStandardItem, QStandardItemModel

from app.export.clipboard import copy_pane, copy_table, copy_widget, png_bytes, save_pane


def pixels(image):
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    flat = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1)
    return flat[:, : 4 * image.width()].copy()


def test_a_pane_is_copied_as_it_looks(pane):
    copy_pane(pane)
    copied = QGuiApplication.clipboard().image()
    np.testing.assert_array_equal(pixels(copied), pixels(pane.snapshot()))
    assert len(np.unique(pixels(copied))) > 50  # the noise of the image, not a blank


def test_a_masked_name_stays_masked_in_the_copy(pane):
    copies = []
    for name in ("Rumpelstilz", "Schneewittchen"):
        pane.set_patient(name)
        pane.set_patient_masked(True)
        copy_pane(pane)
        copies.append(pixels(QGuiApplication.clipboard().image()))
        content = png_bytes(pane.snapshot())
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
    qtbot.waitUntil(lambda: bool(done))
    np.testing.assert_array_equal(
        pixels(QImage(str(tmp_path / "pane.png"))), pixels(pane.snapshot())
    )
    save_pane(
        pane, tmp_path / "no" / "pane.png", tasks, done.append, lambda *said: failed.append(said)
    )
    qtbot.waitUntil(lambda: bool(failed))
    assert failed[0][0].startswith("Cannot write")
    assert [path.name for path in tmp_path.iterdir()] == ["pane.png"]
