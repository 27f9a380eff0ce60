"""What a person may say of an input that does not say it itself.

The same names serve as command-line options, as keys of a JSON sidecar (``scan.npy`` may have a
``scan.json`` beside it) and as the fields of the app's dialog.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.spec.settings import Settings, setting

KINDS = ("image", "sinogram", "kspace")
PATH_OPTIONS = (
    "sidecar",
    "allow_links",
    "maps",
    "trajectory",
)  # options that name a place on the disk
UNITS = ("hu", "mu", "mu-cm", "normalised", "line-integral", "transmission", "counts")


@dataclass(frozen=True)
class InputOptions(Settings):
    """All optional: a file that carries its own geometry needs none of them."""

    kind: str | None = setting(None, "What the numbers are.", choices=KINDS)
    unit: str | None = setting(
        None,
        "Unit of an array without one; mu is attenuation in 1/mm, mu-cm in 1/cm.",
        choices=UNITS,
    )
    modality: str | None = setting(None, "CT or MR.", choices=("ct", "mr"))
    pixel_mm: float | None = setting(
        None, "Pixel size of an image without one, or of the image to be made.", above=0, unit="mm"
    )
    size: int | None = setting(
        None,
        "Side of the image to be made from measured data; images are shrunk to it.",
        low=8,
        high=8192,
        unit="px",
        label="Image side",
    )
    slice_spacing_mm: float | None = setting(
        None,
        "Distance of neighbouring slices, when the file does not say it.",
        above=0,
        unit="mm",
        label="Slice spacing",
    )
    dataset: str | None = setting(
        None, "Which array of the file, when it holds several: its name or path."
    )
    axes: str | None = setting(
        None,
        "Order of an array's axes: of slice,row,column (images), slice,view,detector "
        "(sinograms), slice,coil,read,phase (k-space) or slice,coil,spoke,sample (radial k-space).",
    )
    sidecar: str | None = setting(None, "JSON file that describes the input.")
    allow_links: str | None = setting(
        None,
        "Folder into which links of an HDF5 file may lead. Without it none is followed.",
        label="Folder of linked files",
    )
    scan_geometry: str | None = setting(
        None, "Rays of a sinogram.", choices=("parallel", "fan"), label="Rays"
    )
    scan_start: float | None = setting(
        None, "Angle of a sinogram's first view.", unit="deg", label="First view"
    )
    scan_range: float | None = setting(
        None,
        "Arc from the first view to one step after the last.",
        above=0,
        unit="deg",
        label="Angular range",
    )
    scan_angle_unit: str | None = setting(
        None,
        "Unit of the angles that a file or a sidecar lists.",
        choices=("deg", "rad"),
        label="Unit of listed angles",
    )
    scan_direction: str | None = setting(
        None, "Counter-clockwise or clockwise.", choices=("ccw", "cw"), label="Direction"
    )
    scan_flip: bool | None = setting(
        None, "Detector bins are numbered the other way round.", label="Detector reversed"
    )
    scan_pitch_mm: float | None = setting(
        None, "Detector bin width.", above=0, unit="mm", label="Detector pitch"
    )
    scan_offset_mm: float | None = setting(
        None,
        "Shift of the detector along its axis: corrects the rotation centre.",
        unit="mm",
        label="Detector offset",
    )
    scan_source_origin_mm: float | None = setting(
        None, "Fan beam: source to rotation centre.", above=0, unit="mm", label="Source to centre"
    )
    scan_source_detector_mm: float | None = setting(
        None, "Fan beam: source to detector.", above=0, unit="mm", label="Source to detector"
    )
    scan_find_centre: bool | None = setting(
        None,
        "Find the rotation centre in the data when nobody tells the offset.",
        label="Find the centre",
    )
    scan_air: float | None = setting(
        None, "Counts of a ray through air.", above=0, label="Counts in air"
    )
    scan_air_bins: int | None = setting(
        None,
        "Detector bins at either end that see only air: every view is shifted so that they "
        "read zero.",
        low=1,
        high=1024,
        label="Bins of air at the ends",
    )
    scan_scale: float | None = setting(
        None,
        "Factor on the line integrals, such as 0.1 for lengths in mm with 1/cm.",
        above=0,
        label="Factor on line integrals",
    )
    scan_bad_pixels: bool | None = setting(
        None,
        "Find stuck and hot detector pixels; they are filled in and have no weight.",
        label="Mend bad pixels",
    )
    scan_rings: int | None = setting(
        None,
        "Remove rings: width in bins of the median over sorted values.",
        low=3,
        high=301,
        label="Remove rings, width",
    )
    scan_hardening: str | None = setting(
        None,
        "Beam hardening: a1,a2,... of a1 p + a2 p^2 + ... for a line integral p.",
        label="Beam hardening",
    )
    energy_kev: float | None = setting(
        None,
        "Energy of the scan, for the attenuation of water.",
        low=10,
        high=500,
        unit="keV",
        label="Energy",
    )
    mu_water: float | None = setting(
        None,
        "Attenuation of water at the scan's energy.",
        above=0,
        unit="1/mm",
        label="Attenuation of water",
    )
    extended_fov: float | None = setting(
        None,
        "Side of the image over that of the field of view, for objects wider than the detector.",
        low=1,
        high=4,
        label="Extended field of view",
    )
    coil_use: str | None = setting(
        None,
        "Multi-coil data: one sensitivity map per coil (sense) or one virtual coil (combine).",
        choices=("sense", "combine"),
        label="Use of the coils",
    )
    maps: str | None = setting(
        None,
        "File of coil sensitivity maps for multi-coil k-space (.npy, .cfl, .h5, .mat).",
        label="File of coil maps",
    )
    trajectory: str | None = setting(
        None,
        "Where radial or spiral k-space was measured: a file (.npy, .npz, .mat, .h5, .cfl), or an "
        "array of the input's own file.",
        label="k-space trajectory",
    )
    trajectory_unit: str | None = setting(
        None,
        "Unit of a trajectory: cycles per field of view, cycles per pixel (-0.5 .. 0.5) or "
        "radians per pixel; by default detected.",
        choices=("fov", "pixel", "radian"),
        label="Unit of the trajectory",
    )
    virtual_coils: int | None = setting(
        None,
        "Compress the coils of k-space to so many virtual ones.",
        low=1,
        high=128,
        label="Virtual coils",
    )
    correct_readouts: bool | None = setting(
        None,
        "Radial k-space: find the delay of every spoke, and the phase it has too much, from the "
        "image of all, and take them away.",
        label="Correct delays of spokes",
    )
    mr_scale: float | None = setting(
        None,
        "Magnitude of k-space images that a prior sees as 1, in the file's units; by default the "
        "image's 0.99 quantile, measured or estimated.",
        above=0,
        label="MR scale",
    )


def give(changes: dict[str, Any]) -> str:
    """What to change, for a sentence: 'give --axes view,detector --scan-flip on'."""
    return "give " + " ".join(f"⟦{k}⟧ {_typed(v)}" for k, v in changes.items())


def _typed(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value)
