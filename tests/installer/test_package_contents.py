"""What the recipe takes along and leaves out, and the files that the recipes name."""

import ast
import configparser
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from app.workspace.file import SUFFIX
from installer.package import contents, deb, entry, macos

ROOT = contents.ROOT
PACKAGE = ROOT / "installer" / "package"


def imported(file):
    """Every module that a file may import, at its top or later."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_nothing_that_the_program_imports_is_left_out():
    files = [file for folder in contents.OWN for file in (ROOT / folder).rglob("*.py")]
    hidden = {name for file in files for name in imported(file) if contents.excluded(name)}
    assert hidden == set()
    assert len(files) > 100


def test_every_module_of_ours_goes_in():
    modules = contents.own_modules()
    assert {"engine", "engine.cli", "engine.cli.audit", "app.main", "app.tour.ct"} <= {*modules}


@pytest.mark.parametrize(
    ("place", "source", "goes"),
    [
        ("torch/lib/libtorch_cpu.so", "/env/torch/lib/libtorch_cpu.so", True),
        ("torch/bin/protoc", "/env/torch/bin/protoc", False),
        ("torch/testing/_comparison.py", "/env/torch/testing/_comparison.py", True),
        ("PySide6/Qt/lib/libQt6Widgets.so.6", "/env/libQt6Widgets.so.6", True),
        ("PySide6/Qt/lib/libQt6Network.so.6", "/env/libQt6Network.so.6", False),
        ("PySide6/Qt/plugins/platforms/libqxcb.so", "/env/libqxcb.so", True),
        ("resources/help/trust.md", "/checkout/resources/help/trust.md", True),
        ("libssl.so.3", "/usr/lib/x86_64-linux-gnu/libssl.so.3", True),
        ("libX11.so.6", "/lib/x86_64-linux-gnu/libX11.so.6", False),
        ("libreadline.so.8", "/lib/x86_64-linux-gnu/libreadline.so.8", False),
    ],
)
def test_what_is_kept(place, source, goes):
    assert bool(contents.kept([(place, source, "BINARY")])) == goes


# the executable


def test_the_executable_runs_modules_of_ours_and_no_others(monkeypatch):
    started = []
    monkeypatch.setattr(entry.runpy, "run_module", lambda *_, **__: started.append(sys.argv[1:]))
    monkeypatch.setattr(sys, "argv", ["dualscope", "-m", "app.tour", "out", "--quick"])
    entry.main()
    assert started == [["out", "--quick"]]
    assert entry.helper(["-m", "pip"]) == []
    assert entry.helper(["reconstruct", "-m"]) == []


def test_a_document_that_macos_opens_goes_to_the_workstation(tmp_path):
    assert entry.request([str(tmp_path)], "darwin") == ["gui", str(tmp_path)]
    assert entry.request([str(tmp_path)], "linux") == [str(tmp_path)]
    assert entry.request(["doctor"], "darwin") == ["doctor"]


# menus, types, recipes


def test_the_menu_entry_opens_files_in_the_workstation():
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(deb.LINUX / "dualscope.desktop", encoding="utf-8")
    menu = parser["Desktop Entry"]
    assert menu["Exec"] == "dualscope gui %f"
    types = ElementTree.parse(deb.LINUX / "dualscope.xml").getroot()
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    known = {one.get("type"): one.find(f"{space}glob").get("pattern") for one in types}
    assert known["application/x-dualscope-workspace"] == f"*{SUFFIX}"
    assert known["application/dicom"] == "*.dcm"
    assert {*menu["mimetype"].strip(";").split(";")} == known.keys()


def test_every_system_knows_the_workspace_by_its_suffix():
    declared = macos.INFO["UTExportedTypeDeclarations"][0]["UTTypeTagSpecification"]
    assert declared["public.filename-extension"] == [SUFFIX.removeprefix(".")]
    script = (PACKAGE / "windows" / "dualscope.iss").read_text(encoding="utf-8")
    assert f"Software\\Classes\\{SUFFIX}" in script


def test_the_windows_script_names_files_that_exist():
    file = PACKAGE / "windows" / "dualscope.iss"
    script = file.read_text(encoding="utf-8")
    licence = re.search(r"^LicenseFile=(.+)$", script, re.MULTILINE)[1]
    assert (file.parent / licence.replace("\\", "/")).resolve() == ROOT / "LICENSE"
    spec = (PACKAGE / "dualscope.spec").read_text(encoding="utf-8")
    for program in re.findall(r"\{app\}\\(\w+)\.exe", script):
        assert f'executable("{program}"' in spec


def test_the_workflow_names_files_that_exist_and_every_library_that_qt_needs():
    text = (ROOT / ".github" / "workflows" / "packages.yml").read_text(encoding="utf-8")
    named = re.findall(r"(?<![\w/])(?:installer|resources)/[\w./-]+\w", text)
    assert "installer/package/windows/dualscope.iss" in named
    assert all((ROOT / name).is_file() for name in named)
    assert all(package in text for package in deb.QT_PACKAGES)


def test_the_spec_is_python_and_takes_the_lists_from_one_place():
    tree = ast.parse((PACKAGE / "dualscope.spec").read_text(encoding="utf-8"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {"contents.EXCLUDED", "contents.DATA", "contents.HIDDEN", "bundled.check"} <= used
    assert all((ROOT / source).exists() for source, _ in contents.DATA)
    assert Path(entry.__file__).parent == PACKAGE
