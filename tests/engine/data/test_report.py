"""The HTML report: complete, well formed, quiet about names, and nothing in it runs."""

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from helpers import FunctionPrior
from results import make_problem

from engine.cli import main
from engine.export.report import write_report
from engine.export.report_svg import Curve, chart
from engine.files.record import RunRecord
from engine.runs.run import Run
from engine.solvers.classical import CGTikhonov
from engine.solvers.dc_pnpdp import DcPnpdp
from engine.spec.errors import DualscopeError

VOID = {"meta", "img", "br", "path", "circle"}


class Page(HTMLParser):
    """Checks that every element is closed, and collects what a test asks about."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def run_of(problem, solver, record=None, **settings):
    prior = FunctionPrior(lambda x, sigma: x / (1 + sigma**2), problem.operator.image_shape[0])
    run = Run(problem, solver, solver.settings_class(**settings), prior, record=record)
    for _ in run:
        pass
    return run


@pytest.fixture(params=["CT", "MR"])
def comparison(request):
    problem = make_problem(request.param, slices=2)
    record = RunRecord(job={"input": "/data/Doe_Jane/scan.nii", "seed": 5})
    record.input = {"name": "/data/Doe_Jane/scan.nii", "sha256": "ab" * 32, "slices": [0, 1]}
    record.versions, record.prior = {"torch": "9.9"}, {"name": "p", "sha256": "cd" * 32}
    return problem, [
        ("one", run_of(problem, DcPnpdp(), record, nfe=4)),
        ("two <script>alert(1)</script>", run_of(problem, DcPnpdp(), nfe=4, dual=False)),
        ("cg", run_of(problem, CGTikhonov(), iterations=5)),
    ]


def write(path, comparison, **options):
    write_report(path, *comparison, **options)
    return path.read_text(encoding="utf-8")


def test_it_holds_all_that_a_comparison_is(comparison, tmp_path):
    problem, runs = comparison
    page = Page(write(tmp_path / "r.html", comparison, title="A & B"))
    for word in ("A & B", "Images", "Difference to the reference", "Metrics", "Convergence"):
        assert word in page.text
    for word in ("Settings", "Provenance", "ab" * 32, "cd" * 32, "torch", "scan.nii"):
        assert word in page.text
    assert page.text.count("Not for diagnostic use") == 1
    for _, run in runs:
        psnr = next(iter(run.record.metrics.values()))["psnr"]
        assert f"PSNR {psnr:.2f} dB" in page.text
    # reference and three runs, three differences, one colour scale
    assert page.tags.count("img") == 4 + 3 + 1
    assert page.tags.count("svg") > 6
    if problem.modality == "CT":
        assert "HU" in page.text


def test_nothing_runs_and_nothing_is_fetched(comparison, tmp_path):
    text = write(tmp_path / "r.html", comparison)
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "embed", "form", "a"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    for name, value in page.attributes:
        if name in ("src", "href"):
            assert value.startswith("data:image/png;base64,")
    assert "http:" not in text
    assert "https:" not in text
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_settings_that_differ_are_marked(comparison, tmp_path):
    text = write(tmp_path / "r.html", comparison)
    marked = re.findall(r'<tr class="differs"><th>(\w+)</th>', text)
    assert "dual" in marked
    assert "nfe" not in marked
    assert re.search(r"<tr><th>nfe</th><td>4</td><td>4</td><td>–</td></tr>", text)


@pytest.mark.parametrize("deidentify", [False, True])
def test_folders_are_never_named_and_files_not_when_deidentified(comparison, deidentify, tmp_path):
    text = write(tmp_path / "r.html", comparison, deidentify=deidentify)
    assert "Doe_" not in text
    assert "Jane" not in text
    assert ("scan.nii" in text) != deidentify


def test_without_a_reference_the_first_run_is_the_baseline(comparison, tmp_path):
    problem, _ = comparison
    problem.reference = None
    page = Page(write(tmp_path / "r.html", comparison))
    assert "Difference to one" in page.text
    assert page.tags.count("img") == 3 + 2 + 1


def test_failed_runs_and_odd_numbers_do_not_break_it(comparison, tmp_path):
    _, runs = comparison
    runs[0][1].image, runs[0][1].record.message = None, "The <denoiser> diverged."
    runs[1][1].record.history[0]["psnr"] = None
    page = Page(write(tmp_path / "r.html", comparison))
    assert "The <denoiser> diverged." in page.text


def test_nan_is_refused_and_leaves_nothing_behind(comparison, tmp_path):
    comparison[1][0][1].image = torch.full_like(comparison[1][0][1].image, float("nan"))
    with pytest.raises(DualscopeError, match="NaN"):
        write_report(tmp_path / "r.html", *comparison)
    assert list(tmp_path.iterdir()) == []


def test_a_curve_is_drawn_where_its_numbers_are():
    drawn = chart("t", "x", [Curve("c", [0, 5, 10], [1, 100, 10], "#000000")], log=True)
    root = ElementTree.fromstring(drawn)
    (line,) = [p for p in root.iter("path") if p.get("stroke-width") == "1.6"]
    points = [tuple(map(float, pair.split())) for pair in line.get("d")[1:].split("L")]
    left, right, top, bottom = 56, 420 - 18, 26, 250 - 36
    expected = [(left, bottom), ((left + right) / 2, top), (right, (top + bottom) / 2)]
    for (x, y), (u, v) in zip(points, expected, strict=True):
        assert (x, y) == pytest.approx((u, v), abs=0.1)
    labels = [text.text for text in root.iter("text")]
    assert {"10⁰", "10¹", "10²", "0", "10", "t"} <= set(labels)


@pytest.mark.parametrize("values", [[], [float("nan")], [0.0, -1.0]])
def test_nothing_to_draw_is_no_chart(values):
    assert chart("t", "x", [Curve("c", range(len(values)), values, "#000000")], log=True) == ""


@pytest.mark.parametrize("values", [[3.0], [2.0, 2.0], [-1e-9, 1e9], [0.0, 0.0]])
def test_every_range_has_an_axis(values):
    assert "nan" not in chart("t", "x", [Curve("c", range(len(values)), values, "#000000")])


def test_the_command_writes_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["demo:mri", "--solvers", "zero-filled,diffpir", "--nfe", "2", "--quiet"]
    arguments += ["--prior", "gaussian", "-o", "r.html"]
    assert main(["compare", *arguments]) == 0
    page = Page(Path("r.html").read_text(encoding="utf-8"))
    assert "inversebench" in page.text
