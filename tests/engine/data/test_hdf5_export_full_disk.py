"""A disk that is full: one sentence, nothing left behind, nothing on the terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="no limit on the size of files on this system")

ROOT = Path(__file__).resolve().parents[3]
WORKER = """
import resource, sys
sys.path[:0] = [{root!r}, {support!r}]
from pathlib import Path
from results import make_result
from engine.export.outputs import write_outputs
from engine.spec.errors import DualscopeError

result = make_result("MR", slices=3, placed=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
for name in sys.argv[1:]:
    try:
        write_outputs([Path(name)], result)
    except DualscopeError as error:
        print(error)
"""
NAMES = ["a.h5", "a.nii", "a.nii.gz", "a.tif", "a.png", "a.16.png", "a.npy"]


def test_a_full_disk_is_one_sentence_and_leaves_nothing_behind(tmp_path):
    code = WORKER.format(root=str(ROOT), support=str(ROOT / "tests" / "support"))
    done = subprocess.run(
        [sys.executable, "-c", code, *NAMES], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"Cannot write {name}: File too large." for name in NAMES]
    assert list(tmp_path.iterdir()) == []
