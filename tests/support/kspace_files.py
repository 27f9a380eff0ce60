"""Independent writers of k-space files, from the published layouts; nothing of the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np


def fft2(image):
    """Textbook centred orthonormal transform of the last two axes, as matrices."""
    return _matrix(image.shape[-2]) @ image @ _matrix(image.shape[-1]).T


def ifft2(kspace):
    return _matrix(kspace.shape[-2]).conj() @ kspace @ _matrix(kspace.shape[-1]).conj().T


def _matrix(n):
    index = np.arange(n) - n // 2
    return np.exp(-2j * np.pi * np.outer(index, index) / n) / np.sqrt(n)


def oversampled(image, factor=2):
    """The image in a field of view ``factor`` times as long along the readout (axis -2)."""
    rows = image.shape[-2]
    before = factor * rows // 2 - rows // 2
    margins = [(0, 0)] * (image.ndim - 2) + [(before, factor * rows - rows - before), (0, 0)]
    return np.pad(image, margins)


def header_xml(
    encoded=(64, 64, 1),
    recon=(64, 64, 1),
    encoded_fov=(200.0, 200.0, 5.0),
    recon_fov=(200.0, 200.0, 5.0),
    limits=None,
    limits_2=None,
    trajectory="cartesian",
    extra="",
):
    def space(name, matrix, fov):
        axes = list(zip("xyz", matrix, strict=True))
        fovs = list(zip("xyz", fov, strict=True))
        return (
            f"<{name}><matrixSize>{''.join(f'<{a}>{n}</{a}>' for a, n in axes)}</matrixSize>"
            f"<fieldOfView_mm>{''.join(f'<{a}>{n}</{a}>' for a, n in fovs)}</fieldOfView_mm>"
            f"</{name}>"
        )

    def limit(name, values):
        if values is None:
            return ""
        low, high, centre = values
        return (
            f"<{name}><minimum>{low}</minimum><maximum>{high}</maximum>"
            f"<center>{centre}</center></{name}>"
        )

    limits = limits or (0, encoded[1] - 1, encoded[1] // 2)
    return (
        '<?xml version="1.0"?><ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">'
        "<experimentalConditions><H1resonanceFrequency_Hz>63500000</H1resonanceFrequency_Hz>"
        f"</experimentalConditions>{extra}<encoding>{space('encodedSpace', encoded, encoded_fov)}"
        f"{space('reconSpace', recon, recon_fov)}<encodingLimits>"
        f"{limit('kspace_encoding_step_1', limits)}{limit('kspace_encoding_step_2', limits_2)}"
        f"</encodingLimits><trajectory>{trajectory}</trajectory></encoding></ismrmrdHeader>"
    )


def write_fastmri(path: Path, kspace, mask=None, xml=None, **attributes):
    with h5py.File(path, "w") as file:
        file["kspace"] = kspace.astype(np.complex64)
        if mask is not None:
            file["mask"] = mask
        if xml is not None:
            file["ismrmrd_header"] = xml
        file.attrs.update({"acquisition": "AXT2", "patient_id": "SECRET-17", **attributes})
    return path


def write_cfl(base: Path, array):
    """``array`` in BART's dimensions, [read, phase, partition, coil, ...]."""
    header = base.with_name(base.name + ".hdr")
    header.write_text("# Dimensions\n" + " ".join(str(n) for n in array.shape) + " \n# Command\n")
    values = base.with_name(base.name + ".cfl")
    values.write_bytes(np.asarray(array, "<c8").tobytes(order="F"))
    return values


COUNTERS = ("kspace_encode_step_1", "kspace_encode_step_2", "average", "slice", "contrast")
COUNTERS += ("phase", "repetition", "set", "segment")
HEAD = np.dtype(
    [
        ("version", "<u2"),
        ("flags", "<u8"),
        ("measurement_uid", "<u4"),
        ("scan_counter", "<u4"),
        ("acquisition_time_stamp", "<u4"),
        ("physiology_time_stamp", "<u4", (3,)),
        ("number_of_samples", "<u2"),
        ("available_channels", "<u2"),
        ("active_channels", "<u2"),
        ("channel_mask", "<u8", (16,)),
        ("discard_pre", "<u2"),
        ("discard_post", "<u2"),
        ("center_sample", "<u2"),
        ("encoding_space_ref", "<u2"),
        ("trajectory_dimensions", "<u2"),
        ("sample_time_us", "<f4"),
        ("position", "<f4", (3,)),
        ("read_dir", "<f4", (3,)),
        ("phase_dir", "<f4", (3,)),
        ("slice_dir", "<f4", (3,)),
        ("patient_table_position", "<f4", (3,)),
        ("idx", [(name, "<u2") for name in COUNTERS] + [("user", "<u2", (8,))]),
        ("user_int", "<i4", (8,)),
        ("user_float", "<f4", (8,)),
    ]
)
assert HEAD.itemsize == 340
ACQUISITION = np.dtype(
    [("head", HEAD), ("traj", h5py.vlen_dtype("<f4")), ("data", h5py.vlen_dtype("<f4"))]
)


@dataclass
class Line:
    """One readout: ``samples`` [coils, n] in the order they were acquired."""

    samples: np.ndarray
    flags: tuple[int, ...] = ()
    counters: dict[str, int] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)


def lines_of(kspace, *, steps=None, first=0, **counters):
    """Forward lines of [coils, read, phase]; ``steps`` are the columns, numbered from ``first``."""
    columns = range(kspace.shape[-1]) if steps is None else steps
    return [
        Line(kspace[:, :, y], (), {"kspace_encode_step_1": y - first, **counters}) for y in columns
    ]


def write_mrd(path: Path, lines, xml, group="dataset", mode="w"):
    records = np.zeros(len(lines), ACQUISITION)
    for record, line in zip(records, lines, strict=True):
        head, (coils, n) = record["head"], line.samples.shape
        head["version"], head["number_of_samples"] = 1, n
        head["active_channels"] = head["available_channels"] = coils
        head["center_sample"], head["sample_time_us"] = n // 2, 5.0
        head["read_dir"], head["phase_dir"], head["slice_dir"] = np.eye(3)
        head["flags"] = sum(1 << (flag - 1) for flag in line.flags)
        for name, value in line.values.items():
            head[name] = value
        for name, value in line.counters.items():
            head["idx"][name] = value
        pairs = np.stack((line.samples.real, line.samples.imag), axis=-1)
        record["data"] = pairs.astype("<f4").reshape(-1)
        record["traj"] = np.zeros(0, "<f4")
    with h5py.File(path, mode) as file:
        place = file.create_group(group)
        place.create_dataset("xml", data=[xml.encode()], dtype=h5py.string_dtype())
        place.create_dataset("data", data=records, maxshape=(None,), chunks=True)
    return path
