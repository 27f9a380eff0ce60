"""The package for pip: what it puts into site-packages, and that it is the same every time."""

import hashlib
import os
import shutil
import zipfile

import pytest

from installer import wheel

# as resources/help/packaging.md tells people
TOP_LEVEL = {"dualscope", "engine", "app", "resources"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A small one of the same layout: copying all priors twice would take long."""
    root = tmp_path_factory.mktemp("sources")
    for name in wheel.FILES:
        shutil.copyfile(wheel.ROOT / name, root / name)
    for name in wheel.FOLDERS:
        (root / name).mkdir()
        for path in (wheel.ROOT / name).glob("*.py"):
            shutil.copyfile(path, root / name / path.name)
    (root / "resources" / "note.txt").write_text("a")
    shutil.copyfile(wheel.ROOT / "dualscope" / "py.typed", root / "dualscope" / "py.typed")
    return root


def test_two_wheels_have_the_same_bytes(sources, tmp_path):
    """Also from files of other times and permissions, and by somebody with another umask."""
    first = wheel.make_wheel(tmp_path / "one", sources)
    for path in sources.rglob("*"):
        os.utime(path, (1e9, 1e9))
        path.chmod(0o755 if path.is_dir() else 0o600)
    before = os.umask(0o077)
    try:
        second = wheel.make_wheel(tmp_path / "two", sources)
    finally:
        os.umask(before)
    one, two = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second))
    assert one == two
    with zipfile.ZipFile(first) as archive:
        names = {name.partition("/")[0] for name in archive.namelist()}
        stamps = {info.date_time for info in archive.infolist()}
    assert {name for name in names if not name.endswith(".dist-info")} == TOP_LEVEL
    assert stamps == {(1980, 1, 1, 0, 0, 0)}


def test_the_help_names_what_goes_into_site_packages():
    text = (wheel.ROOT / "resources" / "help" / "packaging.md").read_text(encoding="utf-8")
    assert set(wheel.FOLDERS) == TOP_LEVEL
    assert all(f"`{name}`" in text for name in TOP_LEVEL)
