"""Settings survive a restart, broken files do not stop the program."""

import json

import pytest
from PySide6.QtCore import QByteArray

from app.shell.settings import DEFAULTS, AppSettings


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config" / "settings.json"


def test_a_change_is_there_after_a_restart(qtbot, path):
    settings = AppSettings(path)
    with qtbot.waitSignal(settings.changed, check_params_cb=lambda name: name == "theme"):
        settings.set("theme", "light")
    assert not path.exists()  # not at every change
    qtbot.waitUntil(path.exists)
    assert AppSettings(path).get("theme") == "light"


def test_several_changes_are_written_once_off_the_gui_thread(qtbot, path, tasks, monkeypatch):
    import threading

    from app.shell import settings as module

    writers = []
    write = module.write_bytes_atomic

    def watched(*args):
        writers.append(threading.current_thread().name)
        write(*args)

    monkeypatch.setattr(module, "write_bytes_atomic", watched)
    settings = AppSettings(path, tasks)
    settings.set("device", "cpu")
    settings.put("folders", "open", "/here")
    settings.set("tour_seen", True)
    qtbot.waitUntil(path.exists)
    assert len(writers) == 1
    assert writers[0].startswith("dualscope-tasks")
    stored = json.loads(path.read_text())
    assert stored == {"device": "cpu", "folders": {"open": "/here"}, "tour_seen": True}


def test_an_older_state_never_replaces_a_newer_one(path, qapp):
    settings = AppSettings(path)
    settings.set("device", "cpu")
    older = settings._content(), settings._version
    settings.set("device", "cuda")
    settings.save_now()
    settings._write(*older)  # a task that was late
    assert json.loads(path.read_text())["device"] == "cuda"


def test_unknown_keys_are_kept_and_defaults_are_given(path, qapp):
    path.parent.mkdir()
    path.write_text(json.dumps({"from_the_future": [1, {"a": 2}], "theme": "dark"}))
    settings = AppSettings(path)
    assert settings.problem == ""
    assert settings.get("device") == DEFAULTS["device"]
    settings.set("device", "cpu")
    settings.save_now()
    assert json.loads(path.read_text())["from_the_future"] == [1, {"a": 2}]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b"9" * 2_000_000]
)
def test_broken_content_means_defaults_one_sentence_and_a_copy(path, qapp, content):
    path.parent.mkdir()
    path.write_bytes(content)
    settings = AppSettings(path)
    assert settings.get("theme") == "system"
    assert settings.problem.count(".") >= 1
    assert "\n" not in settings.problem
    settings.set("theme", "dark")
    settings.save_now()
    assert path.with_suffix(".broken.json").read_bytes() == content
    assert AppSettings(path).get("theme") == "dark"
    assert AppSettings(path).problem == ""


def test_a_value_of_the_wrong_kind_goes_to_its_default_and_is_named(path, qapp):
    path.parent.mkdir()
    path.write_text(json.dumps({"theme": "pink", "tour_seen": 1, "folded": [3], "device": "cpu"}))
    settings = AppSettings(path)
    assert settings.get("theme") == "system"
    assert settings.get("tour_seen") is False
    assert settings.get("folded") == []
    assert settings.get("device") == "cpu"
    assert "folded, theme, tour_seen" in settings.problem
    with pytest.raises(TypeError, match="theme"):
        settings.set("theme", "pink")


def test_what_is_given_out_is_a_copy(path, qapp):
    settings = AppSettings(path)
    settings.get("folders")["open"] = "/there"
    assert settings.get("folders") == {}
    assert DEFAULTS["folders"] == {}


def test_states_of_windows_come_back_bit_by_bit(path, qapp):
    settings, state = AppSettings(path), QByteArray(bytes(range(256)))
    settings.set_bytes("geometry", state)
    settings.set_bytes("splitters", state, "window")
    settings.save_now()
    again = AppSettings(path)
    assert again.bytes_of("geometry") == state
    assert again.bytes_of("splitters", "window") == state
    assert again.bytes_of("splitters", "unknown").isEmpty()


def test_a_folder_that_cannot_be_made_is_a_sentence_and_loses_nothing(qtbot, tmp_path):
    (tmp_path / "file").write_text("in the way")
    settings = AppSettings(tmp_path / "file" / "settings.json")
    settings.set("device", "cpu")
    with qtbot.waitSignal(settings.failed) as told:
        settings.save_now()
    assert told.args[0].startswith("Cannot make")
    assert settings.get("device") == "cpu"
