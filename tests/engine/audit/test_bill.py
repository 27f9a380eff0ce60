"""A bill of materials, and the files of a package, against what is really there."""

import base64
import hashlib
import json

import pytest

from engine.audit.bill import against_bill, changed_files
from engine.audit.licences import Package, Pin, installed, read_locks
from engine.cli import main
from engine.spec.errors import RequestError
from installer.package.bundled import installed_parts
from installer.package.papers import sbom, write_sbom

PACKAGES = {"alpha": Package("alpha", "1.0", "MIT"), "beta": Package("beta", "2.0", "MIT")}
PINS = {
    "alpha": Pin({"1.0"}, True, True, True, {"aa", "ab"}),
    "beta": Pin({"2.0"}, True, True, True, {"bb"}),
}


def component(name, version, *hashes):
    entries = [{"alg": "SHA-256", "content": one} for one in hashes]
    return {"type": "library", "purl": f"pkg:pypi/{name}@{version}", "hashes": entries}


def mismatches(tmp_path, *components):
    path = tmp_path / "bill.json"
    path.write_text(json.dumps({"bomFormat": "CycloneDX", "components": list(components)}))
    return [f"{m.package}: {m.words}" for m in against_bill(path, PACKAGES, PINS)]


ALPHA, BETA = component("alpha", "1.0", "aa"), component("beta", "2.0", "bb")


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ((ALPHA, BETA), []),
        ((ALPHA,), ["beta: it is not in the bill"]),
        ((component("alpha", "1.1", "aa"), BETA), ["alpha: the bill has 1.1"]),
        ((component("alpha", "1.0"), BETA), ["alpha: the bill has no hash of it"]),
        (
            (component("alpha", "1.0", "aa", "evil"), BETA),
            ["alpha: the bill has a hash of it that no lock file knows"],
        ),
        (
            (ALPHA, BETA, component("gamma", "1.0")),
            ["gamma: it is in the bill, but not installed"],
        ),
        (
            (ALPHA, BETA, {"type": "machine-learning-model", "name": "net", "hashes": [{}]}),
            ["net: no prior here has the hash of the bill"],
        ),
    ],
)
def test_what_differs_from_the_bill_is_named(tmp_path, components, said):
    assert mismatches(tmp_path, *components) == said


@pytest.mark.parametrize("content", ["[]", "{}", '{"bomFormat": "CycloneDX"}', "?", "[" * 9999])
def test_what_is_no_bill_is_one_sentence(tmp_path, content):
    path = tmp_path / "bill.json"
    path.write_text(content)
    with pytest.raises(RequestError):
        against_bill(path, PACKAGES, PINS)


def test_the_bill_of_this_environment_agrees_with_it(tmp_path):
    """Every package that is shipped and installed is in it with hashes of the lock files."""
    path = tmp_path / "sbom.cdx.json"
    write_sbom(path, installed_parts())
    packages, pins = installed(), read_locks()
    known = [m for m in against_bill(path, packages, pins) if "no lock file" in m.words]
    assert known == []
    body = json.loads(path.read_bytes())
    by_name = {one["name"]: one for one in body["components"]}
    (files,) = by_name["cryptography"]["externalReferences"]
    assert {one["content"] for one in files["hashes"]} == pins["cryptography"].hashes
    assert all(one["hashes"] for one in body["components"] if "model" in one["type"])


def test_the_command_compares_with_a_bill(tmp_path, capsys):
    path = tmp_path / "sbom.cdx.json"
    body = sbom(installed_parts())
    (numpy,) = [one for one in body["components"] if one["name"] == "numpy"]
    numpy["purl"] = "pkg:pypi/numpy@0.1"
    path.write_text(json.dumps(body))
    assert main(["audit", "--sbom", str(path), "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [f["words"] for f in findings if f["package"] == "numpy"] == ["the bill has 0.1"]


def test_a_changed_or_missing_file_of_a_package_is_found(tmp_path):
    about = tmp_path / "alpha-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\n")
    lines = []
    for name in ("good.py", "bad.py"):
        (tmp_path / name).write_text(name)
        digest = base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest())
        lines.append(f"{name},sha256={digest.decode().rstrip('=')},{len(name)}")
    (tmp_path / "more.py").write_text("more")
    lines.append(f"more.py,sha256={hashlib.sha256(b'more').hexdigest()},4")  # as some write it
    (about / "RECORD").write_text("\n".join([*lines, f"{about.name}/RECORD,,"]))
    assert changed_files(["alpha"], [str(tmp_path)]) == []
    (tmp_path / "bad.py").write_text("evil")
    (found,) = changed_files(["alpha"], [str(tmp_path)])
    assert found.words == "changed since it was installed: bad.py"
    (tmp_path / "good.py").unlink()
    (found,) = changed_files(["alpha"], [str(tmp_path)])
    assert found.words.endswith("good.py and 1 more")
