"""A form made from a settings class checks what is typed and starts nothing."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QColor, QContextMenuEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QMainWindow

from app.forms.ct_panel import BASIC, RULES
from app.forms.form import SettingsForm
from engine.spec.acquisition import CTAcquisition
from engine.spec.errors import RequestError

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def form(qtbot):
    widget = SettingsForm(CTAcquisition, BASIC, RULES)
    qtbot.addWidget(widget)
    widget.resize(320, 400)
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def line(form, name):
    return form.rows[name].editor.control


def retype(qtbot, form, name, text):
    control = line(form, name)
    control.setFocus()
    control.selectAll()
    qtbot.keyClick(control, Qt.Key.Key_Delete)
    qtbot.keyClicks(control, text)


def test_only_what_differs_is_reported_and_the_settings_are_complete(qtbot, form):
    assert form.value() == {}
    retype(qtbot, form, "views", "60")
    assert form.value() == {"views": 60}
    assert form.settings() == CTAcquisition(views=60)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("photons", "1e5", 1e5),
        ("views", "1e3", 1000),
        ("angular_range", "90.50", 90.5),
        ("start_angle", "-45", -45.0),
        ("angular_range", "9e1", 90.0),
    ],
)
def test_numbers_are_read_as_people_write_them(qtbot, form, name, text, value):
    retype(qtbot, form, name, text)
    assert form.valid
    assert form.value() == {name: value}
    assert type(form.value()[name]) is type(value)
    assert line(form, name).text() == text, "the text must not jump while typing"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("views", "0", "must be at least 1, not 0."),
        ("views", "2.5", "must be a whole number, not '2.5'."),
        ("views", "many", "must be a whole number, not 'many'."),
        ("views", "", "needs a value."),
        ("views", "1e300", "must be at most 10000"),
        ("angular_range", "361", "must be at most 360, not 361."),
        ("angular_range", "nan", "must be a finite number, not nan."),
        ("angular_range", "1,5", "must be a number, not '1,5'."),
        ("angular_range", "1e999", "must be a finite number, not inf."),
    ],
)
def test_a_wrong_value_is_marked_in_place_with_the_engines_sentence(qtbot, form, name, text, words):
    states = []
    form.valid_changed.connect(states.append)
    retype(qtbot, form, name, text)
    sentence = form.rows[name].sentence
    assert sentence.isVisible()
    assert words in sentence.text()
    assert words in form.problem()
    assert not form.valid
    assert words in line(form, name).accessibleDescription()
    corner = form.rows[name].editor.control.grab().toImage().pixelColor(1, 8)
    assert corner == QColor("#D55E00"), "the field is framed"
    with pytest.raises(RequestError):
        form.settings()
    retype(qtbot, form, name, "50")
    assert form.valid
    assert not sentence.isVisible()
    assert states[-1]
    assert not states[0]


def test_two_wrong_values_are_both_marked(qtbot, form):
    retype(qtbot, form, "views", "0")
    retype(qtbot, form, "start_angle", "999")
    assert set(form.faults) == {"views", "start_angle"}
    retype(qtbot, form, "views", "5")
    assert set(form.faults) == {"start_angle"}


def test_undo_and_redo_by_keyboard_restore_text_even_wrong_text(qtbot, form):
    retype(qtbot, form, "views", "60")
    retype(qtbot, form, "angular_range", "x")
    control = line(form, "angular_range")
    qtbot.keyClick(control, Qt.Key.Key_Z, CTRL)
    assert control.text() == "180"
    assert form.valid
    qtbot.keyClick(control, Qt.Key.Key_Z, CTRL)
    assert line(form, "views").text() == "20"
    qtbot.keyClick(control, Qt.Key.Key_Y, CTRL)
    qtbot.keyClick(control, Qt.Key.Key_Y, CTRL)
    assert line(form, "views").text() == "60"
    assert control.text() == "x"
    assert not form.valid


def test_undo_works_from_a_combo_box_too(qtbot, form):
    combo = line(form, "geometry")
    combo.setFocus()
    qtbot.keyClick(combo, Qt.Key.Key_Down)
    assert form.value() == {"geometry": "fan"}
    qtbot.keyClick(combo, Qt.Key.Key_Z, CTRL)
    assert form.value() == {}
    assert combo.currentData() == "parallel"


def test_fan_distances_need_a_fan_and_say_so(qtbot, form):
    row = form.rows["source_origin_mm"]
    assert not row.editor.isEnabled()
    assert "fan" in row.toolTip()
    form.set_values({"geometry": "fan", "source_origin_mm": 700.0})
    assert row.editor.isEnabled()
    assert form.value()["source_origin_mm"] == 700.0
    form.set_values({"geometry": "parallel"})
    assert form.value() == {}, "a disabled field counts as its default"
    assert line(form, "source_origin_mm").text() == "700", "but keeps its text"


def test_photons_and_gaussian_noise_exclude_each_other(qtbot, form):
    form.more.click()
    retype(qtbot, form, "photons", "1e4")
    assert not form.rows["gaussian_noise"].editor.isEnabled()
    assert "clear them" in form.rows["gaussian_noise"].toolTip()
    assert form.rows["electronic_noise"].editor.isEnabled()
    retype(qtbot, form, "photons", "")
    retype(qtbot, form, "gaussian_noise", "0.1")
    assert not form.rows["photons"].editor.isEnabled()


def test_a_contradiction_can_be_cleared_and_marks_what_came_last(qtbot, form):
    form.set_values({"photons": 1e4, "gaussian_noise": 0.1})
    assert not form.valid
    assert "not both" in form.problem()
    assert form.rows["photons"].editor.isEnabled()
    assert form.rows["gaussian_noise"].editor.isEnabled()
    retype(qtbot, form, "photons", "")
    assert form.valid


def test_the_rest_is_behind_more_which_opens_on_a_fault(qtbot, form):
    assert form.rows["views"].isVisible()
    assert not form.rows["fbp_filter"].isVisible()
    qtbot.mouseClick(form.more, Qt.MouseButton.LeftButton)
    assert form.rows["fbp_filter"].isVisible()
    qtbot.mouseClick(form.more, Qt.MouseButton.LeftButton)
    form.set_values({"fbp_filter": "hann"})
    assert form.more.text() == "More (1 changed)"
    assert not form.rows["detectors"].isVisible()
    form.set_values({"detectors": 0})
    assert form.rows["detectors"].sentence.isVisible()


def test_every_control_has_a_name_a_tooltip_and_the_keyboard(qtbot, form):
    form.more.click()
    order = []
    line(form, "views").setFocus()
    for _ in range(40):
        order.append(QApplication.focusWidget())
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    for name, row in form.rows.items():
        control = row.editor.control
        assert control.accessibleName(), name
        assert row.toolTip().endswith("."), name
        if row.editor.isEnabled():
            assert control in order, name
    shown = [order.index(line(form, name)) for name in BASIC]
    assert shown == sorted(shown), "Tab goes down the form"


def test_units_and_placeholders_are_shown(form):
    form.more.click()
    assert form.rows["angular_range"].editor.unit.text() == "°"
    assert form.rows["pitch_mm"].editor.unit.text() == "mm"
    assert line(form, "pitch_mm").placeholderText() == "automatic"
    assert line(form, "photons").placeholderText() == "no noise"
    assert "°" in line(form, "angular_range").accessibleName()


def test_a_passing_wheel_changes_nothing(qtbot, form):
    combo = line(form, "geometry")
    line(form, "views").setFocus()
    event = QWheelEvent(
        QPointF(5, 5), combo.mapToGlobal(QPointF(5, 5)), QPoint(0, -120), QPoint(0, -120),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(combo, event)
    assert form.value() == {}


def test_reset_of_one_field_and_of_all(form):
    form.set_values({"views": 60, "start_angle": 10.0})
    form.rows["views"].reset_asked.emit("views")
    assert form.value() == {"start_angle": 10.0}
    form.reset()
    assert form.value() == {}


def test_the_menu_of_a_field_resets_it(qtbot, form):
    retype(qtbot, form, "views", "60")
    control = line(form, "views")
    where = control.rect().center()
    reason = QContextMenuEvent.Reason.Keyboard
    QApplication.sendEvent(control, QContextMenuEvent(reason, where, control.mapToGlobal(where)))
    menu = QApplication.activePopupWidget()
    words = [action.text() for action in menu.actions()]
    assert words[-1] == "Reset to the default (20)"
    assert not any("Undo" in word for word in words), "there is one undo only"
    menu.actions()[-1].trigger()
    menu.close()
    assert form.value() == {}


def test_the_forms_undo_comes_before_the_windows(qtbot):
    window, presses = QMainWindow(), []
    qtbot.addWidget(window)
    window.addAction(QAction("Undo", window, shortcut="Ctrl+Z", triggered=presses.append))
    form = SettingsForm(CTAcquisition, BASIC)
    window.setCentralWidget(form)
    window.show()
    qtbot.waitActive(window)
    retype(qtbot, form, "views", "60")
    for control in (line(form, "views"), line(form, "geometry")):
        form.set_values({"views": 60})
        control.setFocus()
        qtbot.keyClick(control, Qt.Key.Key_Z, CTRL)
        assert form.value() == {}
    assert presses == []


def test_editing_only_says_edited(qtbot, form):
    seen = []
    form.edited.connect(lambda: seen.append(form.value()))
    retype(qtbot, form, "views", "31")
    assert seen[-1] == {"views": 31}
