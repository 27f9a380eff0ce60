"""What bare numbers may mean, when a file does not say it: the answers a person can choose."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from app.data.opened import Choice, Opened

ARRAYS = (".npy", ".npz", ".mat")
IMAGES = (
    Choice("CT image in HU", {"modality": "ct", "unit": "hu"}),
    Choice("CT image of attenuation, in 1/mm", {"modality": "ct", "unit": "mu"}),
    Choice("CT image of attenuation, in 1/cm", {"modality": "ct", "unit": "mu-cm"}),
    Choice("CT image, normalised (HU = 1000 x)", {"modality": "ct", "unit": "normalised"}),
    Choice("MR image", {"modality": "mr"}),
)
SINOGRAMS = (
    Choice("Sinogram of line integrals", {"kind": "sinogram", "unit": "line-integral"}),
    Choice("Sinogram of transmission, 0 to 1", {"kind": "sinogram", "unit": "transmission"}),
    Choice("Sinogram of photon counts", {"kind": "sinogram", "unit": "counts"}),
)
COMPLEX = (
    Choice("k-space", {"kind": "kspace"}),
    Choice("Complex MR image", {"kind": "image", "modality": "mr"}),
)


def choices_for(
    missing: tuple[str, ...], values: tuple[str, ...], is_geometry: bool
) -> tuple[Choice, ...]:
    """Answers to what is missing; none for a geometry, which takes numbers."""
    if is_geometry:
        return ()
    if missing == ("kind",):
        return COMPLEX
    if values:
        return tuple(Choice(_words(missing[0], value), {missing[0]: value}) for value in values)
    return (*IMAGES, *SINOGRAMS) if "kind" in missing else IMAGES


def may_be_kspace(opened: Opened) -> bool:
    """Whether a complex array was taken as an image only because nothing said otherwise."""
    path = Path(opened.text)
    if opened.kind != "image" or opened.modality != "MR" or path.suffix.lower() not in ARRAYS:
        return False
    said = {"kind", "modality", "axes"} & set(opened.options)
    if said or path.with_suffix(".json").exists():
        return False
    return bool(np.iscomplexobj(opened.dataset.read(opened.middle)))  # type: ignore[attr-defined]


def _words(option: str, value: str) -> str:
    if option == "allow_links":
        return f"Only to files in {value}"
    return value.replace(",", ", ") if option == "axes" else value
