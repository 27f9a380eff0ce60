"""What is installed is held against the lock, against known holes and against licences."""

import json
import sys

import pytest

from engine.audit.advisories import matching
from engine.audit.licences import installed, read_locks, refused
from engine.cli import main
from engine.cli.audit import NOTE, examine
from engine.spec.errors import RequestError

HASH = "--hash=sha256:" + "0" * 64


@pytest.fixture
def locks(tmp_path):
    folder = tmp_path / "locks"
    folder.mkdir()
    (folder / "lock.txt").write_text(
        f"# The application.\nalpha==1.0 \\\n    {HASH}\nbeta-two==2.0 \\\n    {HASH}\n"
        f"torch==2.13.0 \\\n    {HASH}\n"
        f"elsewhere==1 ; sys_platform == 'nowhere' \\\n    {HASH}\n"
    )
    (folder / "lock-cpu.txt").write_text(f"torch==2.13.0+cpu \\\n    {HASH}\n")
    (folder / "lock-test.txt").write_text(f"tester==5.0 \\\n    {HASH}\n")
    return folder


@pytest.fixture
def packages(tmp_path):
    """Makes fake distributions: name, version, licence."""
    site = tmp_path / "site"
    site.mkdir()

    def put(*entries):
        for name, version, licence in entries:
            folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
            folder.mkdir()
            text = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
            (folder / "METADATA").write_text(text + f"License-Expression: {licence}\n")
        return installed([str(site)])

    return put


GOOD = (("alpha", "1.0", "MIT"), ("Beta_Two", "2.0", "BSD-3-Clause"))
TORCH = ("torch", "2.13.0+cpu", "Apache-2.0")


def kinds(findings):
    return {(one.package, one.kind): one.level for one in findings}


def test_what_the_lock_says_is_no_finding(locks, packages):
    tester = ("tester", "5.0", "GPL-3.0-or-later")  # needed for tests only, and not shipped
    assert examine(packages(*GOOD, TORCH, tester), read_locks(locks), strict=True) == []


def test_missing_other_and_unknown_packages_are_named(locks, packages):
    found = packages(("alpha", "1.1", "MIT"), ("gamma", "3", "MIT"), TORCH, ("pip", "1", "MIT"))
    levels = kinds(examine(found, read_locks(locks), strict=False))
    assert levels == {
        ("alpha", "other version"): "problem",
        ("beta-two", "missing"): "problem",
        ("gamma", "not in the lock"): NOTE,
    }
    strict = kinds(examine(found, read_locks(locks), strict=True))
    assert strict["gamma", "not in the lock"] == "problem"


def test_a_gpl_package_that_we_would_ship_is_refused(locks, packages):
    found = packages(("alpha", "1.0", "GPL-3.0-or-later"), GOOD[1], TORCH)
    (finding,) = examine(found, read_locks(locks), strict=False)
    assert (finding.package, finding.kind) == ("alpha", "licence")
    assert "GPL-3.0-or-later" in finding.words


def test_a_pin_without_a_hash_is_a_problem(locks, packages):
    (locks / "lock.txt").write_text("alpha==1.0\n")
    assert ("alpha", "no hash") in kinds(examine(packages(GOOD[0]), read_locks(locks), False))


@pytest.mark.parametrize(
    ("licence", "wrong"),
    [
        ("MIT", False),
        ("BSD License", False),
        ("Apache-2.0 AND Apache-2.0 WITH LLVM-exception AND BSL-1.0", False),
        ("LGPL-3.0-only OR GPL-2.0-only OR GPL-3.0-only", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("Historical Permission Notice and Disclaimer (HPND)", False),
        ("BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1", False),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", False),
        ("MIT AND GPL-3.0-only", True),
        ("MIT License, GNU General Public License v3 (GPLv3)", True),
        ("GNU Affero General Public License v3", True),
        ("AGPL-3.0-or-later", True),
        ("MIT and GPL", True),
        ("(MIT OR BSD-3-Clause) AND GPL-2.0-only", True),
        ("not stated", True),
        ("My own terms", True),
    ],
)
def test_licences_are_judged_by_their_parts(licence, wrong):
    assert refused(licence) is wrong


def osv(identity="X-1", name="alpha", events=None, **more):
    affected = {"package": {"ecosystem": "PyPI", "name": name}}
    if events is not None:
        affected["ranges"] = [{"type": "ECOSYSTEM", "events": events}]
    for key in ("versions", "ranges", "package"):
        if key in more:
            affected[key] = more.pop(key)
    return {"id": identity, "summary": "a hole", "affected": [affected], **more}


@pytest.mark.parametrize(
    ("record", "version", "hit"),
    [
        (osv(events=[{"introduced": "0"}, {"fixed": "1.1"}]), "1.0", True),
        (osv(events=[{"introduced": "0"}, {"fixed": "1.0"}]), "1.0", False),
        (osv(events=[{"introduced": "0"}, {"fixed": "1.1"}]), "1.1rc1", True),
        (osv(events=[{"introduced": "0"}, {"fixed": "1.1"}]), "1.0+cpu", True),
        (osv(events=[{"introduced": "0"}, {"last_affected": "1.0"}]), "1.0", True),
        (osv(events=[{"introduced": "0"}, {"last_affected": "1.0"}]), "1.0.1", False),
        (osv(events=[{"fixed": "0.5"}, {"introduced": "0"}, {"introduced": "0.9"}]), "1.0", True),
        (osv(events=[{"fixed": "0.5"}, {"introduced": "0"}, {"introduced": "0.9"}]), "0.7", False),
        (osv(versions=["1.0.0"]), "1.0", True),
        (osv(versions=["0.9"]), "1.0", False),
        (osv(name="ALPHA"), "1.0", True),
        (osv(name="other"), "1.0", False),
        (osv(package={"ecosystem": "npm", "name": "alpha"}), "1.0", False),
        (osv(withdrawn="2025-01-01T00:00:00Z"), "1.0", False),
        (
            osv(ranges=[{"type": "GIT", "events": [{"introduced": "0"}]}], versions=["2"]),
            "1.0",
            False,
        ),
    ],
)
def test_an_advisory_touches_the_versions_in_its_ranges(tmp_path, record, version, hit):
    path = tmp_path / "osv.json"
    path.write_text(json.dumps(record))
    assert [one.identity for one in matching(path, {"alpha": version})] == ["X-1"] * hit


def test_a_folder_of_advisories_is_read_and_the_fix_named(tmp_path):
    for number in (1, 2):
        events = [{"introduced": "0"}, {"fixed": f"{number + 1}.0"}]
        (tmp_path / f"{number}.json").write_text(json.dumps(osv(f"X-{number}", events=events)))
    found = matching(tmp_path, {"alpha": "1.0"})
    assert [(one.identity, one.fixed) for one in found] == [("X-1", "2.0"), ("X-2", "3.0")]


@pytest.mark.parametrize(
    "content", ["", "[1]", "{}", '{"id": 3}', '{"id": "x", "affected": 1}', "[" * 9999]
)
def test_what_is_no_advisory_is_one_sentence(tmp_path, content):
    path = tmp_path / "osv.json"
    path.write_text(content)
    with pytest.raises(RequestError) as caught:
        matching(path, {"alpha": "1.0"})
    assert "\n" not in str(caught.value)


def test_the_command_prints_json_and_its_exit_code_tells(
    locks, packages, tmp_path, monkeypatch, capsys
):
    packages(*GOOD, TORCH)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    assert main(["audit", "--lock", str(locks), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["problems"] == 0
    assert {package["name"] for package in body["packages"]} == {"alpha", "beta-two", "torch"}
    bad = tmp_path / "osv.json"
    bad.write_text(json.dumps(osv(events=[{"introduced": "0"}])))
    assert main(["audit", "--lock", str(locks), "--advisories", str(bad)]) == 1
    assert "X-1" in capsys.readouterr().out
    assert main(["audit", "--lock", str(tmp_path / "none")]) == 2
    assert "no lock file" in capsys.readouterr().err


def test_everything_that_we_ship_has_a_licence_that_lets_us():
    pins, found = read_locks(), installed()
    wrong = {n: found[n].licence for n, p in pins.items() if p.shipped and n in found}
    assert {name for name, licence in wrong.items() if refused(licence)} == set()
    assert all(pin.hashed for pin in pins.values())
