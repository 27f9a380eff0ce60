"""The 'paper' columns, against figures typed anew from the paper."""

import pytest

from engine.workflows.experiments import paper
from engine.workflows.experiments.catalogue import EXPERIMENTS
from engine.workflows.experiments.summary import summarise

# experiment, scan, method, PSNR, SSIM
PRINTED = """
table1 | LACT-90 | DC-PnPDP | 39.46 | .955
table1 | SVCT-20 | DC-PnPDP | 40.55 | .963
table1 | brain x6 | DC-PnPDP | 36.43 | .972
table1 | brain x10 | DC-PnPDP | 30.91 | .943
table1 | LACT-90 | DiffPIR | 34.70 |
table1 | SVCT-20 | DiffPIR | 37.86 |
table1 | brain x6 | DiffPIR | 34.88 |
table1 | brain x10 | DiffPIR | 27.92 |
table1 | LACT-90 | FBP | 16.82 |
table1 | SVCT-20 | FBP | 21.82 |
table1 | brain x6 | zero-filled | 23.44 |
table1 | brain x10 | zero-filled | 20.41 |
table1 | LACT-90 | DC-PnPDP, 50 NFE | 37.53 |
table1 | LACT-90 | DDNM | 27.13 |
table1 | SVCT-20 | DDNM | 33.94 |
controlled-50 | LACT-90 | DC-PnPDP | 36.98 |
controlled-50 | LACT-90 | DiffPIR | 31.03 |
controlled-50 | LACT-90 | DDNM | 30.62 |
controlled-50 | SVCT-20 | DDNM | 36.22 |
controlled-50 | LACT-90 | FBP | 16.82 |
controlled-50 | SVCT-20 | FBP | 21.82 |
controlled-50 | brain x6 | zero-filled | 23.44 |
controlled-50 | brain x10 | zero-filled | 20.41 |
ablation | LACT-90 | neither (DiffPIR) | 31.36 |
ablation | LACT-90 | SH only | 31.51 |
ablation | LACT-90 | dual only | 35.91 |
ablation | LACT-90 | dual and SH (DC-PnPDP) | 37.02 |
nfe-sweep | LACT-90 | DC-PnPDP, 50 NFE | 37.53 |
nfe-sweep | LACT-90 | DC-PnPDP, 100 NFE | 39.46 | .955
nfe-sweep | SVCT-20 | DC-PnPDP, 100 NFE | 40.55 | .963
nfe-sweep | LACT-90 | DiffPIR, 50 NFE | 31.03 |
nfe-sweep | LACT-90 | DiffPIR, 100 NFE | 34.70 |
nfe-sweep | SVCT-20 | DiffPIR, 100 NFE | 37.86 |
sh-in-ddnm | LACT-90 | DDNM | 30.62 |
sh-in-ddnm | SVCT-20 | DDNM | 36.22 |
"""


def printed():
    for line in PRINTED.strip().splitlines():
        name, scan, method, psnr, *ssim = (part.strip() for part in line.split("|"))
        yield name, scan, method, float(psnr), float(ssim[0]) if ssim and ssim[0] else None


def test_every_figure_of_a_table_is_the_papers():
    shown = {}
    for name, definition in EXPERIMENTS.items():
        if definition.measure == "side by side":
            continue
        rows = [
            {"scan": s.label, "method": m.label, "status": "done", "psnr": 1.0}
            for s in definition.scans
            for m in definition.methods
        ]
        for row in summarise(definition, {"": rows}):
            if row["paper_psnr"] is not None:
                at = (name, row["scan"], row["method"])
                shown[at] = (row["paper_psnr"], row["paper_ssim"])
    assert shown == {(n, s, m): (psnr, ssim) for n, s, m, psnr, ssim in printed()}


def test_the_costs_of_the_paper():
    cost = {
        "DiffPIR": (196.0, None, 1.0, 4),
        "DAPS": (319.0, None, 319 / 196, None),
        "SITCOM": (7460.0, None, 7460 / 196, 38),
        "DC-PnPDP": (185.6 + 9.5 + 0.7, 100 * 0.7 / 195.8, 195.8 / 196, None),
    }
    rows = [
        {"scan": "SVCT-20", "method": m, "status": "failed", "message": ""} for m in paper.RUNTIME
    ]
    for row in summarise(EXPERIMENTS["runtime"], {"": rows}):
        total, share, ratio, memory = cost.pop(row["method"])
        assert row["paper_ms"] == pytest.approx(total)
        assert row["paper_sh_percent"] == (share and pytest.approx(share))
        assert row["paper_relative"] == pytest.approx(ratio)
        assert row["paper_memory_gb"] == memory
    assert cost == {}


def test_budgets_are_those_of_the_paper():
    nfe = {m.label: m.nfe for m in EXPERIMENTS["table1"].methods}
    assert (nfe["DiffPIR"], nfe["DDNM"], nfe["DDS"], nfe["DC-PnPDP"]) == (100, 100, 100, 100)
    assert (nfe["DAPS"], nfe["SITCOM"]) == (1000, 550)
    matched = {m.nfe for m in EXPERIMENTS["controlled-50"].methods if m.nfe}
    assert matched == {50}
    sweep = [m.nfe for m in EXPERIMENTS["nfe-sweep"].methods if m.curve == "DC-PnPDP"]
    assert sweep == [10, 20, 30, 50, 100]
