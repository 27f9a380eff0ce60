"""Every test here is one cell of the fault matrix, or checks the matrix itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
import torch
from fault_matrix import KEY, Cell
from fault_stages import STAGES, copied, make_inputs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cell(request):
    """Says which fault strikes which stage, and ticks off what was seen."""
    cell = Cell()
    request.node.user_properties.append((KEY, cell.line))
    return cell


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """Nothing of a test goes to the person's own settings or runs."""
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"DUALSCOPE_{name}", str(tmp_path / name.lower()))


@pytest.fixture(autouse=True)
def one_thread():
    """Images this small lose more time to threads than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder)
    return folder


class Before:
    """What a stage has written before the fault, and what it writes without one."""

    def __init__(self, stage, inputs, folder):
        self.stage = STAGES[stage]
        self.folder = folder / "old"
        self.folder.mkdir()
        assert self.stage.act(inputs, self.folder, "old") == (0, "")
        self.old = self.stage.read(self.folder)
        fresh = copied(self.folder, folder / "new")
        assert self.stage.act(inputs, fresh, "new")[0] == 0
        self.new = self.stage.read(fresh)
        assert not (self.old.shape == self.new.shape and (self.old == self.new).all())

    def state(self, out):
        """'old' or 'new': which of the two a reader finds as a whole."""
        found = self.stage.read(out)
        for name, value in (("old", self.old), ("new", self.new)):
            if found.shape == value.shape and (found == value).all():
                return name
        raise AssertionError(f"{self.stage.name}: neither the old content nor the new")


@pytest.fixture(scope="session")
def before(inputs, tmp_path_factory):
    made = {}

    def of(stage):
        if stage not in made:
            made[stage] = Before(stage, inputs, tmp_path_factory.mktemp("stage"))
        return made[stage]

    return of


@pytest.fixture(scope="session")
def killer(inputs):
    """Ask for a stage to be run, and perhaps killed, in a child of its own."""
    support = str(ROOT / "tests" / "support")
    process = subprocess.Popen(
        [sys.executable, str(Path(support) / "kill_server.py")],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), support]),
            "OMP_NUM_THREADS": "1",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"

    def ask(stage, out, at=-1):
        request = {"stage": stage, "inputs": str(inputs), "out": str(out), "at": at}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    process.wait(30)
    process.stdout.close()
