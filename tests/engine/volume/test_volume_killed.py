"""kill -9 at any moment costs the slices in hand and nothing else."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from engine.cli import main
from engine.physics.phantoms.stack import TorsoStack
from engine.workflows.volume.folder import JOURNAL, VolumeFolder

ROOT = Path(__file__).resolve().parents[3]
SCAN = ["--unit", "hu", "--pixel-mm", "5.9", "--views", "6", "--photons", "100000"]
SOLVER = ["--nfe", "4", "--cg-iterations", "5", "--prior", "tv", "--device", "cpu", "--quiet"]
LAYOUT = ["--batch", "1", "--threads", "1"]
KILLS = 5
# the command, whose denoiser stands still when the journal has so many lines
STANDS = """
import sys, time
from pathlib import Path
from engine.cli import main
from engine.priors.analytic import TVPrior
journal, most, denoise = Path(sys.argv[1]), int(sys.argv[2]), TVPrior.__call__

def stands(*args):
    while journal.read_bytes().count(b"\\n") >= most:
        time.sleep(0.01)
    return denoise(*args)

TVPrior.__call__ = stands
sys.exit(main(sys.argv[3:]))
"""


def command(folder, out):
    stack = str(out.with_name("stack.npy"))
    return ["reconstruct", stack, *SCAN, *SOLVER, *LAYOUT, "--volume", str(folder), "-o", str(out)]


def lines(folder):
    path = folder / JOURNAL
    return path.read_bytes().count(b"\n") if path.exists() else 0


def killed_while_working(folder, out, rng):
    """Start the command and kill it a random while after a random number of slices.

    It does at most two slices more, however late the kill comes.
    """
    enough = lines(folder) + rng.randint(2, 16)  # two lines a slice
    asked = [str(folder / JOURNAL), str(enough + 4), *command(folder, out)]
    child = subprocess.Popen([sys.executable, "-c", STANDS, *asked], cwd=ROOT)
    try:
        while lines(folder) < enough and child.poll() is None:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.1))
    finally:
        child.kill()
    return child.wait() == -signal.SIGKILL


def test_sixty_slices_killed_five_times_equal_an_undisturbed_run(tmp_path):
    stack, rng, folder = TorsoStack(7, size=64), random.Random(8), tmp_path / "killed"
    np.save(tmp_path / "stack.npy", np.stack([stack.image(n) for n in range(60)]))
    for _ in range(KILLS):
        assert killed_while_working(folder, tmp_path / "killed.npy", rng)
    stored_before = VolumeFolder.open(folder).stored
    assert 0 < len(stored_before) < 60
    assert main(command(folder, tmp_path / "killed.npy")) == 0
    assert main(command(tmp_path / "whole", tmp_path / "whole.npy")) == 0

    killed, whole = VolumeFolder.open(folder), VolumeFolder.open(tmp_path / "whole")
    assert killed.complete
    assert len(killed.stored) == 60
    seen: set[int] = set()
    for entry in killed.journal():
        assert not (entry["what"] == "start" and entry["slice"] in seen), "computed twice"
        if entry["what"] == "stored":
            seen.add(entry["slice"])
    assert len(seen) >= 60 - KILLS  # a kill may come between a slice and its line
    assert len({entry["process"] for entry in killed.journal()}) == KILLS + 1
    for number in range(60):
        assert killed.read(number).sha256 == whole.read(number).sha256
    result = np.load(tmp_path / "killed.npy")
    assert result.shape == (60, 64, 64)
    assert np.array_equal(result, np.load(tmp_path / "whole.npy"))
    assert not list(folder.glob(".*"))
