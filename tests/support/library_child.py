"""A window as the library sees it: adds, finishes, remarks and deletes runs until it is killed.

    python library_child.py ROOT SEED

It says what it is about to delete and what it has finished, one line each.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from engine.files.atomic import write_bytes_atomic
from engine.files.run_library import RunLibrary
from engine.files.run_library_entry import CHECKPOINT, RESULT, THUMBNAIL


def record_of(status: str, k: int = 3) -> bytes:
    body = {
        "format": "dualscope-run",
        "format_version": 2,
        "job": {"input": "/scans/phantom.npy", "solver": "dc-pnpdp", "settings": {"nfe": 8}},
        "input": {"name": "/scans/phantom.npy", "modality": "CT", "slices": [4]},
        "operator": {"true_acceleration": 4.27},
        "status": status,
        "history": [{"k": n + 1, "nfe": n + 1} for n in range(k)],
        "metrics": {"ct": {"psnr": 31.5, "ssim": 0.9}},
        "timings": {"total": 1.5},
    }
    return json.dumps(body).encode()


def name_of(number: int, seed: int) -> str:
    return f"20260102-{number // 3600 % 24:02}{number // 60 % 60:02}{number % 60:02}-{seed:06x}"


def say(word: str, run_id: str) -> None:
    print(word, run_id, flush=True)


def make(library: RunLibrary, run_id: str, finish: bool = True) -> None:
    path = library.begin(run_id)
    write_bytes_atomic(path, record_of("running", 1))
    library.refresh(run_id)
    write_bytes_atomic(path.with_name(run_id + CHECKPOINT), bytes(500))
    if finish:
        write_bytes_atomic(path, record_of("done", 8))
        write_bytes_atomic(path.with_name(run_id + RESULT), bytes(2000))
        write_bytes_atomic(path.with_name(run_id + THUMBNAIL), bytes(50))
        library.refresh(run_id)


def work(root: Path, seed: int) -> None:
    chance = random.Random(seed)
    library = RunLibrary(root)
    library.agree()
    for number in range(10_000):
        run_id = name_of(number, seed)
        make(library, run_id, finish=chance.random() < 0.7)
        entry = library.get(run_id)
        if entry is not None and entry.status == "finished":
            say("finished", run_id)
        mine = [entry.id for entry in library.find("phantom") if entry.id.endswith(f"{seed:06x}")]
        if chance.random() < 0.3:
            library.remark(chance.choice(mine), note="seen", pinned=chance.random() < 0.5)
        if chance.random() < 0.4:
            gone = chance.choice(mine)
            say("deleting", gone)
            library.delete(gone)
        if chance.random() < 0.1:
            library.agree()


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]))
