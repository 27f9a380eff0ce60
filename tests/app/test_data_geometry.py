"""What a file does not say is asked for, with a preview and what the data say."""

import numpy as np
import pytest
from data_files import RAYS, VOLUME, kspace_file, sinogram_file, volume_file
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QRadioButton

from app.data import geometry_controller
from app.data.choice_dialog import ChoiceDialog
from app.data.geometry_controller import GeometryController
from app.data.presenter import DataPresenter
from app.data.recent import RecentFiles

LEFT = Qt.MouseButton.LeftButton
KSPACE = {"kind": "kspace", "axes": "coil,read,phase"}


@pytest.fixture
def presenter(tasks, tmp_path, qtbot):
    presenter = DataPresenter(tasks, RecentFiles(tasks, tmp_path / "config" / "recent.json"))
    yield presenter
    qtbot.waitUntil(lambda: not tasks.busy)


@pytest.fixture
def flow(presenter, tasks, qtbot):
    flow = GeometryController(presenter, tasks)
    yield flow
    if flow._shown is not None:
        flow._shown.close()


def give(dialog, values):
    dialog.form.set_values(values)


def asked(qtbot, presenter, flow, path):
    presenter.open(str(path), {"kind": "sinogram"})
    qtbot.waitUntil(lambda: flow.dialog is not None)
    return flow.dialog


def offers(dialog):
    return [b for b in dialog.findChildren(QPushButton) if b.text() == "Apply" and b.isVisible()]


def test_the_dialog_opens_shows_a_preview_and_the_file_opens_with_the_answer(
    qtbot, presenter, flow, tmp_path
):
    dialog = asked(qtbot, presenter, flow, sinogram_file(tmp_path))
    assert not dialog.ok.isEnabled()
    give(dialog, RAYS)
    qtbot.waitUntil(lambda: dialog.picture.image is not None)
    qtbot.waitUntil(lambda: len(offers(dialog)) > 0)
    with qtbot.waitSignal(presenter.opened) as opened:
        qtbot.mouseClick(dialog.ok, LEFT)
    data = opened.args[0]
    assert data.kind == "sinogram"
    assert data.options == {"kind": "sinogram", **RAYS}
    assert flow.dialog is None


def test_the_check_finds_a_shifted_detector_and_its_proposal_can_be_applied(
    qtbot, presenter, flow, tmp_path
):
    dialog = asked(qtbot, presenter, flow, sinogram_file(tmp_path, views=60, shift=3.0))
    give(dialog, RAYS)
    qtbot.waitUntil(lambda: any(b.isEnabled() for b in offers(dialog)))
    best = offers(dialog)[0]
    assert "detector offset" in best.accessibleName()
    qtbot.mouseClick(best, LEFT)
    assert dialog.value()["scan_offset_mm"] == pytest.approx(-3.0, abs=0.3)


def test_a_geometry_that_cannot_be_is_a_sentence_in_the_dialog(qtbot, presenter, flow, tmp_path):
    dialog = asked(qtbot, presenter, flow, sinogram_file(tmp_path))
    give(dialog, {**RAYS, "scan_offset_mm": 500.0})
    qtbot.waitUntil(lambda: "outside the detector" in dialog.sentence.text())
    assert "--" not in dialog.sentence.text()


def test_only_the_newest_preview_is_made(qtbot, presenter, flow, tmp_path, monkeypatch):
    made = []
    preview = geometry_controller._preview

    def watched(text, options):
        made.append(options["scan_pitch_mm"])
        return preview(text, options)

    monkeypatch.setattr(geometry_controller, "_preview", watched)
    dialog = asked(qtbot, presenter, flow, sinogram_file(tmp_path))
    give(dialog, RAYS)
    dialog.timer.stop()
    for pitch in (0.5, 0.6, 0.7, 0.8):
        dialog.preview_wanted.emit({**RAYS, "kind": "sinogram", "scan_pitch_mm": pitch})
    qtbot.waitUntil(lambda: 0.8 in made)
    assert made == [0.5, 0.8]


def test_cancel_leaves_everything_as_it_was(qtbot, presenter, flow, tmp_path):
    with qtbot.waitSignal(presenter.opened):
        presenter.open(str(volume_file(tmp_path)), VOLUME)
    before = presenter.current
    dialog = asked(qtbot, presenter, flow, sinogram_file(tmp_path))
    give(dialog, RAYS)
    qtbot.mouseClick(dialog.cancel, LEFT)
    assert flow.dialog is None
    assert presenter.current is before


def test_a_known_geometry_can_be_checked(qtbot, presenter, flow, tmp_path):
    with qtbot.waitSignal(presenter.opened):
        presenter.open(str(sinogram_file(tmp_path, sidecar=RAYS)))
    flow.check_now(presenter.current)
    dialog = flow.dialog
    assert dialog.ok.isEnabled(), "nothing is missing"
    qtbot.waitUntil(lambda: len(offers(dialog)) > 0)
    assert dialog.picture.image is not None


def test_the_coils_and_the_scale_of_kspace_can_be_said(qtbot, presenter, flow, tmp_path):
    with qtbot.waitSignal(presenter.opened):
        presenter.open(str(kspace_file(tmp_path)), KSPACE)
    flow.check_now(presenter.current)
    dialog = flow.dialog
    assert {"maps", "coil_use", "virtual_coils", "mr_scale"} <= set(dialog.form.rows)
    assert "scan_pitch_mm" not in dialog.form.rows, "nothing of a sinogram"
    qtbot.waitUntil(lambda: dialog.picture.image is not None)
    give(dialog, {"mr_scale": 3.0})
    with qtbot.waitSignal(presenter.opened) as opened:
        qtbot.mouseClick(dialog.ok, LEFT)
    assert opened.args[0].options["mr_scale"] == 3.0


def test_only_a_measured_scan_can_be_checked(qtbot, presenter, flow):
    with qtbot.waitSignal(presenter.failed) as failed:
        flow.check_now(None)
    assert "Only a sinogram or k-space" in failed.args[0]
    assert flow.dialog is None


def test_what_bare_numbers_are_is_asked_first_and_then_the_geometry(
    qtbot, presenter, flow, tmp_path
):
    presenter.open(str(sinogram_file(tmp_path)))
    qtbot.waitUntil(lambda: isinstance(flow._shown, ChoiceDialog))
    dialog = flow._shown
    assert not dialog.ok.isEnabled()
    assert dialog.ok.toolTip() == "Choose an answer first."
    answer = next(b for b in dialog.findChildren(QRadioButton) if "line integrals" in b.text())
    answer.setFocus()
    qtbot.keyClick(answer, Qt.Key.Key_Space)
    qtbot.mouseClick(dialog.ok, LEFT)
    qtbot.waitUntil(lambda: flow.dialog is not None)
    give(flow.dialog, RAYS)
    with qtbot.waitSignal(presenter.opened):
        qtbot.mouseClick(flow.dialog.ok, LEFT)
    assert presenter.current.views.views == 36
    with qtbot.waitSignal(presenter.preview) as shown:
        presenter.show_slice(0)
    assert np.isfinite(shown.args[1]).all()
