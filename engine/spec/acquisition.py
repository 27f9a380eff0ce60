"""How an image is measured: the settings of a CT or MRI acquisition, or of a degradation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.spec.errors import RequestError
from engine.spec.settings import Settings, setting

FINE_GRID = (
    "Simulate the scan of an image on a grid this many times finer than that of the "
    "reconstruction. At 1 the very model that measured reconstructs, which flatters every method."
)


@dataclass(frozen=True)
class CTAcquisition(Settings):
    """A simulated (or retrospectively thinned) two-dimensional CT scan."""

    views: int = setting(
        20, "Number of projections: fewer leaves more to the prior.", low=1, high=10_000
    )
    angular_range: float = setting(
        180.0,
        "Arc covered by the views: below 180 some edges are never seen.",
        above=0,
        high=360,
        unit="deg",
    )
    start_angle: float = setting(0.0, "Angle of the first view.", low=-360, high=360, unit="deg")
    geometry: str = setting(
        "parallel",
        "Rays in parallel or from a point source.",
        choices=("parallel", "fan"),
        label="Rays",
    )
    detectors: int | None = setting(
        None,
        "Detector bins; by default enough to see the whole image.",
        low=1,
        high=20_000,
        label="Detector bins",
    )
    pitch_mm: float | None = setting(
        None,
        "Detector bin width; by default one pixel (at the centre).",
        above=0,
        unit="mm",
        label="Detector pitch",
    )
    source_origin_mm: float = setting(
        595.0,
        "Fan beam: distance from source to rotation centre.",
        above=0,
        unit="mm",
        label="Source to centre",
    )
    source_detector_mm: float = setting(
        1086.5,
        "Fan beam: distance from source to detector.",
        above=0,
        unit="mm",
        label="Source to detector",
    )
    photons: float | None = setting(
        None,
        "Photons per ray before the patient: fewer is noisier. Without it: no noise.",
        above=0,
        label="Photons per ray",
    )
    electronic_noise: float = setting(
        0.0, "SD of the detector's own noise, in photons.", low=0, unit="photons"
    )
    gaussian_noise: float = setting(
        0.0,
        "SD of Gaussian noise on the line integrals, instead of photon noise.",
        low=0,
        label="Gaussian noise, SD",
    )
    noise: str = setting(
        "auto",
        "Of a measured scan with noise that is not given: estimate it, or take it for noise-free.",
        choices=("auto", "none"),
        before="none",
        label="Noise of a measured scan",
    )
    fbp_filter: str = setting(
        "ramp",
        "Filter of the filtered back-projection: ramp is sharpest, Hann and Hamming smoothest.",
        choices=("ramp", "shepp-logan", "cosine", "hann", "hamming"),
        label="FBP filter",
    )
    backend: str = setting(
        "auto",
        "Projector: our own with a stored matrix (native) or without (matrix-free), or one you "
        "installed. 'auto' stores a matrix where it is small and serves well.",
        choices=("auto", "native", "matrix-free", "astra", "torch-radon"),
        before="native",
        label="Projector",
    )
    weighted: bool = setting(
        True,
        "With photon noise: weigh each ray by its certainty in the data term.",
        label="Weigh rays by certainty",
    )
    fine_grid: int = setting(1, FINE_GRID, low=1, high=4, label="Finer grid of the scan")
    aperture: bool = setting(
        True,
        "Of scans that were measured, or simulated on a finer grid: pixels are squares and "
        "detector bins have a width. Off: rays are lines.",
        label="Width of pixels and bins",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.photons is not None and self.gaussian_noise > 0:
            raise RequestError("Give ⟦photons⟧ or ⟦gaussian_noise⟧, not both.")


@dataclass(frozen=True)
class MRIAcquisition(Settings):
    """A simulated (or retrospectively undersampled) Cartesian scan."""

    acceleration: float = setting(
        6.0, "Undersampling factor asked for; the true one is shown.", low=1, high=1000
    )
    mask: str = setting(
        "inversebench",
        "Which phase-encode lines are kept.",
        choices=("inversebench", "fastmri", "fastmri-fraction", "equispaced", "random"),
    )
    acs_lines: int | None = setting(
        None,
        "Fully sampled lines at the centre; by default as the mask prescribes.",
        low=0,
        label="ACS lines",
    )
    coils: int = setting(
        1, "Receive coils of a simulated scan.", low=1, high=128, label="Receive coils"
    )
    noise: str = setting(
        "auto",
        "Of a measured scan with noise that is not given: estimate it, or take it for noise-free.",
        choices=("auto", "none"),
        before="none",
        label="Noise of a measured scan",
    )
    kspace_noise: float = setting(
        0.0,
        "SD of the noise of a k-space sample, of the real and the imaginary part, relative to the "
        "image's 0.99 quantile. A simulated scan gets it; of a measured one it is taken as known, "
        "and estimated without a number.",
        low=0,
        label="k-space noise, SD",
    )
    fine_grid: int = setting(1, FINE_GRID, low=1, high=4, label="Finer grid of the scan")


TASKS = ("deblur-gaussian", "deblur-motion", "super-resolution")


@dataclass(frozen=True)
class RestorationAcquisition(Settings):
    """An image degraded on purpose, to be restored by the methods made for CT and MRI."""

    task: str = setting(
        "deblur-gaussian", "Blur or shrink the image instead of scanning it.", choices=TASKS
    )
    blur_sd: float = setting(
        3.0, "SD of the Gaussian blur: larger loses more detail.", above=0, high=100, unit="pixels"
    )
    motion_length: float = setting(
        15.0, "Length of the motion blur.", above=0, high=500, unit="pixels"
    )
    motion_angle: float = setting(
        45.0,
        "Direction of the motion, counter-clockwise from the rows.",
        low=-360,
        high=360,
        unit="deg",
    )
    factor: int = setting(4, "Super-resolution: pixels per coarse pixel.", low=1, high=64)
    boundary: str = setting(
        "circular",
        "Beyond the border: the other side of the image (exact data steps), or nothing.",
        choices=("circular", "zero"),
    )
    image_noise: float = setting(
        0.01, "SD of the noise on the degraded image, in the prior's units.", low=0
    )


Acquisition = CTAcquisition | MRIAcquisition | RestorationAcquisition


def acquisition_for(modality: str, values: dict[str, Any]) -> Acquisition:
    """The acquisition of a simulated scan: what was asked for, defaults for the rest."""
    if "task" in values:
        return RestorationAcquisition.from_dict(values)
    kind = CTAcquisition if modality == "CT" else MRIAcquisition
    return kind.from_dict(values)


def demo_acquisition(input: str) -> dict[str, Any]:
    """What a new scan of a demo is simulated with where nothing else is asked for."""
    return {"fine_grid": 2} if input.split(":")[:2] == ["demo", "ct"] else {}


def acquisition_of(input: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The acquisition of a new job; in an old one what is missing has the default of its class."""
    return asked if "task" in asked else demo_acquisition(input) | asked
