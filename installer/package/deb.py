"""The Debian package of a packaged folder, made with dpkg-deb alone."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Final

from engine import __version__
from engine.spec.errors import DualscopeError
from installer.package.contents import ROOT
from installer.system import QT_PACKAGES

LINUX: Final = Path(__file__).resolve().parent / "linux"
HOME: Final = "usr/lib/dualscope"
ICON_SIZES: Final = (16, 32, 48, 64, 128, 256, 512)
# What the folder's libraries are linked to, beside what the set-up asks of a system.
MORE_PACKAGES: Final = (
    *("libstdc++6", "libgcc-s1", "libzstd1", "libfreetype6", "libx11-6", "libx11-xcb1", "libxcb1"),
    *("libxcb-glx0", "libxcb-image0", "libxcb-randr0", "libxcb-render0", "libxcb-render-util0"),
    *("libxcb-shm0", "libxcb-sync1", "libxcb-util1", "libxcb-xfixes0", "libxcb-xkb1"),
    *("libxkbcommon0", "libwayland-client0", "libwayland-cursor0", "libwayland-egl1"),
)
GLIBC: Final = re.compile(rb"GLIBC_2\.(\d+)\0")
CONTROL: Final = """\
Package: dualscope
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Depends: {depends}
Suggests: libgtk-3-0
Section: science
Priority: optional
Description: diffusion-prior reconstruction of CT and MRI
 A workstation that reconstructs CT and MRI slices from few measurements with
 a diffusion prior, shows how the result comes about and helps to judge
 whether to believe it. For research only, not for diagnostic use.
"""


def maintainer() -> str:
    """Who answers for the package: whoever makes it, as Debian's own tools are told."""
    name = os.environ.get("DEBFULLNAME", "The Dualscope authors")
    return f"{name} <{os.environ.get('DEBEMAIL', 'dualscope@localhost')}>"


def make_deb(folder: Path, out: Path, icons: Path) -> Path:
    """The package file in ``out``; the tree it is made of goes again."""
    tree = out / "build" / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    fill(tree, folder, icons)
    file = out / f"dualscope_{__version__}_{architecture()}.deb"
    partial = file.with_suffix(".partial")
    # level 1: a tenth larger than the default's, in a small part of its time
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", str(tree), str(partial)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DualscopeError(f"dpkg-deb failed: {done.stderr.strip()}")
    os.replace(partial, file)
    shutil.rmtree(tree)
    return file


def fill(tree: Path, folder: Path, icons: Path) -> None:
    """Everything where Debian wants it. Menus and types are taken up by dpkg's triggers."""
    home, share = tree / HOME, tree / "usr" / "share"
    shutil.copytree(folder, home, symlinks=True)
    command = tree / "usr" / "bin" / "dualscope"
    command.parent.mkdir(parents=True)
    command.symlink_to("../lib/dualscope/dualscope")
    _copy(LINUX / "dualscope.desktop", share / "applications" / "dualscope.desktop")
    _copy(LINUX / "dualscope.xml", share / "mime" / "packages" / "dualscope.xml")
    hicolor = share / "icons" / "hicolor"
    _copy(
        ROOT / "resources" / "icons" / "dualscope.svg",
        hicolor / "scalable" / "apps" / "dualscope.svg",
    )
    for size in ICON_SIZES:
        if (icons / f"{size}.png").is_file():
            _copy(icons / f"{size}.png", hicolor / f"{size}x{size}" / "apps" / "dualscope.png")
    _write_documents(share / "doc" / "dualscope")
    _set_modes(tree)
    _write_control(tree)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _write_documents(folder: Path) -> None:
    folder.mkdir(parents=True)
    _copy(LINUX / "copyright", folder / "copyright")
    now = format_datetime(datetime.now(UTC))
    entry = f"dualscope ({__version__}) stable; urgency=low\n\n  * See {HOME}.\n\n -- "
    text = f"{entry}{maintainer()}  {now}\n"
    (folder / "changelog.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _set_modes(tree: Path) -> None:
    """As Debian has them, whatever the builder's umask was; only programs need an x."""
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or _is_program(path) else 0o644)


def _is_program(path: Path) -> bool:
    if ".so" in path.name or not os.access(path, os.X_OK):
        return False
    with path.open("rb") as stream:
        return stream.read(4).startswith((b"\x7fELF", b"#!"))


def _write_control(tree: Path) -> None:
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    sums, size, glibc = [], 0, 0
    for path in files:
        content = path.read_bytes()
        size += len(content)
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        sums.append(f"{digest}  {path.relative_to(tree).as_posix()}")
        if content[:4] == b"\x7fELF":
            glibc = max(glibc, *map(int, GLIBC.findall(content)), 0)
    folder = tree / "DEBIAN"
    folder.mkdir()
    (folder / "md5sums").write_text("\n".join(sums) + "\n", encoding="utf-8")
    text = CONTROL.format(
        version=__version__,
        architecture=architecture(),
        maintainer=maintainer(),
        size=-(-size // 1024),
        depends=", ".join(depends(glibc)),
    )
    (folder / "control").write_text(text, encoding="utf-8")


def depends(glibc: int) -> Iterable[str]:
    """The system's packages; of its C library, at least the version we were built with."""
    library = f"libc6 (>= 2.{glibc})" if glibc else "libc6"
    return [library, *sorted({*QT_PACKAGES, *MORE_PACKAGES})]


def architecture() -> str:
    command = ["dpkg", "--print-architecture"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
