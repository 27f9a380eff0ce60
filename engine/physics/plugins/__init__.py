"""Other people's projectors, found at run time and never imported unless asked for.

ASTRA and torch-radon are GPL-3 and no part of this program; whoever has installed one can use
it through the same `Operator` interface.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Final

import torch

from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.physics.matrix_free import MatrixFreeCTOperator, suits_matrix
from engine.physics.operator import Operator
from engine.spec.errors import RequestError

# 'native' stores a matrix, 'auto' takes it where that serves well and 'matrix-free' elsewhere.
BACKENDS: Final = ("auto", "native", "matrix-free", "astra", "torch-radon")


@dataclass(frozen=True)
class BackendStatus:
    """Whether a back end can be used here, and what it is or what is missing."""

    available: bool
    detail: str


def available_backends() -> dict[str, BackendStatus]:
    """Name -> status of every CT back end; looks for packages without importing them."""
    return {
        "native": BackendStatus(True, "sparse system matrix, exact adjoint, CPU and CUDA"),
        "matrix-free": BackendStatus(True, "the same weights computed on the fly, CPU and CUDA"),
        "astra": _astra_status(),
        "torch-radon": _torch_radon_status(),
    }


def make_ct_operator(
    geometry: CTGeometry,
    backend: str = "auto",
    device: torch.device | str = "cpu",
    filter_name: str = "ramp",
    weighting: str = "mean",
) -> Operator:
    """The operator of a geometry with the chosen projector.

    Raises
    ------
    RequestError
        If the back end is unknown, not installed or cannot do this geometry.
    """
    if backend not in BACKENDS:
        raise RequestError(f"Unknown CT back end '{backend}': expected {', '.join(BACKENDS)}.")
    if backend == "auto":
        backend = "native" if suits_matrix(geometry) else "matrix-free"
    status = available_backends()[backend]
    if not status.available:
        raise RequestError(f"The CT back end '{backend}' cannot be used: {status.detail}.")
    if backend == "astra":
        from engine.physics.plugins.astra_backend import AstraOperator

        return AstraOperator(geometry, device, filter_name, weighting)
    if backend == "torch-radon":
        from engine.physics.plugins.torch_radon_backend import TorchRadonOperator

        return TorchRadonOperator(geometry, device, filter_name, weighting)
    own = MatrixFreeCTOperator if backend == "matrix-free" else CTOperator
    return own(geometry, device, filter_name=filter_name, weighting=weighting)


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # a half-removed package
        return False


def _astra_status() -> BackendStatus:
    if not _installed("astra"):
        return BackendStatus(False, "astra-toolbox is not installed (pip install astra-toolbox)")
    return BackendStatus(True, "ASTRA toolbox on the CPU, computed on the fly")


def _torch_radon_status() -> BackendStatus:
    if not _installed("torch_radon"):
        return BackendStatus(
            False,
            "torch-radon is not installed (conda install -c conda-forge carterbox-torch-radon)",
        )
    if not torch.cuda.is_available():
        return BackendStatus(False, "torch-radon needs a CUDA device and torch sees none")
    return BackendStatus(True, "torch-radon on CUDA; its adjoint is approximate")
