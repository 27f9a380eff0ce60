"""Scans whose noise nobody tells of: it is found, and the images fit as well as it allows."""

import json
from pathlib import Path

import pytest

from engine.cli import main


def rows(name, scan, source, *more):
    options = ["--prior", "tv", "--nfe", "10", "--count", "1", "--quiet", "-o", "out"]
    assert main(["experiment", name, source, "--only", scan, *options, *more]) == 0
    cases = json.loads(Path("out", f"{name}.json").read_text())["cases"]
    return {row["method"]: row for [row] in cases.values()}


@pytest.mark.parametrize(
    ("name", "scan", "source"),
    [
        ("noise-ct", "1e4 photons", "demo:ct:101"),
        ("noise-ct", "1e5 photons", "demo:ct:101"),
        ("noise-mri", "SNR 10", "demo:mri:101"),
        ("noise-mri", "SNR 40", "demo:mri:101"),
    ],
)
def test_the_noise_is_found_and_images_fit_as_well_as_it_allows(name, scan, source):
    found = rows(name, scan, source, "--size", "128")
    for method in ("TV", "DiffPIR", "DC-PnPDP"):
        assert found[method]["noise_found"] == pytest.approx([1], abs=0.1)
        assert found[method]["chi2"] == pytest.approx(1, abs=0.15)
        assert found[method]["job"]["acquisition"]["fine_grid"] == 2
