"""Missing geometry is asked for in one dialog that never blocks."""

import numpy as np
import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from app.forms.geometry_dialog import GeometryDialog, Offer
from engine.data.sinogram.scan_geometry import GeometryNeeded
from engine.spec.input_options import InputOptions

NEEDED = GeometryNeeded("scan.npy", ("scan_geometry", "scan_pitch_mm", "scan_range"))


@pytest.fixture
def dialog(qtbot):
    asked = []
    widget = GeometryDialog("scan.npy", NEEDED.missing, preview=asked.append)
    widget.asked = asked
    widget.open()
    qtbot.waitExposed(widget)
    yield widget
    if shiboken6.isValid(widget):
        widget.close()


def retype(qtbot, dialog, name, text):
    control = dialog.form.rows[name].editor.control
    control.setFocus()
    control.selectAll()
    qtbot.keyClick(control, Qt.Key.Key_Delete)
    qtbot.keyClicks(control, text)


def choose(dialog, name, value):
    combo = dialog.form.rows[name].editor.control
    combo.setCurrentIndex(combo.findData(value))
    combo.activated.emit(combo.currentIndex())


def fill(qtbot, dialog):
    choose(dialog, "scan_geometry", "parallel")
    retype(qtbot, dialog, "scan_pitch_mm", "0.5")
    retype(qtbot, dialog, "scan_range", "180")


def buttons(dialog):
    return [b for b in dialog.findChildren(QPushButton) if b.text() == "Apply" and b.isVisible()]


def test_what_is_missing_is_shown_first_and_must_be_given(qtbot, dialog):
    for name in NEEDED.missing:
        assert dialog.form.rows[name].isVisible()
    assert "is needed" in dialog.ok.toolTip()
    assert not dialog.ok.isEnabled()
    fill(qtbot, dialog)
    assert dialog.ok.isEnabled()
    with qtbot.waitSignal(dialog.given) as given:
        qtbot.mouseClick(dialog.ok, Qt.MouseButton.LeftButton)
    expected = {"scan_geometry": "parallel", "scan_pitch_mm": 0.5, "scan_range": 180.0}
    assert given.args[0] == expected
    InputOptions(**expected)


def test_a_fan_needs_its_distances_and_parallel_rays_do_not(qtbot, dialog):
    fill(qtbot, dialog)
    assert not dialog.form.rows["scan_source_origin_mm"].editor.isEnabled()
    choose(dialog, "scan_geometry", "fan")
    assert not dialog.ok.isEnabled()
    assert "Source to centre" in dialog.ok.toolTip()
    retype(qtbot, dialog, "scan_source_origin_mm", "500")
    retype(qtbot, dialog, "scan_source_detector_mm", "1000")
    assert dialog.ok.isEnabled()


def test_the_preview_waits_for_the_typing_to_pause_and_for_valid_values(qtbot, dialog):
    choose(dialog, "scan_geometry", "parallel")
    retype(qtbot, dialog, "scan_range", "180")
    retype(qtbot, dialog, "scan_pitch_mm", "0.25")
    assert dialog.asked == []
    qtbot.waitUntil(lambda: bool(dialog.asked))
    assert [one["scan_pitch_mm"] for one in dialog.asked] == [0.25], "not for every letter"
    retype(qtbot, dialog, "scan_pitch_mm", "-1")
    assert not dialog.timer.isActive()
    assert not dialog.ok.isEnabled()


def test_the_preview_is_shown_and_a_failure_is_a_sentence(dialog):
    image = np.zeros((64, 64), np.float32)
    image[16:48, 16:48] = 1
    dialog.set_preview(image)
    shot = dialog.picture.grab().toImage()
    assert shot.pixelColor(shot.width() // 2, shot.height() // 2).lightness() > 240
    assert shot.pixelColor(2, 2).lightness() == 0
    dialog.set_preview(None, "The detector offset puts the centre outside the detector.")
    assert dialog.sentence.isVisible()


def test_a_proposal_is_applied_with_one_click_and_can_be_undone(qtbot, dialog):
    fill(qtbot, dialog)
    changes = {"scan_direction": "cw", "scan_offset_mm": 1.25}
    dialog.set_proposals(
        [Offer("As it is: residual 3.20 %.", 0.032, {}), Offer("Reverse it.", 0.011, changes)],
        "The data cannot tell a mirror image.",
    )
    qtbot.waitUntil(lambda: len(buttons(dialog)) == 2)
    same, other = buttons(dialog)
    assert not same.isEnabled()
    assert same.toolTip() == "The fields say this already."
    assert other.accessibleName() == "Apply: Reverse it."
    qtbot.mouseClick(other, Qt.MouseButton.LeftButton)
    assert dialog.value().items() >= changes.items()
    assert dialog.timer.isActive()
    dialog.form.history.undo()
    assert "scan_direction" not in dialog.value()


def test_new_proposals_replace_the_old_ones(qtbot, dialog):
    for count in (3, 1):
        dialog.set_proposals([Offer(f"Reading {i}.", 0.1, {"size": 64}) for i in range(count)])
    qtbot.waitUntil(lambda: len(buttons(dialog)) == 1)


def test_cancel_gives_nothing_and_stops_the_preview(qtbot, dialog):
    given = []
    dialog.given.connect(given.append)
    fill(qtbot, dialog)
    timer = dialog.timer
    qtbot.mouseClick(dialog.cancel, Qt.MouseButton.LeftButton)
    assert given == []
    assert not timer.isActive()


def test_what_was_said_already_is_kept(qtbot):
    dialog = GeometryDialog("scan.npy", ("scan_range",), known={"scan_pitch_mm": 0.5})
    qtbot.addWidget(dialog)
    retype(qtbot, dialog, "scan_range", "360")
    assert dialog.value() == {"scan_pitch_mm": 0.5, "scan_range": 360.0}
    dialog.close()
