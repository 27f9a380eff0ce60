"""A Debian package of a tiny folder, and what the smoke test makes of a trace."""

import shutil
import subprocess
from pathlib import Path

import pytest

from engine import __version__
from installer.package import build, command, deb, smoke, trace

needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is Debian's")


@pytest.fixture
def folder(tmp_path):
    """Something like a packaged folder: an executable, a library and a link to it."""
    made = tmp_path / "dualscope"
    (made / "_internal").mkdir(parents=True)
    (made / "dualscope").write_text("#!/bin/sh\necho hello\n")
    (made / "dualscope").chmod(0o775)
    (made / "_internal" / "libc10.so").write_bytes(b"\x7fELF GLIBC_2.28\0 GLIBC_2.34\0")
    (made / "_internal" / "liblink.so").symlink_to("libc10.so")
    return made


@needs_dpkg
def test_the_debian_package_is_one(folder, tmp_path):
    out = tmp_path / "out"
    (out / "build").mkdir(parents=True)
    file = deb.make_deb(folder, out, tmp_path / "no-icons")
    said = subprocess.run(["dpkg-deb", "--info", file], capture_output=True, text=True, check=True)
    assert f"Version: {__version__}" in said.stdout
    assert "libc6 (>= 2.34), " in said.stdout
    assert "libxcb-cursor0" in said.stdout
    listed = subprocess.run(
        ["dpkg-deb", "--contents", file], capture_output=True, text=True, check=True
    ).stdout
    assert "./usr/bin/dualscope -> ../lib/dualscope/dualscope" in listed
    assert "-rwxr-xr-x root/root" in listed
    assert "./usr/share/mime/packages/dualscope.xml" in listed
    assert not (out / "build" / "deb").exists()


@needs_dpkg
def test_the_sums_are_of_every_file(folder, tmp_path):
    tree = tmp_path / "tree"
    deb.fill(tree, folder, tmp_path / "no-icons")
    listed = (tree / "DEBIAN" / "md5sums").read_text().splitlines()
    found = {line.split("  ", 1)[1] for line in listed}
    assert {"usr/lib/dualscope/dualscope", "usr/share/doc/dualscope/copyright"} <= found
    done = subprocess.run(["md5sum", "-c", "DEBIAN/md5sums"], cwd=tree, capture_output=True)
    assert done.returncode == 0


def test_papers_are_moved_to_where_people_look(folder, tmp_path):
    for name in ("sbom.cdx.json", "versions.txt", "LICENSE"):
        (folder / "_internal" / name).write_text(name)
    (folder / "_internal" / "licences").mkdir()
    out = tmp_path / "out"
    (out / "dualscope" / "old").mkdir(parents=True)
    placed = build.put_in_place(folder, out)
    assert placed == out / "dualscope"
    assert (placed / "sbom.cdx.json").is_file()
    assert not (placed / "old").exists()


# the smoke test


def test_a_trace_tells_what_is_foreign(tmp_path):
    file = tmp_path / "trace"
    lines = [
        '1 openat(AT_FDCWD, "/opt/d/_internal/x.so", O_RDONLY|O_CLOEXEC) = 3',
        '1 openat(AT_FDCWD, "/usr/lib/libX11.so.6", O_RDONLY|O_CLOEXEC) = 3',
        '1 openat(AT_FDCWD, "/home/me/venv/absent", O_RDONLY) = -1 ENOENT (No such file)',
        '2 openat(AT_FDCWD, "/home/me/venv/site-packages/numpy.py", O_RDONLY) = 4',
        '2 open("/usr/lib/python3.11/os.py", O_RDONLY) = 4',
        '3 execve("/usr/bin/python3", ["python3"], 0x1) = 0',
    ]
    file.write_text("\n".join(lines))
    assert trace.foreign_files(file, [tmp_path, Path("/opt/d")]) == [
        "/home/me/venv/site-packages/numpy.py",
        "/usr/lib/python3.11/os.py",
        "/usr/bin/python3",
    ]


def test_the_program_is_run_with_everything_else_hidden(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setattr(smoke.sys, "platform", "linux")
    given = smoke.environment(tmp_path)
    assert given == {
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "QT_QPA_PLATFORM": "offscreen",
    }


def test_a_folder_without_the_program_is_told_in_one_sentence(tmp_path, capsys):
    assert command.main(["smoke", str(tmp_path)]) == 2
    assert "holds no packaged Dualscope" in capsys.readouterr().err
