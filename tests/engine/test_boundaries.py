"""The engine knows no Qt, and starting it does not load what it does not need."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def imports(folder):
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: relative import"
                yield path, node.module or ""


def test_the_engine_never_imports_qt_or_the_app():
    for path, module in imports("engine"):
        assert module.split(".")[0] not in {"PySide6", "pyqtgraph", "qasync", "app"}, path


def operator_classes():
    """The names of all classes made of Operator, wherever they are."""
    bases = {}
    for folder in ("engine", "app"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    bases[node.name] = {b.id for b in node.bases if isinstance(b, ast.Name)}
    found = {"Operator"}
    while more := {name for name, of in bases.items() if of & found} - found:
        found |= more
    return found


def test_outside_physics_nobody_asks_which_operator_it_is():
    """It says what it can; a wrapper says it, too, but is of another class."""
    operators = operator_classes()
    assert {"CTOperator", "MeasuredCT", "MultiCoilMRI"} <= operators
    for path in [*(ROOT / "engine").rglob("*.py"), *(ROOT / "app").rglob("*.py")]:
        if "physics" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                assert not names & operators, f"{path}:{node.lineno}"


def test_the_app_does_no_maths():
    for path, module in imports("app"):
        assert module.split(".")[0] not in {"torch", "scipy"}, path


def test_gpl_plug_ins_are_not_imported_by_default():
    code = (
        "import sys, engine.cli, engine.runs.prepare, engine.cli.doctor as d; d.examine();"
        "assert not {'astra', 'torch_radon'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_picture_of_the_rooms_is_that_of_the_code():
    from installer import make_map

    assert make_map.TARGET.read_text(encoding="utf-8") == make_map.picture(), (
        "python installer/make_map.py draws it again"
    )
