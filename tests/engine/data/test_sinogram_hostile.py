"""Broken and hostile sinogram files are refused with a sentence, whatever is wrong with them."""

import contextlib
import io
import json
import struct
import tracemalloc
import zipfile
import zlib

import h5py
import numpy as np
import pytest
import sinogram_files as files
from numpy.lib import format as npy_format

from engine.data.source import open_input
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

SMALL = files.scan("parallel", 12, 180.0, detectors=16)
FAN = files.scan("fan", 12, 360.0, detectors=16)
ANGLES = np.rad2deg(SMALL.angles_rad)
TOLD = {
    "unit": "line-integral",
    "scan_geometry": "parallel",
    "scan_pitch_mm": 1.0,
    "scan_range": 180.0,
    "scan_offset_mm": 0.0,
    "kind": "sinogram",
}


def use(path, **options):
    """Open and read; both may refuse."""
    dataset = open_input(str(path), InputOptions(**options))
    for number in range(min(dataset.count, 2)):
        dataset.read(number)
    return dataset


def write_npy(path):
    np.save(path, files.sinogram(SMALL))


def write_npz(path):
    np.savez_compressed(path, scan=files.sinogram(SMALL))


def write_raw(path):
    files.sinogram(SMALL).tofile(path)
    files.sidecar(path.with_suffix(".json"), shape=[12, 16])


WRITERS = {
    "npy": (write_npy, TOLD),
    "npz": (write_npz, TOLD),
    "raw": (write_raw, TOLD),
    "h5": (
        lambda path: files.data_exchange(path, files.sinogram(SMALL), ANGLES),
        {"scan_pitch_mm": 1.0, "scan_offset_mm": 0.0},
    ),
    "nxs": (
        lambda path: files.nxtomo(path, files.sinogram(SMALL), ANGLES),
        {"scan_offset_mm": 0.0},
    ),
    "mat": (lambda path: files.fips_v5(path, files.sinogram(FAN), FAN, "CtData"), {}),
    "z.mat": (
        lambda path: files.fips_v5(path, files.sinogram(FAN), FAN, "CtData", do_compression=True),
        {},
    ),
    "v73.mat": (lambda path: files.fips_v73(path, files.sinogram(FAN), FAN, "CtData"), {}),
    "mrc": (lambda path: files.mrc(path, files.two_rows(files.sinogram(SMALL)), 2), TOLD),
    "tif": (lambda path: files.tiff_pages(path, files.sinogram(SMALL)[None]), TOLD),
}


@pytest.fixture(params=list(WRITERS))
def written(request, tmp_path):
    write, options = WRITERS[request.param]
    path = tmp_path / f"a.{request.param}"
    write(path)
    return path, options


def test_truncated_files_are_refused(written):
    path, options = written
    content = path.read_bytes()
    assert use(path, **options).geometry.views == 12
    for part in (0.0, 0.1, 0.5, 0.9):
        path.write_bytes(content[: int(part * len(content))])
        with pytest.raises(RequestError):
            use(path, **options)


def test_mutated_files_open_or_are_refused(written):
    path, options = written
    content = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(15):
        changed = bytearray(content)
        # mostly in the first bytes, where the headers are
        reach = len(content) if random.random() < 0.4 else min(len(content), 1200)
        for place in random.integers(0, reach, random.integers(1, 6)):
            changed[place] = random.choice([0, 255, 128, random.integers(256)])
        path.write_bytes(changed)
        with contextlib.suppress(RequestError):
            use(path, **options)


# -- NumPy ---------------------------------------------------------------------------------------


def test_pickles_are_never_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "executed"), "w"))

    np.save(tmp_path / "a.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", scan=np.array([[Trap()]], dtype=object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(RequestError):
            use(tmp_path / name, **TOLD)
    (tmp_path / "b.npy").write_bytes((tmp_path / "a.npz").read_bytes())
    with pytest.raises(RequestError):
        use(tmp_path / "b.npy", **TOLD)
    assert not (tmp_path / "executed").exists()


def header(shape):
    stream = io.BytesIO()
    npy_format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()


@pytest.mark.parametrize("shape", [(1 << 40, 1 << 20), (1 << 20, 1 << 14), (-1, 4), (0, 5)])
def test_absurd_shapes_allocate_nothing(tmp_path, shape):
    content = header(shape) + bytes(1000)
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("scan.npy", content)
    files.sidecar(tmp_path / "a.json", shape=[max(n, 1) for n in shape][:2])
    (tmp_path / "a.raw").write_bytes(bytes(1000))
    tracemalloc.start()
    for name in ("a.npy", "a.npz", "a.raw"):
        with pytest.raises(RequestError):
            use(tmp_path / name, **TOLD)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def test_an_npz_that_unpacks_to_more_than_it_may_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("scan.npy", header((200, 1 << 20)) + bytes(1 << 20))
    with pytest.raises(RequestError, match="GiB"):
        use(tmp_path / "a.npz", **TOLD)


# -- MATLAB --------------------------------------------------------------------------------------


def test_absurd_mat_dimensions_are_refused(tmp_path):
    path = files.fips_v5(tmp_path / "a.mat", files.sinogram(FAN), FAN, "CtData")
    content = path.read_bytes()
    dims = struct.pack("<2i", 12, 16)
    assert dims in content
    for rows, columns in ((1 << 30, 1 << 30), (-5, 16), (12, 17), (0, 16)):
        path.write_bytes(content.replace(dims, struct.pack("<2i", rows, columns)))
        with pytest.raises(RequestError):
            use(path)
    struct_dims = content.index(struct.pack("<2i", 1, 1))
    bad = bytearray(content)
    bad[struct_dims : struct_dims + 8] = struct.pack("<2i", 1 << 15, 1 << 15)
    path.write_bytes(bad)
    with pytest.raises(RequestError, match="absurdly"):
        use(path)


def test_a_mat_bomb_stops_at_the_limit(tmp_path):
    packed = zlib.compress(struct.pack("<2I", 14, 200 << 20) + bytes(200 << 20))
    tag = struct.pack("<2I", 15, len(packed))
    (tmp_path / "a.mat").write_bytes(b"MATLAB 5.0".ljust(124) + b"\0\x01IM" + tag + packed)
    with pytest.raises(RequestError, match="unpacked, it would need 200 MiB"):
        use(tmp_path / "a.mat")


# -- HDF5 ----------------------------------------------------------------------------------------


def test_links_out_of_the_file_are_refused(tmp_path):
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["data"] = np.ones((4, 2, 8))
    path = files.data_exchange(tmp_path / "a.h5", files.sinogram(SMALL), ANGLES)
    for link in (h5py.ExternalLink("secret.h5", "/data"), h5py.SoftLink("/exchange/theta")):
        with h5py.File(path, "a") as file:
            del file["exchange/data"]
            file["exchange/data"] = link
        with pytest.raises(RequestError, match="refused"):
            use(path, scan_pitch_mm=1.0, scan_offset_mm=0.0)
    layout = h5py.VirtualLayout((4, 2, 8), "f8")
    layout[:] = h5py.VirtualSource(secret, "data", (4, 2, 8))
    with h5py.File(path, "a") as file:
        del file["exchange/data"]
        file["exchange"].create_virtual_dataset("data", layout)
    with pytest.raises(RequestError, match="other files"):
        use(path, scan_pitch_mm=1.0, scan_offset_mm=0.0)


def test_data_stored_outside_the_file_is_refused(tmp_path):
    (tmp_path / "secret.bin").write_bytes(bytes(512))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("scan", (8, 8), "f8", external=[(str(tmp_path / "secret.bin"), 0, 512)])
        file["away"] = h5py.ExternalLink("other.h5", "/x")
    for name in ("scan", "away"):
        with pytest.raises(RequestError, match="refused"):
            use(tmp_path / "a.h5", dataset=name, **TOLD)


def test_a_huge_empty_dataset_is_not_read(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("scan", (1 << 22, 1 << 14), "f4", chunks=(64, 64))
    with pytest.raises(RequestError, match="too large"):
        use(tmp_path / "a.h5", **TOLD)


# -- MRC and sidecars -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "value"), [(0, -3), (2, 1 << 30), (3, 4), (23, 1 << 30), (23, -8)]
)
def test_mrc_headers_are_compared_with_the_file(tmp_path, word, value):
    path = files.mrc(tmp_path / "a.mrc", np.ones((3, 4, 5)), 2)
    content = bytearray(path.read_bytes())
    content[4 * word : 4 * word + 4] = struct.pack("<i", value)
    path.write_bytes(content)
    with pytest.raises(RequestError, match=r"a\.mrc"):
        use(path, **TOLD)


@pytest.mark.parametrize("text", ["1 2 x", "1 2", "nan nan nan", ""])
def test_tilt_files_must_fit(tmp_path, text):
    files.mrc(tmp_path / "a.mrc", np.ones((3, 4, 5)), 2)
    (tmp_path / "a.tlt").write_text(text)
    with pytest.raises(RequestError):
        use(tmp_path / "a.mrc", unit="line-integral")


SIDECARS = [
    b"{",
    b"[1]",
    b'{"scan_pitch_mm": NaN}',
    b'{"scan_pitch_mm": 1' + b"0" * 400 + b"}",
    b'{"scan_pitch_mm": "wide"}',
    b'{"dataset": 5}',
    b'{"angles_deg": [1, "x"]}',
    b'{"angles_deg": 5}',
    b'{"angles_deg": [1e999]}',
    b'{"flat": "../secret.npy", "unit": "counts"}',
    b'{"flat": "link.npy", "unit": "counts"}',
    b'{"flat": [1, 2, 3], "unit": "counts"}',
    b'{"scan_picth_mm": 1.0, "unit": "counts"}',
    b"[" * 100_000,
    b'{"unit": "\xff\xfe"}',
]


@pytest.mark.parametrize("content", SIDECARS, ids=range(len(SIDECARS)))
def test_wrong_sidecars_are_refused(tmp_path, content):
    folder = tmp_path / "in"
    folder.mkdir()
    np.save(tmp_path / "secret.npy", np.ones(16))
    (folder / "link.npy").symlink_to(tmp_path / "secret.npy")
    write_npy(folder / "a.npy")
    (folder / "a.json").write_bytes(content)
    told = {k: v for k, v in TOLD.items() if k not in ("unit", "scan_pitch_mm")}
    with pytest.raises(RequestError):
        use(folder / "a.npy", **told)


def test_a_json_of_another_program_is_no_sidecar(tmp_path):
    write_npy(tmp_path / "a.npy")
    (tmp_path / "a.json").write_text(json.dumps({"format": "dualscope-run", "job": {}}))
    assert use(tmp_path / "a.npy", **TOLD).count == 1
