"""``dualscope bench projectors``: the stored matrix, no matrix, and other people's projectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from engine.cli.bench import interleaved_times
from engine.physics.fbp import fbp
from engine.physics.geometry import CTGeometry
from engine.physics.matrix_free import MatrixFreeCTOperator
from engine.physics.memory import PeakMemory
from engine.physics.plugins import available_backends, make_ct_operator
from engine.physics.problem import Problem
from engine.physics.system_matrix import estimate_bytes
from engine.physics.units import IntensityMap
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.presets import apply_preset

SIZE, BATCH = 256, 8
CASES = {"20 views / 180 deg": (20, 180.0), "90 views / 90 deg": (90, 90.0)}
LARGE = {"512 x 512, 721 views": (512, 721), "1024 x 1024, 1000 views": (1024, 1000)}
SIGMA = 0.5  # of the data step that is timed: all of its steps are taken
FEWER: dict[str, Any] = {"cg_iterations": 50, "preconditioner_floor": 0.002}  # see help/solvers.md
UNITS = IntensityMap("hu", scale=1000.0, offset=0.0)
Work = dict[str, Callable[[], object]]
Rows = list[dict[str, Any]]


def measure(rounds: int, size: int = SIZE, large: dict[str, tuple[int, int]] = LARGE) -> Rows:
    return [
        *_products(rounds, size),
        *(row for name, (side, views) in large.items() for row in _large(name, side, views)),
        *_data_step(rounds, size),
    ]


def _minima(work: Work, rounds: int) -> dict[str, float]:
    """Seconds of each; the least disturbed round counts."""
    return {name: min(times) for name, times in interleaved_times(work, rounds).items()}


def _products(rounds: int, size: int) -> Rows:
    rows: Rows = []
    for case, (views, span) in CASES.items():
        geometry = CTGeometry.sparse_view(views, span, size=size)
        one = torch.rand(1, 1, size, size, generator=torch.Generator().manual_seed(0))
        work: Work = {}
        for name, backend in (("stored matrix", "native"), ("no matrix", "matrix-free")):
            a = make_ct_operator(geometry, backend)
            for batch in (1, BATCH):
                x = one.expand(batch, -1, -1, -1).contiguous()
                work[f"{name}, batch {batch}"] = lambda a=a, x=x: a.adjoint(a.forward(x))  # type: ignore[misc]
        if available_backends()["astra"].available:
            astra = make_ct_operator(geometry, "astra")
            work["ASTRA (CPU)"] = lambda a=astra, x=one: a.adjoint(a.forward(x))  # type: ignore[misc]
        if skimage := _scikit_image(geometry, one):
            work["scikit-image"] = skimage
        seconds = _minima(work, rounds)
        for name in seconds:
            if name.endswith(f"batch {BATCH}"):
                seconds[name] /= BATCH
        for name in (*work, *(n for n in ("ASTRA (CPU)", "scikit-image") if n not in work)):
            value = seconds.get(name)
            rows.append(
                {
                    "table": f"Forward + adjoint of one {size} x {size} slice",
                    "case": case,
                    "projector": name,
                    "ms per slice": "not installed" if value is None else 1e3 * value,
                    "times the stored matrix": "-"
                    if value is None
                    else value / seconds["stored matrix, batch 1"],
                }
            )
    return rows


def _large(case: str, side: int, views: int) -> Rows:
    """Once each, with the memory on top of the sinogram; FBP also as it is without numba."""
    geometry = CTGeometry.sparse_view(views, 180.0, size=side)
    operator = MatrixFreeCTOperator(geometry)
    small = MatrixFreeCTOperator(CTGeometry.sparse_view(2, 180.0, size=8))
    small.pseudo_inverse(small.forward(torch.ones(1, 1, 8, 8)))  # compiles
    small.adjoint(torch.ones(1, *small.measurement_shape))
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(1, 1, side, side, generator=generator)
    y = torch.rand(1, *operator.measurement_shape, generator=generator)
    work: Work = {
        "FBP before": lambda: fbp(y, geometry),
        "FBP": lambda: operator.pseudo_inverse(y),
        "forward": lambda: operator.forward(x),
        "adjoint": lambda: operator.adjoint(y),
    }
    rows: Rows = []
    for name, act in work.items():
        with PeakMemory(torch.device("cpu")) as peak:
            seconds = interleaved_times({name: act}, 1, warm=False)[name][0]
        rows.append(
            {
                "table": "Without a matrix",
                "case": case,
                "projector": name,
                "s": seconds,
                "peak GB": "-" if peak.gb is None else peak.gb,
            }
        )
    stored = {"projector": "(a stored matrix)", "s": "-", "peak GB": estimate_bytes(geometry) / 1e9}
    return [*rows, {"table": "Without a matrix", "case": case, **stored}]


def _data_step(rounds: int, size: int) -> Rows:
    """90 views over 90 degrees, with the projector of the version before and that of today."""
    geometry = CTGeometry.sparse_view(90, 90.0, size=size)
    rows: Rows = []
    for preset in ("paper-lact", None):
        ways: list[tuple[str, str, dict[str, Any]]]
        ways = [("before", "native", {}), ("now", "auto", {})]
        work: Work = {}
        for name, backend, other in [*ways, ("low floor", "auto", FEWER)] if preset else ways:
            problem = _problem(geometry, backend)
            values = apply_preset(preset, problem) | other
            # all steps are taken, so that the row shows the whole cost
            step = DataStep(problem, replace(DataStepSettings.pick(values), cg_tolerance=0.0))
            v = problem.operator.pseudo_inverse(problem.measurement)
            case = f"{preset or 'default'}, {name}: {step.iterations} filtered steps"
            work[case] = lambda s=step, v=v: s(v, SIGMA)  # type: ignore[misc]
        seconds = _minima(work, rounds)
        before = next(iter(seconds.values()))
        title = f"Limited-angle data step, one {size} x {size} slice"
        rows += [
            {"table": title, "case": case, "ms": 1e3 * value, "times before": value / before}
            for case, value in seconds.items()
        ]
    return rows


def _problem(geometry: CTGeometry, backend: str) -> Problem:
    operator = make_ct_operator(geometry, backend)
    image = torch.zeros(1, *operator.image_shape)
    quarter = geometry.image_size[0] // 4
    image[..., quarter:-quarter, quarter:-quarter] = 1.0
    return Problem(operator, operator.forward(image), UNITS, "CT", pixel_mm=(1.0, 1.0))


def _scikit_image(geometry: CTGeometry, image: Tensor) -> Callable[[], object] | None:
    """radon and unfiltered iradon, its nearest equivalent of forward and adjoint."""
    try:
        from skimage.transform import iradon, radon
    except ImportError:
        return None
    degrees = [angle * 180 / torch.pi for angle in geometry.angles_rad]
    picture, size = image[0, 0].numpy(), image.shape[-1]

    def act() -> object:
        sinogram = radon(picture, theta=degrees, circle=False)
        return iradon(sinogram, theta=degrees, filter_name=None, circle=False, output_size=size)

    return act
