"""A workspace file may come from anybody: a wrong one is one sentence, and changes nothing."""

import json

import pytest

from app.workspace.file import LARGEST, Workspace, runs_folder, write_workspace
from app.workspace.reading import read_workspace
from engine.spec.errors import RequestError

GOOD = {
    "format": "dualscope-workspace",
    "format_version": 1,
    "data": {"text": "demo:ct", "options": {}, "sha256": "", "slice": 0},
    "acquisition": {},
    "solver": {},
    "view": {},
    "runs": [
        {
            "name": "20250101-120000-abcdef",
            "number": 1,
            "label": "FBP",
            "note": "",
            "visible": True,
            "places": {"input": "demo:ct", "options": {}, "prior": "tv"},
        }
    ],
}


def changed(*path_and_value):
    *path, last, value = path_and_value
    body = json.loads(json.dumps(GOOD))
    inner = body
    for part in path:
        inner = inner[part]
    inner[last] = value
    return json.dumps(body)


HOSTILE = [
    "",
    "[]",
    "null",
    "{" * 100_000,
    "[" * 100_000,
    '{"format": "dualscope-workspace", "format_version": 1}',
    changed("format", "dualscope-run"),
    changed("format_version", 99),
    changed("format_version", "1"),
    changed("acquisition", []),
    changed("solver", None),
    changed("view", "x"),
    changed("view", {"zoom": float("nan")}),
    changed("runs", {}),
    changed("runs", [1]),
    changed("runs", GOOD["runs"] * 2),
    changed("runs", GOOD["runs"] * 1001),
    *(
        changed("runs", 0, "name", name)
        for name in ("../../etc/passwd", "/etc/passwd", "a/b", "C:\\x", "..", "", "x\0y", 3, None)
    ),
    changed("runs", 0, "number", True),
    changed("runs", 0, "number", -1),
    changed("runs", 0, "number", 1e300),
    changed("runs", 0, "note", "x" * 10_001),
    changed("runs", 0, "note", None),
    changed("runs", 0, "visible", 1),
    changed("runs", 0, "places", []),
    changed("runs", 0, "places", {"device": "cuda"}),
    changed("runs", 0, "places", {"input": "./../../secret.npy"}),
    changed("runs", 0, "places", {"options": {"sidecar": "./../x.json"}}),
    changed("runs", 0, "places", {"options": {"sidecar": ["x"]}}),
    changed("runs", 0, "places", {"prior": "./a/../../x.safetensors"}),
    changed("runs", 0, "places", {"prior": 3}),
    changed("data", []),
    changed("data", "text", ""),
    changed("data", "text", "./../x"),
    changed("data", "text", ".//C:/x"),
    changed("data", "text", "a\0b"),
    changed("data", "sha256", "zz"),
    changed("data", "slice", -1),
    changed("data", "slice", 0.5),
    changed("data", "options", {"unit": {"a": 1}}),
]


def test_the_pattern_of_the_hostile_files_is_good_itself(tmp_path):
    path = tmp_path / "w.dualscope"
    path.write_text(json.dumps(GOOD))
    assert read_workspace(path).runs[0].record_path.parent == runs_folder(path)


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_workspace_is_one_sentence(tmp_path, content):
    path = tmp_path / "w.dualscope"
    path.write_text(content)
    with pytest.raises(RequestError) as caught:
        read_workspace(path)
    sentence = str(caught.value)
    assert sentence.startswith("w.dualscope ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 150
    assert [p.name for p in tmp_path.iterdir()] == ["w.dualscope"]


def test_a_huge_or_missing_workspace_is_not_even_read(tmp_path):
    path = tmp_path / "w.dualscope"
    with path.open("wb") as stream:
        stream.truncate(LARGEST + 1)
    with pytest.raises(RequestError, match="too large"):
        read_workspace(path)
    with pytest.raises(RequestError, match="Cannot read"):
        read_workspace(tmp_path / "none.dualscope")
    with pytest.raises(RequestError, match=r"ends in \.dualscope"):
        write_workspace(tmp_path / "w.json", Workspace())
