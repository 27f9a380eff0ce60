"""Damaged inputs for a while: ``python tests/support/fuzz_run.py --minutes 10 [--target NAME]``.

Each target has a process of its own with limits that are part of the verdict: 1 GB of memory, 5 s
for an input, and no descriptor left open. Inputs that lie in ``tests/fuzz/corpus/TARGET`` come
first; what is found is kept in ``fuzz-findings``. Guided by atheris where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
MEMORY_MB, SECONDS, DESCRIPTORS, LONGEST = 1024, 5, 64, 1 << 16
HANGS = 60  # s of the clock
LOOK_EVERY = 500  # inputs, at the open descriptors


def watched(one):
    """Stops when descriptors are left open: one by one they cannot be told from caches."""
    count = open_at_start = 0

    def use(content):
        nonlocal count, open_at_start
        begun = time.process_time()
        one(content)
        took = time.process_time() - begun  # of the processor: the machine may be busy
        assert took < SECONDS, f"{took:.1f} s for one input"
        count += 1
        if count % LOOK_EVERY == 0:
            now = len(os.listdir("/proc/self/fd"))
            open_at_start = open_at_start or now
            assert now < open_at_start + DESCRIPTORS, f"{now} descriptors are open"

    return use


def guided() -> bool:
    return importlib.util.find_spec("atheris") is not None


def child(name: str, folder: Path, seconds: int) -> None:
    """One target for a while; prints libFuzzer's figures."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    if guided():
        import atheris

        with atheris.instrument_imports(include=["engine"]):
            from fuzz_targets import TARGETS, trial

            for module in MODULES[name]:
                importlib.import_module(module)
        flags = [f"-max_total_time={seconds}", f"-rss_limit_mb={MEMORY_MB}", f"-timeout={HANGS}"]
        flags += [f"-artifact_prefix={folder}/finding-", "-print_final_stats=1"]
        flags += [f"-max_len={LONGEST}", "-verbosity=0"]
        warm_up(trial(TARGETS[name]), folder)
        atheris.Setup([name, *flags, str(folder / "corpus")], watched(trial(TARGETS[name])))
        atheris.Fuzz()
        return
    from fuzz_targets import TARGETS, trial

    warm_up(trial(TARGETS[name]), folder)
    at_random(watched(trial(TARGETS[name])), folder, seconds)


def warm_up(one, folder: Path) -> None:
    """Libraries are loaded while nobody looks at the time."""
    for seed in sorted((folder / "corpus").iterdir()):
        one(seed.read_bytes())


MODULES = {
    "readers": ("engine.data.source", "engine.data.readers.arrays", "engine.data.readers.mat5"),
    "pickles": ("engine.priors.importing",),
    "archives": ("engine.priors.importing",),
    "safetensors": ("engine.priors.safetensors_file", "engine.files.checkpoint"),
    "records": ("engine.files.record",),
    "mrd": ("engine.data.readers.kspace.mrd_header",),
    "answers": ("engine.workflows.cluster.answers", "engine.workflows.volume.slice_file"),
}


def at_random(one, folder: Path, seconds: int) -> None:
    from mutations import mutate

    seeds = [path.read_bytes() for path in sorted((folder / "corpus").iterdir())]
    end, runs, slowest = time.monotonic() + seconds, 0, 0.0
    while time.monotonic() < end:
        rng = random.Random(runs)
        content = mutate(rng.choice(seeds), rng)[:LONGEST]
        (folder / "finding-last").write_bytes(content)
        signal.alarm(HANGS)
        begun = time.process_time()
        one(content)
        signal.alarm(0)
        slowest, runs = max(slowest, time.process_time() - begun), runs + 1
        peak = peak_mb()
        assert peak < MEMORY_MB, f"{peak} MB"
    (folder / "finding-last").unlink()
    print(f"stat::number_of_executed_units: {runs}")
    print(f"stat::slowest_unit_time_sec: {slowest:.0f}\nstat::peak_rss_mb: {peak}", flush=True)


def peak_mb() -> int:
    """Of this program alone: `getrusage` counts what its parent held when it was forked, too."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) // 1024


def run(name: str, seconds: int, findings: Path) -> dict:
    """A target in its process: how much was tried, what it took, and what was found."""
    from fuzz_targets import TARGETS

    with tempfile.TemporaryDirectory(prefix="dualscope-fuzz-") as scratch:
        folder = Path(scratch)
        (folder / "corpus").mkdir()
        (folder / "seeds").mkdir()
        seeds = [*TARGETS[name].seeds(folder / "seeds")]
        seeds += [p.read_bytes() for p in sorted((CORPUS / name).glob("*")) if p.is_file()]
        for number, seed in enumerate(seeds):
            (folder / "corpus" / f"seed-{number}").write_bytes(seed)
        done = subprocess.run(
            [sys.executable, __file__, "--child", name, scratch, str(seconds)],
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONPATH": python_path(), "OMP_NUM_THREADS": "1"},
        )
        said = done.stdout + done.stderr
        figures = {n: int(v) for n, v in re.findall(r"stat::(\w+):\s+(\d+)", said)}
        kept = []
        for path in folder.glob("finding-*"):
            findings.mkdir(exist_ok=True)
            kept.append(str(findings / f"{name}-{path.name}"))
            Path(kept[-1]).write_bytes(path.read_bytes())
        return {
            "target": name,
            "seeds": len(seeds),
            "inputs": figures.get("number_of_executed_units", 0),
            "peak_mb": figures.get("peak_rss_mb", 0),
            "slowest_s": figures.get("slowest_unit_time_sec", 0),
            "findings": kept if done.returncode == 0 else [*kept, said[-3000:]],
        }


def python_path() -> str:
    own = [str(ROOT), str(HERE)]
    return os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])


def main() -> int:
    from fuzz_targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--target", action="append", choices=TARGETS)
    options = parser.parse_args()
    names = options.target or list(TARGETS)
    if hasattr(os, "nice"):
        os.nice(19)
    print("Guided by atheris." if guided() else "atheris is not installed: damage is random.")
    seconds = max(1, round(60 * options.minutes / len(names)))
    failed = False
    for name in names:
        row = run(name, seconds, Path("fuzz-findings"))
        failed = failed or bool(row["findings"])
        print(json.dumps(row), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        sys.exit(main())
