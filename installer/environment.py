"""The private environment ``.venv`` in the checkout: made once, checked in no time, repaired.

It is complete exactly when its stamp is there: the stamp is taken away before anything is
changed and written when all is done. Without one, whatever lies there is half made and goes.

Everything is installed from the lock files with --require-hashes and --no-deps, so what arrives
is what was tested. On Linux torch comes with or without CUDA: pip is asked for the smaller build
first, and takes it where its settings offer one. Else the CUDA build arrives, and then what it
alone needs. These have lock files of their own, because pip can neither prefer a build while it
checks hashes nor install a package only when another asks for it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from installer import system
from installer.console import SetUpError, run_quietly, say

APPLICATION = ("lock.txt",)
WITH_TESTS = ("lock.txt", "lock-test.txt")
TORCH_WITHOUT_CUDA = "lock-cpu.txt"
NEEDS_OF_CUDA = "lock-cuda.txt"

# What there is to download, by system; torch alone is 80 MB (macOS) to 530 MB (Linux with CUDA).
SIZES = {
    "lock.txt": "150 to 700 MB",
    "lock-test.txt": "up to 300 MB",
    "lock-build.txt": "10 MB",
    NEEDS_OF_CUDA: "2.2 GB",
}

# Not compiled: Python does that faster, for what is used only, when it is first used.
EXACTLY = (
    *("--require-hashes", "--no-deps", "--no-compile"),
    *("--only-binary", ":all:", "--requirement"),
)


@dataclass(frozen=True)
class Environment:
    """Where things are, on each system."""

    root: Path
    system: str = sys.platform
    place: Path | None = None  # of the environment, where it is not the checkout's own

    @property
    def folder(self) -> Path:
        return self.place or self.root / ".venv"

    def program(self, name: str) -> Path:
        if self.system == "win32":
            return self.folder / "Scripts" / f"{name}.exe"
        return self.folder / "bin" / name

    @property
    def packages(self) -> Path:
        if self.system == "win32":
            return self.folder / "Lib" / "site-packages"
        python = f"python3.{sys.version_info.minor}"
        return self.folder / "lib" / python / "site-packages"

    @property
    def stamp(self) -> Path:
        return self.folder / "dualscope-setup.json"

    def lock(self, name: str) -> Path:
        return self.root / "installer" / name

    def pip_install(self, *arguments: str) -> list[str]:
        # -I: no package of the user's own Python may count as installed
        return [str(self.program("python")), "-I", "-m", "pip", "install", *arguments]


def set_up(env: Environment, locks: Sequence[str]) -> None:
    """Bring the environment to what the lock files say; at once when it is there already."""
    if is_ready(env, locks):
        return
    with only_one_at_a_time(env.folder.with_name(f"{env.folder.name}.lock")):
        if not is_ready(env, locks):
            make(env, locks)


def make(env: Environment, locks: Sequence[str]) -> None:
    started = time.monotonic()
    done = read_stamp(env)
    env.stamp.unlink(missing_ok=True)
    if done.get("home") != home(env):
        done = {"home": home(env)}
        make_folder(env)
    wanted = contents(env, locks)
    install_packages(env, [name for name in locks if done.get(name) != wanted[name]])
    if env.place is None:  # elsewhere there are tools only, which work on the checkout
        say("Installing Dualscope itself ...")
        run_pip(env, "--no-deps", "--no-index", "--no-build-isolation", "--editable", str(env.root))
    write_stamp(env, done | wanted)
    say(f"Set up in {time.monotonic() - started:.0f} s.")


def make_folder(env: Environment) -> None:
    if importlib.util.find_spec("ensurepip") is None:
        system.provide_venv_module()
    if env.folder.exists():
        say("Removing an environment that is unfinished or of another Python ...")
        if Path(sys.prefix).resolve() == env.folder.resolve():
            raise SetUpError(
                "This Python is the one in .venv, which has to be made anew: please type "
                '"deactivate", then the same command again.'
            )
        try:
            shutil.rmtree(env.folder)
        except OSError as error:
            raise SetUpError(
                f"{env.folder} cannot be removed ({error.strerror}): close Dualscope, then run "
                "the same command again."
            ) from error
    say(f"Making the private environment {env.folder.name} ...")
    run_quietly([sys.executable, "-m", "venv", str(env.folder)], "Making the environment")


def install_packages(env: Environment, locks: Sequence[str]) -> None:
    torch_on_linux = "lock.txt" in locks and env.system == "linux"
    if torch_on_linux:
        install_torch_without_cuda(env)
    for name in locks:
        install(env, name)
    if torch_on_linux and torch_wants_cuda(env):
        install(env, NEEDS_OF_CUDA)


def install(env: Environment, name: str) -> None:
    count = len(re.findall(r"^\w", env.lock(name).read_text(encoding="utf-8"), re.MULTILINE))
    say(f"Installing {count} packages ({SIZES[name]} to download) ...")
    run_pip(env, *EXACTLY, str(env.lock(name)))


def install_torch_without_cuda(env: Environment) -> None:
    say("Looking for a torch without CUDA (200 MB) ...")
    try:
        run_pip(env, *EXACTLY, str(env.lock(TORCH_WITHOUT_CUDA)))
    except SetUpError:
        say("None on offer: it will be the one with CUDA.")


def torch_wants_cuda(env: Environment) -> bool:
    found = importlib.metadata.distributions(name="torch", path=[str(env.packages)])
    requirements = [line for torch in found for line in torch.requires or ()]
    return any(line.startswith(("nvidia-", "cuda-")) for line in requirements)


def run_pip(env: Environment, *arguments: str) -> None:
    # the user's pip settings (index, proxy, certificates) hold, except these
    settings = {"PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    run_quietly(env.pip_install(*arguments), "Installing", **settings)


def home(env: Environment) -> str:
    """An environment works only where it was made and with the Python that made it."""
    return f"Python 3.{sys.version_info.minor} of {sys.base_prefix} for {env.root}"


def contents(env: Environment, locks: Sequence[str]) -> dict[str, object]:
    files = [env.root / "pyproject.toml", *map(env.lock, locks)]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def read_stamp(env: Environment) -> dict[str, object]:
    try:
        stamp = json.loads(env.stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(env: Environment, done: dict[str, object]) -> None:
    draft = env.stamp.with_suffix(".partial")
    draft.write_text(json.dumps(done, indent=1), encoding="utf-8")
    os.replace(draft, env.stamp)


def is_ready(env: Environment, locks: Sequence[str]) -> bool:
    wanted = {"home": home(env), **contents(env, locks)}
    return wanted.items() <= read_stamp(env).items() and env.program("python").exists()


@contextmanager
def only_one_at_a_time(path: Path) -> Iterator[None]:
    """Hold the file's lock, waiting for it; the system frees it however its holder ends.

    Programs started meanwhile inherit it: a pip that outlives us is waited for, too.
    """
    with path.open("a") as file:
        os.set_inheritable(file.fileno(), True)
        if not try_lock(file):
            say("Another set-up of this folder is running; waiting for it to end ...")
            while not try_lock(file):
                time.sleep(0.3)
        yield


if sys.platform == "win32":
    import msvcrt

    def try_lock(file: IO[str]) -> bool:
        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(file: IO[str]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True
