"""Presets survive a restart, and a broken file is a sentence, not a crash."""

import json

import pytest
from PySide6.QtCore import Qt

from app.forms.preset_bar import PresetBar
from engine.files.presets import BUILT_IN, FORMAT, Preset, PresetStore
from engine.solvers.presets import BUDGETS, PRESETS
from engine.spec.errors import RequestError

MINE = Preset("Mine, 60 views", "CT", "diffpir", {"nfe": 20, "rho": None}, {"views": 60})


def bar_of(qtbot, store, modality="CT"):
    bar = PresetBar(store, lambda: MINE, modality)
    qtbot.addWidget(bar)
    bar.resize(320, 80)
    bar.show()
    qtbot.waitExposed(bar)
    return bar


def names(bar):
    return [bar.combo.itemText(i) for i in range(1, bar.combo.count())]


def test_a_saved_preset_comes_back_in_another_session(tmp_path):
    PresetStore(tmp_path / "new").save(MINE)
    found = PresetStore(tmp_path / "new").presets("CT")[-1]
    assert (found.name, found.solver) == (MINE.name, MINE.solver)
    assert found.settings == MINE.settings
    assert found.acquisition == MINE.acquisition
    assert not found.built_in


def test_the_paper_is_always_there_for_its_modality(tmp_path):
    store = PresetStore(tmp_path)
    assert [p.name for p in store.presets("MR")] == [
        *("MRI 6x (paper)", "MRI 10x (paper)"),
        *("Recommended budget", "Matched budget, 50 NFE"),
    ]
    assert "LACT-90 (paper)" in [p.name for p in store.presets("CT")]
    assert {p.engine_preset for p in BUILT_IN} == {*PRESETS, *BUDGETS}


def test_names_that_a_file_system_would_confuse_stay_apart(tmp_path):
    store = PresetStore(tmp_path)
    for name in ("a/b", "a b", "A B", "..", "ä", "日本"):
        store.save(Preset(name, "CT", None, {}, {}))
    saved = [p.name for p in store.presets("CT") if not p.built_in]
    assert sorted(saved) == sorted(["a/b", "a b", "A B", "..", "ä", "日本"])
    assert all(path.parent == tmp_path for path in tmp_path.rglob("*.json"))


GOOD = {"format": FORMAT, "name": "x", "modality": "CT", "settings": {}, "acquisition": {}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"name": "x"}',
        json.dumps(GOOD | {"name": 3}).encode(),
        json.dumps(GOOD | {"name": " "}).encode(),
        json.dumps(GOOD | {"modality": "PET"}).encode(),
        json.dumps(GOOD | {"solver": []}).encode(),
        json.dumps(GOOD | {"settings": {"nfe": [1]}}).encode(),
        json.dumps(GOOD | {"acquisition": None}).encode(),
        b" " * (2 << 20),
    ],
)
def test_a_broken_file_is_skipped_with_a_sentence(tmp_path, content):
    store = PresetStore(tmp_path)
    store.save(MINE)
    (tmp_path / "broken.json").write_bytes(content)
    assert [p.name for p in store.presets("CT") if not p.built_in] == [MINE.name]
    assert len(store.problems) == 1
    assert store.problems[0].endswith(".")


def test_a_folder_that_is_a_file_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    store = PresetStore(tmp_path / "file" / "presets")
    assert store.presets("CT")
    with pytest.raises(Exception, match="Cannot make"):
        store.save(MINE)


def test_built_in_names_and_empty_ones_are_refused(tmp_path):
    store = PresetStore(tmp_path)
    for name in ("", "  ", "SVCT-20 (paper)", "x" * 61, "a\nb"):
        with pytest.raises(RequestError):
            store.save(Preset(name))
    with pytest.raises(RequestError):
        store.delete(BUILT_IN[0])


def test_the_folder_can_be_chosen_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALSCOPE_CONFIG", str(tmp_path))
    assert PresetStore().folder == tmp_path / "presets"


def test_save_choose_and_delete_with_the_keyboard(qtbot, tmp_path):
    bar = bar_of(qtbot, PresetStore(tmp_path))
    qtbot.mouseClick(bar.save, Qt.MouseButton.LeftButton)
    assert bar.name.isVisible()
    assert not bar.keep.isEnabled()
    qtbot.keyClicks(bar.name, "Mine")
    qtbot.keyClick(bar.name, Qt.Key.Key_Return)
    assert not bar.name.isVisible()
    assert names(bar)[-1] == bar.combo.currentText() == "Mine"
    with qtbot.waitSignal(bar.chosen) as chosen:
        bar.combo.activated.emit(bar.combo.currentIndex())
    assert chosen.args[0].settings == MINE.settings
    qtbot.mouseClick(bar.delete, Qt.MouseButton.LeftButton)
    assert "Mine" not in names(bar)
    assert list(tmp_path.glob("*.json")) == []


def test_the_same_name_replaces_and_says_so(qtbot, tmp_path):
    bar = bar_of(qtbot, PresetStore(tmp_path))
    for words in ("Keep", "Replace"):
        qtbot.mouseClick(bar.save, Qt.MouseButton.LeftButton)
        qtbot.keyClicks(bar.name, "Mine")
        assert bar.keep.text() == words
        qtbot.mouseClick(bar.keep, Qt.MouseButton.LeftButton)
    assert names(bar).count("Mine") == 1


def test_escape_asks_no_more_and_a_taken_name_is_refused_as_typed(qtbot, tmp_path):
    bar = bar_of(qtbot, PresetStore(tmp_path))
    qtbot.mouseClick(bar.save, Qt.MouseButton.LeftButton)
    qtbot.keyClicks(bar.name, "SVCT-20 (paper)")
    assert "comes with the program" in bar.sentence.text()
    qtbot.keyClick(bar.name, Qt.Key.Key_Return)
    assert bar.name.isVisible()
    qtbot.keyClick(bar.name, Qt.Key.Key_Escape)
    assert not bar.name.isVisible()
    assert not bar.sentence.isVisible()


def test_built_in_presets_cannot_be_deleted_and_say_why(qtbot, tmp_path):
    bar = bar_of(qtbot, PresetStore(tmp_path))
    assert bar.delete.toolTip() == "Choose a preset first."
    bar.combo.setCurrentIndex(1)
    assert not bar.delete.isEnabled()
    assert bar.delete.toolTip() == "It comes with the program."


def test_a_broken_file_is_told_in_the_bar(qtbot, tmp_path):
    (tmp_path / "broken.json").write_text("{")
    bar = bar_of(qtbot, PresetStore(tmp_path))
    assert bar.sentence.isVisible()
    assert "broken.json" in bar.sentence.text()
