"""The papers of a packaged build: who made what, under which licence, and what is refused."""

import json
import re
from importlib import metadata

import pytest

from engine.audit.licences import DEPENDENCIES
from engine.spec.errors import RequestError
from installer.environment import Environment
from installer.package import build, bundled, papers
from installer.package.bundled import Part, Refused, check, of_distribution

TEXT = (("LICENSE", "do as you like"),)
OURS = Part("Dualscope", "1.0", "Apache-2.0", "application", "pkg:generic/dualscope@1.0", "", TEXT)


@pytest.fixture(scope="module")
def parts():
    """What the program depends on, as it is installed here."""
    found = (of_distribution(metadata.distribution(name), {}) for name in DEPENDENCIES)
    return [OURS, *(part for some in found for part in some)]


def fake_distribution(folder, name, licence):
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", licence]
    (about / "METADATA").write_text("\n".join(lines) + "\n")
    (about / "LICENSE").write_text("a text")
    (about / "RECORD").write_text(f"{about.name}/METADATA,,\n{about.name}/LICENSE,,\n")
    return metadata.PathDistribution(about)


# the bill of materials


def test_the_bill_has_what_cyclonedx_asks_for(parts):
    bill = json.loads(json.dumps(papers.sbom(parts)))
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    assert bill["metadata"]["component"]["name"] == "Dualscope"
    kinds = {"library", "application", "machine-learning-model"}
    for component in bill["components"]:
        assert component["type"] in kinds
        assert component["name"]
        (licence,) = component["licenses"]
        assert "expression" in licence or licence["license"].keys() & {"id", "name"}
    references = [component["bom-ref"] for component in bill["components"]]
    assert len(references) == len(set(references))
    assert bill["dependencies"][0]["dependsOn"] == references


def test_the_bill_names_torch_and_qt_with_version_and_licence(parts):
    found = {one["name"]: one for one in papers.sbom(parts)["components"]}
    assert found["torch"]["version"].startswith("2.13.0")
    assert found["torch"]["purl"].startswith("pkg:pypi/torch@2.13.0")
    assert found["Qt"]["version"] == found["PySide6_Essentials"]["version"] == "6.10.1"
    assert found["Qt"]["licenses"] == [{"license": {"id": "LGPL-3.0-only"}}]


@pytest.mark.parametrize(
    ("words", "choice"),
    [
        ("MIT License", {"license": {"id": "MIT"}}),
        ("BSD", {"license": {"name": "BSD"}}),  # not in SPDX's list, so the schema refuses it
        ("MIT AND 0BSD", {"expression": "MIT AND 0BSD"}),
        ("Apache License, 2", {"license": {"name": "Apache License, 2"}}),
    ],
)
def test_only_names_of_spdx_are_given_as_such(words, choice):
    bill = papers.sbom([OURS, Part("thing", "1", words)])
    assert bill["components"][0]["licenses"] == [choice]


def test_a_hash_is_given_only_where_the_lock_leaves_no_choice(tmp_path):
    one = fake_distribution(tmp_path, "some-thing", "License: MIT")
    assert of_distribution(one, {"some-thing": ("a" * 64,)})[0].sha256 == "a" * 64
    assert of_distribution(one, {"some-thing": ("a" * 64, "b" * 64)})[0].sha256 == ""


def test_every_dependency_comes_with_the_text_of_its_licence(parts, tmp_path):
    check(parts)
    papers.write(tmp_path, parts)
    for part in parts:
        folder = tmp_path / papers.LICENCES / bundled.canonical(part.name)
        assert any(file.stat().st_size > 10 for file in folder.rglob("*") if file.is_file())
    assert "LESSER GENERAL PUBLIC" in (tmp_path / "licences/qt/LGPL-3.0.txt").read_text()
    assert "torch" in (tmp_path / papers.VERSIONS).read_text()


def test_the_packaged_lock_keeps_what_is_in_the_folder(tmp_path):
    locks = tmp_path / "locks"
    locks.mkdir()
    (locks / "lock.txt").write_text("# words\nnumpy==2 \\\n  --hash=sha256:a\nsetuptools==3\n")
    (locks / "lock-cpu.txt").write_text("torch==1\n")
    papers.write_locks(tmp_path, locks, [Part("NumPy", "2", "BSD")])
    assert (tmp_path / "lock.txt").read_text() == "numpy==2 \\\n  --hash=sha256:a\n"
    assert (tmp_path / "lock-cpu.txt").read_text() == ""


# what is refused


@pytest.mark.parametrize(
    ("name", "licence"),
    [
        ("astra-toolbox", "License-Expression: MIT"),  # whatever it says of itself
        ("torch-radon", "License: GNU General Public License v3"),
        ("PyQt6", "License-Expression: GPL-3.0-only"),
        ("thing", "Classifier: License :: OSI Approved :: GNU Affero General Public License v3"),
        ("thing", "License: "),
    ],
)
def test_gpl_plug_ins_and_the_unknown_stop_the_build(tmp_path, name, licence):
    environment = Environment(tmp_path, "darwin", tmp_path / "environment")
    fake_distribution(environment.packages, name, licence)
    with pytest.raises(RequestError, match=rf"^{name} 1\.0 .* may not be packaged"):
        build.check_environment(environment)


@pytest.mark.parametrize(
    "licence", ["LGPL-3.0-only", "BSD-3-Clause", "GPL-3.0-or-later WITH GCC-exception-3.1"]
)
def test_libraries_that_may_stand_beside_ours_pass(licence):
    part = Part("thing", "1", licence, texts=TEXT)
    check([part])
    with pytest.raises(Refused, match="without the text"):
        check([Part("thing", "1", licence)])


def test_a_library_that_nobody_answers_for_stops_the_build(tmp_path):
    library = tmp_path / "libreadline.so.8"
    library.write_bytes(b"\x7fELF")
    entries = [("libreadline.so.8", str(library), "BINARY")]
    with pytest.raises(Refused, match=r"libreadline\.so\.8 may not be packaged"):
        bundled.bundled(entries, tmp_path / "work", {})
