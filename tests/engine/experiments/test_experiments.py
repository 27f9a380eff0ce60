"""Every experiment runs, gives what a direct run gives, and says what it cannot do."""

from xml.etree import ElementTree

import numpy as np
import pytest
from experiment_files import all_rows, body
from PIL import Image

from engine.cli import main
from engine.runs.prepare import make_run, prepare
from engine.solvers.catalogue import parse_variant
from engine.spec.job import Job
from engine.workflows.experiments import plan
from engine.workflows.experiments.catalogue import EXPERIMENTS
from engine.workflows.experiments.definition import Method
from engine.workflows.experiments.plan import Sources, make_plan
from engine.workflows.experiments.request import Request
from engine.workflows.experiments.runner import Runner, _slug

# budgets beyond --quick, where a tenth is still long for a test
MORE = {
    "table1": ["--nfe", "11"],
    "supervised": ["--network", "net.safetensors"],
}


def refused(capsys, *arguments):
    capsys.readouterr()
    assert main(["experiment", *arguments]) == 2
    message = capsys.readouterr().err
    assert message.startswith("dualscope: ")
    assert message.count("\n") == 1
    return message


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_writes_table_numbers_and_figure(name, experiment, capsys):
    assert experiment(name, *MORE.get(name, [])) == 0
    check_all_is_written(name, capsys)
    if name == "runtime":  # long: its numbers are looked at here and not in a run of their own
        check_that_shares_add_up(body(name))


def check_all_is_written(name, capsys):
    out = capsys.readouterr().out
    definition = EXPERIMENTS[name]
    assert definition.question in out
    assert "paper" in out
    result = body(name)
    assert result["complete"] is True
    assert result["left_out"] == []
    assert result["settings"]["cg_iterations"] == 3
    assert result["versions"]["dualscope"]
    assert all(len(prior["sha256"]) == 64 for prior in result["priors"].values())
    assert all(len(sha) == 64 for sha in result["input_sha256"].values())
    rows = all_rows(name)
    assert {row["status"] for row in rows} == {"done"}
    assert {row["scan"] for row in rows} == {scan.label for scan in definition.scans}
    if definition.measure != "side by side":
        assert all(row["psnr"] > 5 for row in rows)
        shown = [(row["scan"], row["method"]) for row in result["table"]]
        assert len(shown) == len(set(shown)) == len(rows)
    for drawing in definition.drawings:
        if drawing == "gallery":
            width, height = Image.open(f"out/{name}.png").size
            assert width > 2 * 32
            assert height > 32
        else:
            tree = ElementTree.parse(f"out/{name}.svg")
            assert len(tree.findall(".//{http://www.w3.org/2000/svg}g")) >= 1


STEPS = ("denoiser", "data", "sh", "other")


def check_that_shares_add_up(result):
    rows = [row for rows in result["cases"].values() for row in rows]
    assert len(rows) == 12
    assert len({len(row["rounds"]) for row in rows}) == 1  # every method had every turn
    for row in rows:
        assert sum(row["seconds_by_step"][s] for s in STEPS) == pytest.approx(row["seconds"])
        for turn in row["rounds"]:
            assert sum(turn[s] for s in STEPS) == pytest.approx(turn["total"])
            assert turn["denoiser"] > 0
    for row in result["table"]:
        assert sum(row[f"{s}_ms"] for s in STEPS) == pytest.approx(row["total_ms"])
        if row["method"] == "DC-PnPDP":
            assert row["sh_percent"] == pytest.approx(100 * row["sh_ms"] / row["total_ms"])
            assert 0 < row["sh_percent"] < 100
        else:
            assert row["sh_percent"] is None
        if row["method"] == "DiffPIR":
            assert row["relative"] == 1


def test_the_numbers_are_those_of_a_direct_run(experiment):
    experiment("ablation", "--count", "2")
    rows = all_rows("ablation")
    assert len(rows) == 8
    for row in rows[1], rows[7]:
        run = make_run(prepare(Job.from_dict(row["job"])))
        for _ in run:
            pass
        values = run.record.metrics["ct-dcpnpdp"]
        assert (row["psnr"], row["ssim"]) == (values["psnr"], values["ssim"])
        assert row["metrics"]["ct-dcpnpdp"] == values
    both = [row["psnr"] for row in rows if row["method"].startswith("dual and SH")]
    shown = body("ablation")["table"][-1]
    assert shown["psnr"] == pytest.approx(np.mean(both), abs=1e-9)
    assert shown["slices"] == 2
    assert shown["psnr_sd"] == pytest.approx(np.std(both, ddof=1), abs=1e-9)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["magic"],
        ["ablation", "missing.npy"],
        ["ablation", "--slices", "0"],
        ["ablation", "--count", "0"],
        ["ablation", "--nfe", "0"],
        ["ablation", "--nfe", "some"],
        ["ablation", "--cg-iterations", "0"],
        ["ablation", "--seed", "-1"],
        ["ablation", "--prior", "missing"],
        ["ablation", "--device", "abacus"],
        ["ablation", "mr.npy"],
        ["nfe-sweep", "--nfe", "5"],
        ["ablation", "--network", "net.safetensors"],
        ["ablation", "ct.npy", "--unit", "hu", "--prior", "net.safetensors"],
        ["supervised", "ct.npy", "--unit", "hu", "--network", "tv"],
        ["supervised", "ct.npy", "--unit", "hu", "--network", "missing"],
        ["controlled-50", "--nfe", "2"],
        ["injection", "ct.npy", "--unit", "hu", "--nfe", "1", "--prior", "tv"],
    ],
    ids=" ".join,
)
def test_a_wrong_request_is_one_sentence(arguments, capsys):
    refused(capsys, *arguments)


def test_scans_without_an_input_and_unknown_methods_are_left_out(experiment, monkeypatch, capsys):
    definition = EXPERIMENTS["controlled-50"]
    changed = type(definition)(
        **{**vars(definition), "methods": (*definition.methods[:2], Method("New", "new", 5))}
    )
    monkeypatch.setitem(EXPERIMENTS, "controlled-50", changed)
    arguments = ["controlled-50", "mr.npy", "--prior", "tv", "--quick", "--quiet", "-o", "out"]
    assert main(["experiment", *arguments]) == 0
    notes = capsys.readouterr().err
    assert "New is left out: there is no solver 'new'." in notes
    assert "LACT-90 is left out: no input is CT data." in notes
    assert {row["scan"] for row in all_rows("controlled-50")} == {"brain x6", "brain x10"}
    assert {row["method"] for row in all_rows("controlled-50")} == {"zero-filled"}


def test_only_the_supervised_method_takes_the_network(experiment, monkeypatch, capsys):
    assert experiment("supervised", "--network", "net.safetensors") == 0
    assert body("supervised")["priors"]["supervised"]["name"] == "net"
    for row in all_rows("supervised"):
        supervised = row["method"] == "Supervised U-Net"
        assert row["job"]["prior"] == ("net.safetensors" if supervised else "tv")
        assert row["nfe"] == (1 if supervised else 0 if row["method"] == "FBP" else 5)
    monkeypatch.setattr(plan, "list_supervised", lambda modality: [])
    assert experiment("supervised", "--overwrite") == 0
    assert "Supervised U-Net is left out: there is no network in the box" in capsys.readouterr().err
    assert {row["method"] for row in all_rows("supervised")} == {"FBP", "DiffPIR", "DC-PnPDP"}


def test_a_method_that_fails_says_so_and_the_others_count(experiment, monkeypatch, capsys):
    definition = EXPERIMENTS["sh-in-ddnm"]
    wild = Method("wild", "daps:langevin_step=1e6", 50)  # refused as unstable when it starts
    changed = type(definition)(**{**vars(definition), "methods": (*definition.methods, wild)})
    monkeypatch.setitem(EXPERIMENTS, "sh-in-ddnm", changed)
    assert experiment("sh-in-ddnm") == 0
    rows = {row["method"]: row for row in all_rows("sh-in-ddnm")}
    assert rows["wild"]["status"] == "failed"
    assert rows["wild"]["psnr"] is None
    assert rows["wild"]["message"] in body("sh-in-ddnm")["table"][2]["failed"]
    assert rows["DDNM"]["status"] == "done"
    assert "1 of 1" in capsys.readouterr().out


def test_phantoms_are_the_default_and_all_different():
    request = Request(EXPERIMENTS["controlled-50"], count=3)
    sources = Sources(request)
    chosen = [source.input for m in ("CT", "MR") for source in sources.chosen(m)]
    assert chosen == [f"demo:{kind}:{seed}" for kind in ("ct", "mri") for seed in (101, 102, 103)]


def test_slices_are_spread_evenly():
    np.save("long.npy", np.zeros((10, 32, 32), np.float32))
    request = Request(EXPERIMENTS["ablation"], ("long.npy",), {"unit": "hu"}, count=2)
    assert [s.number for s in Sources(request).chosen("CT")] == [2, 7]
    some = Request(EXPERIMENTS["ablation"], ("long.npy",), {"unit": "hu"}, slices="4:6")
    assert [s.number for s in Sources(some).chosen("CT")] == [4, 5]


@pytest.mark.parametrize("definition", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_definition_is_sound(definition):
    """Variants parse, cases and pictures have names of their own, sweeps have an axis."""
    for method in definition.methods:
        parse_variant(method.variant)
    request = Request(definition, ("ct.npy", "mr.npy"), {"unit": "hu"}, prior="tv", count=2)
    sources = Sources(request)
    cases = make_plan(request, sources).cases
    assert len({Runner.key(case) for case in cases}) == len(cases)
    for modality in ("CT", "MR"):
        labels = [
            _slug(m.label)
            for m in definition.methods
            if modality in parse_variant(m.variant)[0].modalities
        ]
        assert len(set(labels)) == len(labels)
    names = {(s.label, m.label) for s in definition.scans for m in definition.methods}
    assert set(definition.paper) <= names
    if "sweep" in definition.drawings:
        assert all(m.axis or s.axis for m in definition.methods for s in definition.scans)


def test_one_iteration_starts_every_injection_from_the_same_state(experiment):
    experiment("injection", "--nfe", "20")
    rows = {row["method"]: row for row in all_rows("injection")}
    assert len({row["sigma"] for row in rows.values()}) == 1
    residuals = [row["psd"]["residual"] for row in rows.values()]
    assert residuals[0] == residuals[1] == residuals[2]
    none, naive, homogenized = (row["psd"] for row in rows.values())
    assert none["homogenized"] == none["residual"]
    target, residual = np.array(none["target"]), np.array(none["residual"])
    short = residual < 0.7 * target  # where some is missing, homogenization adds just that
    short[0] = False  # the mean of the image alone
    assert short.any()
    ratio = {
        name: (np.array(row["homogenized"]) / target)[short].mean()
        for name, row in (("naive", naive), ("sh", homogenized))
    }
    assert 0.8 < ratio["sh"] < 1.2
    assert ratio["naive"] > 1.3
    loud = residual > 1.8 * target  # where there is enough, only naive noise adds
    assert loud.any()
    by_naive, by_sh = (
        np.abs(np.array(filled["homogenized"]) - np.array(none["residual"]))[loud].mean()
        for filled in (naive, homogenized)
    )
    assert by_sh < 0.5 * by_naive
