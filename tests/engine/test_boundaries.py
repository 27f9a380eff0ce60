"""The engine knows no Qt, and starting it does not load what it does not need."""

import ast
import re
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


def test_every_module_of_ours_that_is_imported_is_there():
    """Also those that are imported within a function, when they are needed."""
    for folder in ("dualscope", "engine", "app", "installer", "examples", "tests"):
        for path, module in imports(folder):
            if module.split(".")[0] in {"engine", "app", "dualscope"}:
                file = ROOT.joinpath(*module.split("."))
                assert file.with_suffix(".py").is_file() or file.is_dir(), f"{path}: {module}"


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


def messages():
    """Every string of the engine but its documentation and the command line's own words."""
    for path in sorted((ROOT / "engine").rglob("*.py")):
        if path.parent.name == "cli":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        loose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if text and id(node) not in loose:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


OTHERS = {"separate.py": "options of Dask", "--reference.png": "a file", " --hash=": "pip's syntax"}


def test_no_message_outside_the_command_line_holds_an_option_of_it():
    for where, text in messages():
        if text in OTHERS or where.split("/")[-1].split(":")[0] in OTHERS:
            continue
        plain = re.sub(r"'dualscope [^']*('|$)", "", text)  # a command is typed like this anywhere
        assert not re.search(r"(?<![\w-])--[a-z]", plain), f"{where}: {text}"


def test_a_marked_setting_is_one_that_the_command_line_has():
    from engine.cli import COMMANDS, build_parser
    from engine.spec.errors import named_in, option_name

    known, parsers = set(), [build_parser([*COMMANDS])]
    while parsers:
        for action in parsers.pop()._actions:
            known |= set(action.option_strings)
            parsers += (action.choices or {}).values() if isinstance(action.choices, dict) else []
    for where, text in messages():
        for name in named_in(text):
            assert option_name(name) in known, f"{where}: {text}"


def test_every_file_that_contributing_names_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:app|engine|examples|installer|tests)/[a-z\d_/.-]*)`", text))
    assert len(named) > 30
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
