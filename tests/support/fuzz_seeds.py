"""Good files of every family, small ones, for the fuzzer to damage."""

from __future__ import annotations

import json
from pathlib import Path

import ct_pd_files
import dicom_files
import h5py
import kspace_files
import numpy as np
import scipy.io
import sinogram_files
import volume_files
from ct_ellipses import Ellipse
from PIL import Image
from pydicom import uid
from results import make_result

from engine.export import write_outputs

HU = {"unit": "hu"}
SIZE = 24


def image() -> np.ndarray:
    rows, columns = np.mgrid[:SIZE, :SIZE]
    return (40 * rows - 30 * columns).astype(np.int16)


def dicom(folder: Path) -> dict[str, dict]:
    syntaxes = {
        "plain": uid.ExplicitVRLittleEndian,
        "implicit": uid.ImplicitVRLittleEndian,
        "big": uid.ExplicitVRBigEndian,
        "rle": uid.RLELossless,
        "jpegls": uid.JPEGLSLossless,
        "jpeg2000": uid.JPEG2000Lossless,
    }
    for name, syntax in syntaxes.items():
        dicom_files.write_slice(folder / f"{name}.dcm", syntax=syntax)
    dicom_files.write_slice(folder / "mr.dcm", "MR")
    dicom_files.write_enhanced(folder / "enhanced.dcm", [0.0, 2.0])
    dicom_files.to_jpeg_lossless(folder / "plain.dcm", folder / "jpeg.dcm")
    (folder / "series").mkdir()
    dicom_files.write_series(folder / "series", [0.0, 2.0, 4.0])
    disc = ct_pd_files.Solid(Ellipse(5.0, -8.0, 30.0, 20.0, 0.0, 0.02))
    scan = ct_pd_files.Scan([disc], ct_pd_files.turns(1, 24), rows=1, columns=100, turn_views=24)
    scan.column_mm, scan.central = 4.4, (49.875, 1.0)
    ct_pd_files.write_scan(folder / "projections", scan)
    dicom_files.write_series(folder / "disk", [0.0, 2.0])
    files = [[path.name] for path in (folder / "disk").iterdir()]
    dicom_files.write_dicomdir(folder / "disk" / "DICOMDIR", files)
    names = [*(f"{name}.dcm" for name in syntaxes), "mr.dcm", "enhanced.dcm", "jpeg.dcm"]
    return {name: {} for name in (*names, "series", "disk", "projections")}


def hdf5(folder: Path) -> dict[str, dict]:
    rng = np.random.default_rng(0)
    geometry = sinogram_files.scan(views=24, detectors=32)
    values = sinogram_files.sinogram(geometry)
    theta = np.rad2deg(geometry.angles_rad)
    sinogram_files.data_exchange(folder / "exchange.h5", values, theta)
    sinogram_files.nxtomo(folder / "nxtomo.nxs", values, theta)
    fan = sinogram_files.scan("fan", views=24, span=360, detectors=32)
    sinogram_files.fips_v73(folder / "fips.mat", sinogram_files.sinogram(fan), fan, "CtData")
    coils = rng.normal(size=(2, 2, 32, SIZE)) + 1j * rng.normal(size=(2, 2, 32, SIZE))
    xml = kspace_files.header_xml((32, SIZE, 1), (SIZE, SIZE, 1))
    kspace_files.write_fastmri(folder / "fastmri.h5", coils, xml=xml)
    kspace_files.write_mrd(folder / "mrd.h5", kspace_files.lines_of(coils[0]), xml)
    write_outputs([folder / "run.h5"], make_result("MR"))
    with h5py.File(folder / "plain.h5", "w") as file:
        file.create_dataset("a/image", data=image()[None], chunks=(1, 8, 8), compression="gzip")
    pitch = {"scan_pitch_mm": 1.0}
    return {
        "exchange.h5": pitch,
        "nxtomo.nxs": {},
        "fips.mat": {},
        "fastmri.h5": {},
        "mrd.h5": {},
        "run.h5": {},
        "plain.h5": HU,
    }


def images(folder: Path) -> dict[str, dict]:
    volume, affine = np.stack([image()] * 2, axis=-1), volume_files.oblique((1.3, 1.3, 2.5))
    volume_files.write_nifti(folder / "a.nii", volume, affine)
    volume_files.write_nifti(folder / "b.nii.gz", volume, affine)
    volume_files.write_nrrd(folder / "c.nrrd", volume, affine)
    volume_files.write_nrrd(folder / "d.nrrd", volume, affine, encoding="gzip")
    volume_files.write_nrrd(folder / "e.nhdr", volume, affine, detached="e.raw")
    volume_files.write_metaimage(folder / "f.mha", volume, affine)
    volume_files.write_metaimage(folder / "g.mhd", volume, affine, packed=True, detached="g.zraw")
    Image.fromarray(image().astype(np.uint8)).save(folder / "h.png")
    Image.fromarray(image().astype(np.float32)).save(folder / "i.tif")
    Image.fromarray(image().astype(np.uint8)).save(folder / "j.tif", compression="tiff_lzw")
    names = ["a.nii", "b.nii.gz", "c.nrrd", "d.nrrd", "e.nhdr", "f.mha", "g.mhd", "h.png"]
    return dict.fromkeys([*names, "i.tif", "j.tif"], HU)


def arrays(folder: Path) -> dict[str, dict]:
    np.save(folder / "a.npy", image())
    np.savez(folder / "b.npz", slices=image()[None])
    np.savez_compressed(folder / "c.npz", slices=image()[None])
    scipy.io.savemat(folder / "d.mat", {"slices": image().astype(float)[None]})
    scipy.io.savemat(folder / "e.mat", {"slices": image()[None]}, do_compression=True)
    geometry = sinogram_files.scan("fan", views=24, span=360, detectors=32)
    values = sinogram_files.sinogram(geometry)
    sinogram_files.fips_v5(folder / "f.mat", values, geometry, "CtDataFull")
    told = sinogram_files.told(geometry)
    np.save(folder / "g.npy", values)
    sinogram_files.sidecar(folder / "g.json", **told)
    (folder / "h.raw").write_bytes(values.tobytes())
    sinogram_files.sidecar(folder / "h.json", **told, shape=list(values.shape), dtype="float32")
    stack = sinogram_files.two_rows(values)
    sinogram_files.mrc(folder / "i.mrc", stack, 2)
    sinogram_files.sidecar(folder / "i.json", **told)
    rng = np.random.default_rng(0)
    kspace = (rng.normal(size=(SIZE, SIZE, 1, 2)) + 1j).astype(np.complex64)
    kspace_files.write_cfl(folder / "j", kspace)
    np.save(folder / "k.npy", kspace[:, :, 0, 0])
    names = ["a.npy", "b.npz", "c.npz", "d.mat", "e.mat"]
    measured = {name: {} for name in ("f.mat", "g.npy", "h.raw", "i.mrc", "j.cfl")}
    return dict.fromkeys(names, HU) | measured | {"k.npy": {"kind": "kspace"}}


FAMILIES = {"dicom": dicom, "hdf5": hdf5, "images": images, "arrays": arrays}


def write_family(name: str, folder: Path) -> None:
    options = FAMILIES[name](folder)
    (folder / "options.json").write_text(json.dumps(options))
