"""Real DICOM files and small measured data for the tests of app.data."""

import json
import shutil
from pathlib import Path

import numpy as np
import pydicom.data

FOLDER = Path(pydicom.data.__file__).parent / "test_files"
STUDY = FOLDER / "dicomdirtests" / "98892003"  # seven MR series of Doe^Peter
MIXED = FOLDER / "dicomdirtests" / "77654033"  # three radiographs and a CT series of 4
CT_SMALL = FOLDER / "CT_small.dcm"
RAYS = {
    "scan_geometry": "parallel",
    "scan_pitch_mm": 1.0,
    "scan_range": 180.0,
    "unit": "line-integral",
}


def copy_of(source, folder):
    return shutil.copy(source, folder / source.name)


def disc_sinogram(views=36, detectors=48, radius=10.0, shift=0.0):
    """Line integrals of a disc of water off the centre, parallel rays of 1 mm over 180 deg."""
    angles = np.arange(views) * np.pi / views
    s = np.arange(detectors) - (detectors - 1) / 2 - shift
    centre = 6 * np.cos(angles) + 3 * np.sin(angles)
    inside = radius**2 - (s[None, :] - centre[:, None]) ** 2
    return (0.0192 * 2 * np.sqrt(np.maximum(inside, 0))).astype(np.float32)


def sinogram_file(folder, name="scan.npy", sidecar=None, slices=1, **shape):
    path = folder / name
    one = disc_sinogram(**shape)
    np.save(path, one if slices == 1 else np.stack([one] * slices))
    if sidecar is not None:
        path.with_suffix(".json").write_text(json.dumps(sidecar))
    return path


def kspace_file(folder):
    """A block in four coils, of which every second line was measured."""
    image = np.zeros((32, 40), np.complex64)
    image[8:24, 10:30] = 1
    coils = np.stack([image * weight for weight in (1, 0.5, 0.25, 0.125)])
    shifted = np.fft.ifftshift(coils, axes=(-2, -1))
    kspace = np.fft.fftshift(np.fft.fft2(shifted, norm="ortho"), axes=(-2, -1))
    kspace += np.random.default_rng(0).normal(0, 1e-3, kspace.shape)
    kspace[..., 1:16:2] = 0
    path = folder / "scan.npy"
    np.save(path, kspace.astype(np.complex64))
    return path


def volume_file(folder, slices=40, side=24):
    """CT slices in HU, each of its own brightness."""
    stack = np.zeros((slices, side, side), np.float32)
    stack += np.arange(slices, dtype=np.float32)[:, None, None]
    path = folder / "volume.npy"
    np.save(path, stack)
    return path


VOLUME = {"kind": "image", "modality": "ct", "unit": "hu", "pixel_mm": 1.0}
