"""What the program opens when it is started with the name of a file."""

from pathlib import Path
from types import SimpleNamespace

from app.main import open_named


def test_a_workspace_is_opened_as_one_and_anything_else_as_data():
    opened = []
    window = SimpleNamespace(
        data=SimpleNamespace(open=lambda text: opened.append(("data", text))),
        workspaces=SimpleNamespace(open=lambda path: opened.append(("workspace", path))),
    )
    for text in ("knee.dualscope", "slice.dcm", "demo:ct"):
        open_named(window, text)
    knee = ("workspace", Path("knee.dualscope").absolute())
    assert opened == [knee, ("data", "slice.dcm"), ("data", "demo:ct")]
