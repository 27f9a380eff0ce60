"""System libraries: installed by root, named to others, never in the way."""

import sys

import pytest

from installer import system
from installer.console import SetUpError

posix = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")


@pytest.fixture
def debian(tmp_path, monkeypatch):
    """A system with nothing but libgl1, the new name of libglib2.0-0, and a removed libegl1."""
    status = "libgl1 installed\\nlibglib2.0-0t64 installed\\nlibegl1 config-files\\n"
    calls = tmp_path / "apt-calls"
    for name, script in {
        "dpkg-query": f"printf '{status}'; exit 1",
        "apt-get": f'echo "$DEBIAN_FRONTEND $*" >> "{calls}"; exit ${{APT_FAILS:-0}}',
    }.items():
        program = tmp_path / "system" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "system"))
    return calls


@posix
def test_missing_libraries_are_found_under_their_old_and_new_names(debian):
    gone = system.missing(system.QT_PACKAGES)
    assert set(system.QT_PACKAGES) - set(gone) == {"libgl1", "libglib2.0-0"}


@posix
def test_root_gets_the_missing_libraries_without_questions(debian, monkeypatch):
    monkeypatch.setattr(system, "is_root", lambda: True)
    system.provide_qt_libraries()
    update, install = debian.read_text().splitlines()
    assert update.startswith("noninteractive")
    assert update.endswith("update")
    assert "install --yes" in install
    assert "libxcb-cursor0" in install
    assert "libgl1 " not in install


@posix
def test_others_are_told_the_line_to_type_and_the_set_up_goes_on(debian, monkeypatch, capsys):
    monkeypatch.setattr(system, "is_root", lambda: False)
    system.provide_qt_libraries()
    assert "sudo apt-get install libegl1 libxkbcommon-x11-0" in capsys.readouterr().out
    assert not debian.exists()


@posix
def test_a_failing_apt_is_a_warning(debian, monkeypatch, capsys):
    monkeypatch.setattr(system, "is_root", lambda: True)
    monkeypatch.setenv("APT_FAILS", "100")
    system.provide_qt_libraries()
    assert "Going on without" in capsys.readouterr().out


@posix
def test_the_tests_get_dicom_validators_or_say_what_is_skipped(debian, monkeypatch, capsys):
    monkeypatch.setattr(system, "is_root", lambda: False)
    system.provide_validators()
    assert "skipped until you type" in capsys.readouterr().out
    monkeypatch.setattr(system, "is_root", lambda: True)
    system.provide_validators()
    assert debian.read_text().splitlines()[-1].endswith("dicom3tools dcmtk dcm2niix")


@posix
def test_debians_missing_venv_module_is_installed_by_root_and_named_to_others(debian, monkeypatch):
    package = f"python3.{sys.version_info.minor}-venv"
    monkeypatch.setattr(system, "is_root", lambda: False)
    with pytest.raises(SetUpError, match=f"sudo apt-get install {package}"):
        system.provide_venv_module()
    monkeypatch.setattr(system, "is_root", lambda: True)
    system.provide_venv_module()
    assert debian.read_text().splitlines()[-1].endswith(package)


def test_a_system_without_apt_is_left_alone(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    system.provide_qt_libraries()
    assert capsys.readouterr().out == ""
