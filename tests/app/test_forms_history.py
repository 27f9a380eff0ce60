"""Undo for settings: one step per thing a person did."""

from app.forms.history import UndoValues


def history():
    return UndoValues({"views": 20, "weighted": True, "geometry": "parallel"})


def test_typing_in_one_field_is_one_step():
    h = history()
    for value in (2, 24, 240):
        h.set("views", value, typing=True)
    assert h.undo()
    assert h["views"] == 20
    assert h.redo()
    assert h["views"] == 240


def test_another_field_or_leaving_the_field_begins_a_new_step():
    h = history()
    h.set("views", 2, typing=True)
    h.seal()
    h.set("views", 24, typing=True)
    h.set("geometry", "fan")
    h.set("views", 240, typing=True)
    seen = []
    while h.undo():
        seen.append((h["views"], h["geometry"]))
    assert seen == [(24, "fan"), (24, "parallel"), (2, "parallel"), (20, "parallel")]


def test_typing_back_to_the_start_leaves_no_step():
    h = history()
    h.set("views", 2, typing=True)
    h.set("views", 20, typing=True)
    assert not h.can_undo


def test_typing_after_undo_is_a_new_step_and_ends_redo():
    h = history()
    h.set("views", 2, typing=True)
    h.undo()
    h.set("views", 3, typing=True)
    assert not h.can_redo
    h.undo()
    assert h["views"] == 20


def test_a_preset_is_undone_as_a_whole_and_names_only_what_changed(qtbot):
    h = history()
    seen = []
    h.changed.connect(seen.append)
    h.set_many({"views": 90, "geometry": "fan", "weighted": True})
    h.undo()
    assert h.values == {"views": 20, "weighted": True, "geometry": "parallel"}
    assert seen == [{"views", "geometry"}] * 2


def test_setting_the_same_value_says_nothing_and_one_is_not_true(qtbot):
    h = history()
    seen = []
    h.changed.connect(seen.append)
    h.set("views", 20)
    assert seen == []
    assert not h.can_undo
    h.set("weighted", 1)
    assert h.differs("weighted")


def test_reset_goes_to_the_default_and_can_be_undone():
    h = history()
    h.set("views", 90)
    h.set("geometry", "fan")
    h.reset("views")
    assert (h["views"], h["geometry"]) == (20, "fan")
    h.reset()
    assert h["geometry"] == "parallel"
    h.undo()
    h.undo()
    assert h["views"] == 90


def test_new_data_bring_new_defaults_and_end_the_undo():
    h = history()
    h.set("views", 90)
    h.rebase({"views": None})
    assert h["views"] is None
    assert not h.differs("views")
    assert not h.can_undo


def test_nothing_to_undo_is_said():
    h = history()
    assert not h.undo()
    assert not h.redo()
