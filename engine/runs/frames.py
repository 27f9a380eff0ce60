"""An Iteration as plain numpy and floats, for a display that knows no torch.

Only what is on the screen is converted, and every array is a fresh copy: the solver may go on
while another thread still draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.physics.fourier import to_complex
from engine.physics.problem import Problem
from engine.physics.units import IntensityMap, noise_scale
from engine.solvers.homogenize import power
from engine.solvers.iteration import Iteration

IMAGES = ("image", "z", "x")  # values in HU or the MR scale
DIFFERENCES = ("u", "x - z")  # differences of such values: no offset
PLANES = (*IMAGES, *DIFFERENCES, "residual")
SPECTRA = ("psd", "psd image")
LOG_FLOOR = 1e-12  # of a k-space residual's log magnitude


@dataclass(frozen=True)
class Frame:
    """One iteration as it is shown.

    ``planes`` are float32 ``[rows, columns]`` by name, in ``units`` of the same name;
    ``psd`` holds radial power by name over ``frequency`` (cycles per pixel), and
    ``psd_images`` centred pictures of it in dB relative to the white target.
    """

    k: int
    K: int
    sigma: float
    nfe: int
    planes: dict[str, np.ndarray] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    norms: dict[str, float] = field(default_factory=dict)
    frequency: np.ndarray | None = None
    psd: dict[str, np.ndarray] = field(default_factory=dict)
    psd_images: dict[str, np.ndarray] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


@torch.no_grad()
def frame_of(problem: Problem, iteration: Iteration, wanted: set[str], sample: int = 0) -> Frame:
    """What is ``wanted`` of an iteration (names of PLANES and SPECTRA) for one slice.

    A plane the method does not have (DiffPIR keeps no u) is left out, not invented.
    """
    here = slice(sample, sample + 1)
    planes: dict[str, np.ndarray] = {}
    for name in PLANES:
        if name in wanted and (values := _plane(problem, iteration, name, here)) is not None:
            planes[name] = values
    psd: dict[str, np.ndarray] = {}
    frequency = None
    if "psd" in wanted and iteration.psd:
        psd = {name: _copy(curve[sample].mean(0)) for name, curve in iteration.psd.items()}
        rings = len(next(iter(psd.values())))
        frequency = np.arange(rings, dtype=np.float32) / min(iteration.z.shape[-2:])
    return Frame(
        k=iteration.k,
        K=iteration.K,
        sigma=iteration.sigma,
        nfe=iteration.nfe,
        planes=planes,
        units={name: plane_unit(problem, name) for name in planes},
        norms=norms_of(iteration, sample),
        frequency=frequency,
        psd=psd,
        psd_images=_psd_images(iteration, here) if "psd image" in wanted else {},
        metrics=dict(iteration.metrics),
        seconds=dict(iteration.seconds),
    )


def norms_of(iteration: Iteration, sample: int) -> dict[str, float]:
    return {name: values[sample] for name, values in iteration.norms.items()}


def scalars_of(iteration: Iteration, sample: int = 0) -> dict[str, float]:
    """The numbers that become points of the curves."""
    return {
        "k": iteration.k,
        "sigma": iteration.sigma,
        "nfe": iteration.nfe,
        **norms_of(iteration, sample),
        **{name: float(value) for name, value in iteration.metrics.items()},
        **{f"seconds_{name}": value for name, value in iteration.seconds.items()},
    }


def pictures_of(problem: Problem, image: Tensor) -> np.ndarray:
    """All slices ``[B, H, W]``: HU, or the magnitude in the MR scale."""
    return pictures_in(problem.intensity, problem.modality, image)


def pictures_in(intensity: IntensityMap, modality: str, image: Tensor) -> np.ndarray:
    """The same of an image whose problem is not at hand."""
    return _copy(_shown(modality, intensity.to_physical(image)))


def plane_unit(problem: Problem, name: str) -> str:
    if name == "residual":
        return "line integral" if problem.modality == "CT" else "log10 magnitude"
    return "HU" if problem.modality == "CT" else "signal"


def _plane(problem: Problem, iteration: Iteration, name: str, here: slice) -> np.ndarray | None:
    if name in IMAGES:
        image: Tensor = getattr(iteration, name)
        return _copy(_shown(problem.modality, problem.physical(image[here]))[0])
    if name == "residual":
        return _copy(_residual(problem, iteration, here)[0])
    if name == "u":
        if "u" not in iteration.state:
            return None
        difference = iteration.state["u"][here]
    else:
        difference = iteration.x[here] - iteration.z[here]
    return _copy(_shown(problem.modality, difference * problem.intensity.scale)[0])


def _shown(modality: str, values: Tensor) -> Tensor:
    """``[B, C, H, W]`` to what the eye sees, ``[B, H, W]``: the magnitude for complex MR."""
    return values[:, 0] if modality == "CT" else to_complex(values).abs()[:, 0]


def _residual(problem: Problem, iteration: Iteration, here: slice) -> Tensor:
    """A x - y as a picture: a sinogram, or k-space joined over coils on a log scale."""
    residual = problem.residual(iteration.x)[here]  # the operator may belong to the batch
    if problem.modality == "CT":
        return residual[:, 0] / noise_scale(problem.intensity)
    magnitude = to_complex(residual).abs().square().sum(1).sqrt() * problem.intensity.scale
    return magnitude.clamp_min(LOG_FLOOR).log10()


def _psd_images(iteration: Iteration, here: slice) -> dict[str, np.ndarray]:
    """Power of the denoiser's input noise before and after homogenization."""
    noise: dict[str, Tensor] = getattr(iteration, "noise", {})
    pictures = {}
    for name, values in noise.items():
        target = iteration.sigma**2 * values.shape[-2] * values.shape[-1]
        relative = power(values[here]).mean(1)[0] / max(target, LOG_FLOOR)
        decibel = 10 * relative.clamp_min(LOG_FLOOR).log10()
        pictures[name] = _copy(torch.fft.fftshift(decibel))
    return pictures


def _copy(values: Tensor) -> np.ndarray:
    """float32, C-contiguous, sharing memory with nothing."""
    return np.array(values.detach().cpu().float().numpy(), dtype=np.float32, order="C")
