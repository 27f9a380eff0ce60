"""About says what the program is, what it is not for, and whose work it uses."""

import sys
import tomllib
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel

import engine
from app.shell import about
from app.shell.about import RESEARCH, AboutDialog
from app.shell.crash import DetailsDialog
from app.shell.icon import SIZES_PX, app_icon
from engine.audit.licences import DEPENDENCIES, licence_text, licences

ROOT = Path(__file__).resolve().parents[2]


def test_the_list_of_packages_is_that_of_the_project():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {entry.partition("=")[0].rstrip("><~!") for entry in wanted}
    assert names == set(DEPENDENCIES)


def test_every_package_states_its_licence():
    found = {entry.package: entry for entry in licences()}
    assert found["PySide6-Essentials"].licence.startswith("LGPL-3.0")
    assert found["pydicom"].licence == "MIT License"
    for entry in found.values():
        assert entry.licence not in ("", "not stated")
        assert "\n" not in entry.licence
    assert "Permission is hereby granted" in licence_text("pydicom")
    assert "its site has it" in licence_text("no-such-package")


@pytest.mark.parametrize("threaded", [False, True])
def test_the_dialog_shows_name_purpose_versions_and_licences(qtbot, tasks, threaded):
    dialog = AboutDialog(tasks=tasks if threaded else None)
    qtbot.addWidget(dialog)
    dialog.open()
    qtbot.waitUntil(lambda: dialog.table.rowCount() == len(licences()))
    texts = [label.text() for label in dialog.findChildren(QLabel)]
    assert f"Dualscope {engine.__version__}" in texts
    assert RESEARCH in texts
    assert "Licence: Apache-2.0" in texts
    assert dialog.versions["PySide6"].text() == "6.10.1"
    dialog.table.setFocus()
    dialog.table.selectRow(0)
    qtbot.keyClick(dialog.table, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(dialog.findChildren(DetailsDialog)))
    (text,) = dialog.findChildren(DetailsDialog)
    assert text.windowTitle() == f"Licence of {dialog.table.item(0, 0).text()}"
    text.close()
    dialog.close()


def test_torch_is_not_loaded_to_tell_its_version(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert dict(about.shown_versions())["torch"] == "not loaded yet"
    assert "torch" not in sys.modules


def test_the_icon_is_drawn_at_every_size_in_the_colours_of_the_runs(qapp):
    icon = app_icon()
    assert {size.width() for size in icon.availableSizes()} == set(SIZES_PX)
    for size in (16, 256):
        image = icon.pixmap(size, size).toImage()
        hues = {QColor(image.pixel(x, y)).hue() for x in range(size) for y in range(size)}
        assert any(35 <= hue <= 50 for hue in hues)  # orange
        assert any(195 <= hue <= 215 for hue in hues)  # blue
        assert QColor.fromRgba(image.pixel(0, 0)).alpha() < 128  # round corners
