"""The figures that the DC-PnPDP paper prints (arXiv 2602.23214), for the 'paper' columns.

Its own tables differ by up to half a dB for the same setting (LACT-90, DC-PnPDP, 50 NFE: 37.53,
37.02 and 36.98), so each experiment quotes the table it repeats.
"""

from __future__ import annotations

from engine.workflows.experiments.definition import Figures

TABLE1: Figures = {
    ("LACT-90", "FBP"): {"psnr": 16.82},
    ("LACT-90", "DDNM"): {"psnr": 27.13},
    ("LACT-90", "DiffPIR"): {"psnr": 34.70},
    ("LACT-90", "DC-PnPDP, 50 NFE"): {"psnr": 37.53},
    ("LACT-90", "DC-PnPDP"): {"psnr": 39.46, "ssim": 0.955},
    ("SVCT-20", "FBP"): {"psnr": 21.82},
    ("SVCT-20", "DDNM"): {"psnr": 33.94},
    ("SVCT-20", "DiffPIR"): {"psnr": 37.86},
    ("SVCT-20", "DC-PnPDP"): {"psnr": 40.55, "ssim": 0.963},
    ("brain x6", "zero-filled"): {"psnr": 23.44},
    ("brain x6", "DiffPIR"): {"psnr": 34.88},
    ("brain x6", "DC-PnPDP"): {"psnr": 36.43, "ssim": 0.972},
    ("brain x10", "zero-filled"): {"psnr": 20.41},
    ("brain x10", "DiffPIR"): {"psnr": 27.92},
    ("brain x10", "DC-PnPDP"): {"psnr": 30.91, "ssim": 0.943},
}

CONTROLLED: Figures = {
    ("LACT-90", "FBP"): {"psnr": 16.82},
    ("LACT-90", "DDNM"): {"psnr": 30.62},
    ("LACT-90", "DiffPIR"): {"psnr": 31.03},
    ("LACT-90", "DC-PnPDP"): {"psnr": 36.98},
    ("SVCT-20", "FBP"): {"psnr": 21.82},
    ("SVCT-20", "DDNM"): {"psnr": 36.22},
    ("brain x6", "zero-filled"): {"psnr": 23.44},
    ("brain x10", "zero-filled"): {"psnr": 20.41},
}

ABLATION: Figures = {
    ("LACT-90", "neither (DiffPIR)"): {"psnr": 31.36},
    ("LACT-90", "SH only"): {"psnr": 31.51},
    ("LACT-90", "dual only"): {"psnr": 35.91},
    ("LACT-90", "dual and SH (DC-PnPDP)"): {"psnr": 37.02},
}

# LACT-90 and SVCT-20 at the two budgets that the tables give.
SWEEP: Figures = {
    ("LACT-90", "DiffPIR, 50 NFE"): {"psnr": 31.03},
    ("LACT-90", "DiffPIR, 100 NFE"): {"psnr": 34.70},
    ("LACT-90", "DC-PnPDP, 50 NFE"): {"psnr": 37.53},
    ("LACT-90", "DC-PnPDP, 100 NFE"): {"psnr": 39.46, "ssim": 0.955},
    ("SVCT-20", "DiffPIR, 100 NFE"): {"psnr": 37.86},
    ("SVCT-20", "DC-PnPDP, 100 NFE"): {"psnr": 40.55, "ssim": 0.963},
}

DDNM: Figures = {
    ("LACT-90", "DDNM"): {"psnr": 30.62},
    ("SVCT-20", "DDNM"): {"psnr": 36.22},
}

# Seconds and GB of one iteration of ten slices on an A100; the problem is not stated.
RUNTIME: dict[str, dict[str, float]] = {
    "DiffPIR": {"total": 0.196, "memory_gb": 4.0},
    "DAPS": {"total": 0.319},
    "SITCOM": {"total": 7.46, "memory_gb": 38.0},
    "DC-PnPDP": {"denoiser": 0.1856, "data": 0.0095, "sh": 0.0007},
}
