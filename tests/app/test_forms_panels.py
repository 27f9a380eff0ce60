"""The acquisition panels and their pictures show what will be measured."""

import dataclasses
import math

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette

from app.forms.ct_panel import MEASURED, CTPanel, PolarDial
from app.forms.labels import choice_of
from app.forms.mri_panel import MRIPanel
from app.forms.pictures import MaskPicture, SinogramStrip
from engine.data.kspace.trajectory import Trajectory
from engine.data.sinogram.dataset import HONOURED
from engine.physics.masks import build_mask
from engine.solvers.dc_pnpdp import DcPnpdpSettings
from engine.spec.acquisition import CTAcquisition
from engine.spec.input_options import InputOptions


def shown(qtbot, widget, width=320, height=None):
    qtbot.addWidget(widget)
    widget.resize(width, height or widget.sizeHint().height())
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def put(qtbot, panel, name, text):
    control = panel.form.rows[name].editor.control
    control.setFocus()
    control.selectAll()
    qtbot.keyClick(control, Qt.Key.Key_Delete)
    qtbot.keyClicks(control, text)


# -- the dial -------------------------------------------------------------------------------------


@pytest.fixture
def dial(qtbot):
    widget = PolarDial()
    palette = widget.palette()
    palette.setColor(QPalette.ColorRole.Window, QColor("white"))
    palette.setColor(QPalette.ColorRole.WindowText, QColor("black"))
    palette.setColor(QPalette.ColorRole.Highlight, QColor("blue"))
    widget.setPalette(palette)
    return shown(qtbot, widget, 160, 160)


def blueness(dial, angle_deg):
    """How blue the ring is where the source of a view at this angle stands (0 .. 255)."""
    image = dial.grab().toImage()
    best = 0
    for radius in (dial.radius - 2, dial.radius, dial.radius + 2):
        point = dial.place(angle_deg, radius).toPoint()
        colour = image.pixelColor(point)
        best = max(best, colour.blue() - colour.red())
    return best


def test_the_source_starts_below_and_turns_counter_clockwise(dial):
    centre = dial.rect().center()
    assert dial.place(0, 50).y() > centre.y() + 40
    assert dial.place(90, 50).x() > centre.x() + 40
    # as the engine has it: (sin t, -cos t) with y upwards
    t = math.radians(30)
    assert dial.place(30, 1).x() - dial.place(0, 0).x() == pytest.approx(math.sin(t))
    assert dial.place(30, 1).y() - dial.place(0, 0).y() == pytest.approx(math.cos(t))


def test_a_parallel_arc_is_marked_with_its_opposite(dial):
    dial.set_coverage(90, 90.0, 0.0)
    for covered in (20, 45, 70, 200, 225, 250):
        assert blueness(dial, covered) > 60, covered
    for never_seen in (110, 135, 160, 290, 315, 340):
        assert blueness(dial, never_seen) < 20, never_seen
    assert "nothing is seen from 90° to 180°" in dial.accessibleDescription()


def test_a_fan_is_marked_where_its_source_stands(dial):
    dial.set_coverage(90, 90.0, 30.0, fan=True)
    assert blueness(dial, 75) > 60
    assert blueness(dial, 255) < 20
    assert "fan" in dial.accessibleDescription()


def test_each_view_has_its_tick_until_there_are_too_many(dial):
    dial.set_coverage(4, 180.0, 0.0)
    assert blueness(dial, 45) > blueness(dial, 22.5) + 60
    dial.set_coverage(720, 180.0, 0.0)
    assert blueness(dial, 45) > 200
    assert blueness(dial, 22.5) > 200
    assert dial.accessibleDescription().startswith("720 parallel views over 180° from 0°")


def test_wrong_angles_show_no_coverage(dial):
    dial.set_coverage(90, 180.0, 0.0)
    dial.set_wrong("The angular range must be positive.")
    assert blueness(dial, 45) < 20
    assert dial.toolTip() == "The angular range must be positive."


# -- the strip ------------------------------------------------------------------------------------


def test_dropped_views_are_dimmed_and_kept_ones_marked(qtbot):
    strip = shown(qtbot, SinogramStrip(), 300, 90)
    sinogram = np.ones((30, 16), np.float32)
    sinogram[:, 0] = 0
    strip.set_sinogram(sinogram, kept=range(0, 15))
    image = strip.grab().toImage()
    bright, dim = image.pixelColor(75, 60).red(), image.pixelColor(225, 60).red()
    assert bright > 240
    assert 30 < dim < 100
    assert image.pixelColor(75, 88) == QColor("#56B4E9")
    assert image.pixelColor(225, 88).lightness() == 0
    assert "15 views are used, the 15 dimmed ones are dropped" in strip.accessibleDescription()


def test_a_single_kept_view_of_thousands_stays_visible(qtbot):
    strip = shown(qtbot, SinogramStrip(), 300, 90)
    strip.set_sinogram(np.tile(np.linspace(0, 1, 16, dtype=np.float32), (5000, 1)), kept=[2500])
    image = strip.grab().toImage()
    marked = [x for x in range(300) if image.pixelColor(x, 88) == QColor("#56B4E9")]
    assert marked == [150]


def test_a_strip_without_data_says_what_to_do(qtbot):
    strip = shown(qtbot, SinogramStrip(), 300, 90)
    assert "once data are open" in strip.accessibleDescription()
    image = strip.grab().toImage()
    assert any(image.pixelColor(x, y).lightness() > 100 for x in range(300) for y in range(30, 60))


def test_nan_and_a_constant_sinogram_do_no_harm(qtbot):
    strip = shown(qtbot, SinogramStrip(), 300, 90)
    for value in (np.nan, np.inf, 3.0):
        strip.set_sinogram(np.full((8, 8), value, np.float32))
        assert not strip.grab().isNull()


# -- the CT panel ---------------------------------------------------------------------------------


@pytest.fixture
def ct(qtbot):
    return shown(qtbot, CTPanel())


def test_the_dial_follows_the_fields_as_they_are_typed(qtbot, ct):
    put(qtbot, ct, "views", "90")
    put(qtbot, ct, "angular_range", "90")
    put(qtbot, ct, "start_angle", "-45")
    assert len(ct.dial.angles_deg) == 90
    assert (ct.dial.span, ct.dial.start) == (90.0, -45.0)
    assert ct.dial.angles_deg[1] == pytest.approx(-44.0)
    put(qtbot, ct, "views", "0")
    assert ct.dial.wrong
    put(qtbot, ct, "photons", "-1")
    put(qtbot, ct, "views", "12")
    assert not ct.valid
    assert len(ct.dial.angles_deg) == 12, "a wrong noise level does not hide the angles"


def test_what_a_measured_scan_takes_is_what_the_engine_honours():
    assert set(MEASURED) == set(HONOURED)


def test_measured_views_can_be_dropped_and_never_added(qtbot, ct):
    ct.set_measured(360, 180.0)
    ct.set_sinogram(np.random.default_rng(0).random((360, 64), dtype=np.float32))
    assert ct.value() == {}
    assert ct.kept() == list(range(360))
    put(qtbot, ct, "views", "30")
    assert ct.value() == {"views": 30}
    assert len(ct.kept()) == int(ct.strip.kept.sum()) == len(ct.dial.angles_deg) == 30
    put(qtbot, ct, "views", "361")
    assert not ct.valid
    assert "only 360 views were measured" in ct.form.rows["views"].sentence.text()
    put(qtbot, ct, "views", "")
    assert ct.valid
    put(qtbot, ct, "angular_range", "200")
    assert "the views cover 180 degrees only" in ct.form.rows["angular_range"].sentence.text()
    put(qtbot, ct, "angular_range", "90")
    assert ct.kept() == list(range(180))
    assert ct.dial.span == 90.0


def test_a_measured_scan_locks_what_was_fixed_and_an_image_frees_it_again(qtbot, ct):
    put(qtbot, ct, "detectors", "300")
    ct.set_measured(100, 360.0, geometry="fan")
    row = ct.form.rows["geometry"]
    assert not row.editor.isEnabled()
    assert "measured" in row.toolTip()
    assert row.editor.control.currentData() == "fan"
    assert "detectors" not in ct.value()
    ct.set_simulated()
    assert row.editor.isEnabled()
    assert ct.value()["detectors"] == 300
    assert ct.form.rows["views"].editor.control.text() == "20"
    assert ct.form.settings().geometry == "parallel"


def test_the_noise_of_a_measured_scan_is_shown_and_can_be_given(qtbot, ct):
    ct.set_measured(100, 360.0, photons="110000, estimated")
    editor = ct.form.rows["photons"].editor
    assert editor.isEnabled()
    assert editor.control.placeholderText() == "110000, estimated"
    assert "photons" not in ct.value()
    put(qtbot, ct, "photons", "5e4")
    assert ct.value()["photons"] == 5e4


def test_after_a_measured_scan_empty_fields_mean_again_what_they_mean(qtbot, ct, mri):
    ct.set_measured(100, 360.0, photons="110000, estimated")
    ct.set_simulated()
    assert ct.form.rows["photons"].editor.control.placeholderText() == "no noise"
    mri.set_measured(np.ones(64, bool) & (np.arange(64) % 2 == 0))
    assert mri.form.rows["acs_lines"].editor.control.placeholderText() == "as measured"
    mri.set_simulated(64)
    assert mri.form.rows["acs_lines"].editor.control.placeholderText() == "automatic"


def test_rays_of_a_measured_scan_can_be_weighed_by_estimated_photons(ct):
    weighted, noise = (ct.form.rows[name].editor for name in ("weighted", "noise"))
    assert not weighted.isEnabled(), "without photons every ray is equally certain"
    ct.set_measured(100, 360.0, photons="110000, estimated")
    assert weighted.isEnabled()
    assert noise.isEnabled()
    ct.set_simulated()
    assert not weighted.isEnabled()
    assert not noise.isEnabled()


def test_a_finer_grid_is_for_simulated_scans_only(ct, mri):
    ct.set_measured(100, 360.0)
    mri.set_measured(np.ones(64, bool))
    for panel in (ct, mri):
        assert not panel.form.rows["fine_grid"].editor.isEnabled()
    mri.set_simulated(64)
    assert mri.form.rows["fine_grid"].editor.isEnabled()
    assert not mri.form.rows["noise"].editor.isEnabled()


def test_presets_fill_the_panel_and_reset_the_rest(ct):
    ct.set_values({"photons": 1e4})
    ct.set_values({"views": 90, "angular_range": 90.0})
    assert ct.value() == {"views": 90, "angular_range": 90.0}


# -- the MRI panel --------------------------------------------------------------------------------


@pytest.fixture
def mri(qtbot):
    return shown(qtbot, MRIPanel())


def lit(picture, width):
    image = picture.grab().toImage()
    return np.array([image.pixelColor(x, 20).lightness() > 128 for x in range(width)])


def test_the_mask_picture_shows_each_line_where_it_is(qtbot):
    picture = shown(qtbot, MaskPicture(), 320, 72)
    sampled = np.zeros(320, dtype=bool)
    sampled[[10, 50, 200]] = True
    sampled[150:170] = True
    picture.set_mask(sampled, "some lines")
    assert np.array_equal(lit(picture, 320)[1:-1], sampled[1:-1])
    assert picture.accessibleDescription() == "some lines"


def test_a_two_dimensional_mask_is_shown_as_a_plane(qtbot):
    picture = shown(qtbot, MaskPicture(), 64, 64)
    sampled = np.zeros((64, 64), dtype=bool)
    sampled[20, 30] = True
    picture.set_mask(sampled)
    image = picture.grab().toImage()
    assert image.pixelColor(30, 20).lightness() > 128
    assert image.pixelColor(30, 22).lightness() < 30


def test_the_mask_is_the_engines_and_its_true_acceleration_is_said(qtbot, mri):
    assert not mri.words.isVisible()
    mri.set_simulated(320)
    put(qtbot, mri, "acceleration", "10")
    mask = build_mask("inversebench", 320, 10.0)
    assert np.array_equal(mri.picture.sampled, mask.sampled)
    assert f"True acceleration {mask.true_acceleration:.2f} (asked for 10)" in mri.words.text()
    assert mri.words.isVisible()


def test_a_mask_that_cannot_be_made_is_refused_in_words(qtbot, mri):
    mri.set_simulated(64)
    put(qtbot, mri, "acceleration", "65")
    assert not mri.valid
    assert mri.form.note.text() == "⚠ An acceleration of 65 leaves no line of 64."
    assert mri.picture.sampled is None
    put(qtbot, mri, "acceleration", "4")
    assert mri.valid
    assert mri.picture.sampled is not None


def test_a_random_mask_follows_the_seed(mri):
    mri.set_simulated(128)
    mri.set_values({"mask": "random"})
    before = mri.picture.sampled
    mri.set_seed(3)
    assert not np.array_equal(before, mri.picture.sampled)
    assert np.array_equal(mri.picture.sampled, build_mask("random", 128, 6.0, seed=3).sampled)


def test_measured_lines_can_only_be_dropped(qtbot, mri):
    own = build_mask("equispaced", 320, 2.0, acs_lines=24).sampled
    mri.set_measured(own, coils=8)
    assert mri.value() == {}
    assert np.array_equal(mri.picture.sampled, own)
    assert "as measured" in mri.words.text()
    assert "8 coils" in mri.form.rows["coils"].toolTip()
    put(qtbot, mri, "acceleration", "1.5")
    assert "takes nothing away" in mri.words.text()
    put(qtbot, mri, "acceleration", "8")
    assert mri.value() == {"acceleration": 8.0}
    assert not (mri.picture.sampled & ~own).any()
    assert mri.picture.sampled.sum() < own.sum()


def test_fully_measured_data_take_the_usual_mask(mri):
    mri.set_measured(np.ones(320, dtype=bool))
    assert np.array_equal(mri.picture.sampled, build_mask("inversebench", 320, 6.0).sampled)
    assert mri.value() == {}


def test_spokes_are_shown_as_paths_and_can_be_left_out(qtbot, mri):
    angle, r = np.arange(24) * np.pi / 24, np.arange(-32, 32)
    paths = np.stack((np.outer(np.cos(angle), r), np.outer(np.sin(angle), r)))
    mri.set_measured(np.ones(24, dtype=bool), coils=8, trajectory=Trajectory(paths, 64))
    assert mri.value() == {}
    assert mri.words.text() == "24 of 24 spokes."
    assert mri.picture.sampled.shape == (64, 64)
    whole = mri.picture.sampled.sum()
    put(qtbot, mri, "acceleration", "3")
    assert mri.words.text() == "8 of 24 spokes."
    assert mri.picture.sampled.sum() < whole / 2
    assert not mri.form.rows["mask"].editor.isEnabled()


def test_options_of_measured_data_have_names_and_choices_in_words():
    said = {
        field.name: field.metadata["label"]
        for cls in (InputOptions, CTAcquisition, DcPnpdpSettings)
        for field in dataclasses.fields(cls)
    }
    for name in ("maps", "trajectory", "trajectory_unit", "virtual_coils", "mr_scale", "coil_use"):
        assert said[name]
    for name in ("noise", "discrepancy", "model_error", "positivity", "field_of_view", "fine_grid"):
        assert said[name]
    assert choice_of("radian") == "radians per pixel"
    assert choice_of("admm") == "ADMM"
