"""Forms of other classes, and forms that share their undo."""

from app.forms.form import SettingsForm
from app.forms.history import UndoValues
from engine.spec.acquisition import CTAcquisition
from engine.spec.input_options import InputOptions
from engine.spec.settings import Settings, excludes


def test_forms_that_share_a_history_share_the_undo(qtbot):
    history = UndoValues({})
    one = SettingsForm(CTAcquisition, ("views",), history=history)
    two = SettingsForm(InputOptions, ("size",), history=history)
    for form in (one, two):
        qtbot.addWidget(form)
    one.set_values({"views": 60})
    two.set_values({"size": 128})
    history.undo()
    assert (one.value(), two.value()) == ({"views": 60}, {})
    history.undo()
    assert one.value() == {}


def test_an_optional_flag_has_three_states(qtbot):
    form = SettingsForm(InputOptions, ("scan_flip",))
    qtbot.addWidget(form)
    combo = form.rows["scan_flip"].editor.control
    assert [combo.itemText(i) for i in range(combo.count())] == ["automatic", "yes", "no"]
    combo.setCurrentIndex(2)
    combo.activated.emit(2)
    assert form.value() == {"scan_flip": False}


def test_a_required_field_may_not_stay_empty(qtbot):
    form = SettingsForm(InputOptions, ("scan_pitch_mm",), required=("scan_pitch_mm",))
    qtbot.addWidget(form)
    assert not form.valid
    assert form.problem() == "“Detector pitch” is needed."
    assert form.faults == {}, "nothing is marked before it was touched"
    form.set_values({"scan_pitch_mm": 0.5})
    assert form.valid


def test_settings_without_fields_make_an_empty_form(qtbot):
    form = SettingsForm(Settings, ("nfe",))
    qtbot.addWidget(form)
    assert form.value() == {}
    assert form.valid


def test_a_given_zero_counts_as_given():
    rule = excludes("rho", "w", "no")
    assert rule({"rho": 0.0, "w": None}, {"rho"}) == "no"
    assert rule({"rho": None, "w": None}, set()) == ""
