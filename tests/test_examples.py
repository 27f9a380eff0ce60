"""The examples and the README's Python lines run as they stand, and do what they say."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import dualscope as ds

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Runs an example, small, in an empty folder; gives its variables."""
    monkeypatch.chdir(tmp_path)

    def play(name):
        path = ROOT / "examples" / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(path), "--quick"])
        return runpy.run_path(str(path))

    return play


def test_every_example_is_short_and_linked_from_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) == 6
    for path in EXAMPLES:
        assert len(path.read_text(encoding="utf-8").splitlines()) < 40, path.name
        assert f"(examples/{path.name})" in readme


def test_ct_from_20_views_writes_the_figure_the_slice_and_its_record(played):
    comparison = played("ct_20_views")["comparison"]
    assert list(comparison) == ["fbp", "tv", "dc-pnpdp"]
    for name in ("ct_20_views.png", "ct_20_views.dcm", "ct_20_views.json"):
        assert Path(name).stat().st_size > 0


def test_mri_at_r_6_is_followed_step_by_step(played):
    names = played("mri_r6")
    assert names["result"].status in ("done", "finished early")
    assert np.array_equal(names["last"], names["result"].image)
    assert np.load("mri_r6_phase.npy").shape == names["result"].image.shape


def test_an_own_operator_is_reconstructed_where_it_sees_and_where_it_does_not(played):
    names = played("own_operator")
    problem, result = names["problem"], names["result"]
    unseen = names["seen"].numpy() == 0
    start = problem.physical(problem.operator.pseudo_inverse(problem.measurement))[0, 0].numpy()
    error = np.abs(result.image - result.reference)[unseen].mean()
    assert error < 0.5 * np.abs(start - result.reference)[unseen].mean()


def test_an_own_torch_denoiser_is_the_prior_of_the_run(played):
    result = played("own_prior")["comparison"]["DC-PnPDP, own prior"]
    assert result.record.prior["name"] == "Wiener"
    assert result.status == "done"


def test_thirty_lines_of_dc_pnpdp_give_the_bits_of_the_built_in_one(played):
    names = played("own_solver")
    assert names["mine"].record.result_sha256 == names["built_in"].record.result_sha256
    assert np.array_equal(names["mine"].image, names["built_in"].image)
    again = ds.reconstruct(names["problem"], names["Mine"], nfe=names["nfe"], seed=4)
    assert not np.array_equal(again.image, names["mine"].image)


def test_a_sinogram_in_an_array_becomes_an_image_in_hu(played):
    names = played("numpy_sinogram")
    image, size = names["result"].image, names["size"]
    rows = slice(size // 2 - 6, size // 2 + 6)
    core, water = image[rows, rows].mean(), image[rows, size // 6 : size // 6 + 8].mean()
    assert water == pytest.approx(0, abs=15)
    assert core == pytest.approx(1000 * 0.004 / 0.0192, abs=15)
    assert image[:4, :4].mean() == pytest.approx(-1000, abs=50)
    assert np.array_equal(np.load("numpy_sinogram.npy"), image)


def python_blocks():
    """The indented lines of the README's section."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split("## Python\n")[1].split("\n## ")[0]
    return re.findall(r"(?:^(?:    .*)?\n)*^    .*\n", section, flags=re.MULTILINE)


def test_the_readme_s_python_lines_run_one_after_another(tmp_path, monkeypatch):
    """At a smaller size and budget than they say, with arrays for the names a reader has."""
    monkeypatch.chdir(tmp_path)
    code = "".join(re.sub(r"^    ", "", b, flags=re.MULTILINE) for b in python_blocks())
    assert "ds.simulate(" in code
    assert "ds.ct(" in code
    small = code.replace('"demo:ct", ', '"demo:ct", size=64, ').replace("nfe=50", "nfe=3")
    angles = np.arange(30) * 6.0
    scan = ds.ct(angles, detectors=96, pitch_mm=1.0)
    disc = np.hypot(*np.mgrid[-47.5:48, -47.5:48]) < 35
    sinogram = scan.forward(0.0192 * disc)
    names = {"angles": angles, "sinogram": sinogram, "my_denoiser": lambda x, sigma: x}
    exec(compile(small, "README.md", "exec"), names)
    assert Path("slice.dcm").exists()
    assert names["result"].image.dtype == np.float32
