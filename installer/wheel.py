"""``python -m installer wheel -o OUT``: the package for pip, the same bytes wherever it is made.

A copy is built whose files have fixed times and permissions, without any network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from installer.console import SetUpError

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDERS: Final = ("dualscope", "engine", "app", "resources")  # as they lie in site-packages
FILES: Final = ("pyproject.toml", "README.md", "LICENSE")
EPOCH: Final = "315532800"  # 1 January 1980, the first time that a zip archive knows


def make_wheel(out: Path, root: Path = ROOT) -> Path:
    with tempfile.TemporaryDirectory(prefix="dualscope-wheel-") as folder:
        source, made = Path(folder) / "source", Path(folder) / "made"
        source.mkdir()
        for name in FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
            shutil.copytree(root / name, source / name, ignore=ignored)
        for name in FILES:
            shutil.copyfile(root / name, source / name)
        for path in source.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
        command += ["--no-build-isolation", "--wheel-dir", str(made), str(source)]
        umask = {} if sys.platform == "win32" else {"umask": 0o022}
        done = subprocess.run(
            command,
            env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            **umask,  # type: ignore[call-overload]
        )
        if done.returncode:
            raise SetUpError(f"The wheel could not be made:\n{done.stderr[-2000:]}")
        (wheel,) = made.glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, out / wheel.name))
