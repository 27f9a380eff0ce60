"""Files made to be expensive: refused, or read where asked, with 1 GB and 5 s of the processor.

Each test writes its file and opens it in a process with these limits (``bounded``).
"""

import io
import os
import struct
import zipfile
import zlib

import bounded
import h5py
import numpy as np
import pytest
import torch
from bounded import needs_limits
from dicom_files import picture, write_encapsulated, write_slice
from diffusers_writer import write_pipeline
from numpy.lib import format as npy
from pydicom import uid
from pydicom.encaps import get_frame

from engine.data.source import open_input
from engine.files.checkpoint import Checkpoint
from engine.priors.importing import import_checkpoint
from engine.priors.safetensors_file import load_prior_file
from engine.spec.input_options import InputOptions

pytestmark = needs_limits
HU = {"unit": "hu", "pixel_mm": 1.0}
GIB = 1 << 30


def opened(path, read=True, **options):
    """What opening does, and one slice of it."""
    dataset = open_input(str(path), InputOptions.from_dict(options))
    return f"{len(dataset)} slices {dataset.preview(len(dataset) // 2).shape}" if read else ""


def refused(action, sentence):
    found = bounded.run(action)
    print(found)
    assert found.kind in ("RequestError", "DescriptionNeeded", "DualscopeError"), str(found)
    assert sentence in found.sentence, str(found)
    assert "\n" not in found.sentence
    return found


def read(action):
    found = bounded.run(action)
    print(found)
    assert not found.kind, str(found)
    assert not found.signal, str(found)
    return found


def sparse(path, size, start=b""):
    path.write_bytes(start)
    os.truncate(path, size)
    return path


def npy_header(shape, dtype="<f4", fortran=False):
    stream = io.BytesIO()
    npy.write_array_header_1_0(
        stream, {"descr": dtype, "fortran_order": fortran, "shape": tuple(shape)}
    )
    return stream.getvalue()


# checkpoints that are imported


@pytest.fixture
def pipeline(tmp_path):
    return write_pipeline(tmp_path / "pipeline", {"x": torch.zeros(4)})


@pytest.mark.parametrize(
    "name",
    [
        "unet/config.json",
        "unet/diffusion_pytorch_model.safetensors",
        "scheduler/scheduler_config.json",
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "zeros", "sparse"])
def test_a_pipe_a_device_or_a_hole_in_an_imported_folder_is_refused(pipeline, name, kind):
    path = pipeline / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "zeros":
        path.symlink_to("/dev/zero")
    else:
        sparse(path, 3 * GIB)
    refused(lambda: import_checkpoint(pipeline, pipeline.parent / "o.safetensors"), "pipeline")


@pytest.mark.parametrize("kind", ["pipe", "zeros", "sparse"])
def test_a_pipe_a_device_or_a_hole_as_configuration_or_checkpoint_is_refused(
    tmp_path, pipeline, kind
):
    path = tmp_path / "it"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "zeros":
        path.symlink_to("/dev/zero")
    else:
        sparse(path, 3 * GIB, (1000).to_bytes(8, "little") + b"{")
    out = tmp_path / "o.safetensors"
    refused(lambda: import_checkpoint(pipeline, out, config=path), "it")
    refused(lambda: import_checkpoint(path, out), "it")
    refused(lambda: load_prior_file(path), "it")


# arrays


@pytest.mark.parametrize("version", [1, 2])
def test_an_npy_header_that_claims_gigabytes_is_not_read(tmp_path, version):
    start = b"\x93NUMPY" + bytes((version, 0)) + b"\xff\xff\xff\xff"[: 2 * version]
    path = sparse(tmp_path / "a.npy", 7 * GIB, start)
    refused(lambda: opened(path, **HU), "cannot be read as a NumPy array")


def test_an_npz_whose_header_claims_gigabytes_is_not_unpacked(tmp_path):
    path = tmp_path / "a.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("scan.npy", "w", force_zip64=True) as stream,
    ):
        stream.write(b"\x93NUMPY\x02\x00\xff\xff\xff\xff")
        for _ in range(256):
            stream.write(bytes(1 << 20))
    refused(lambda: opened(path, **HU), "damaged")


def test_a_stack_of_a_million_slices_that_are_not_there_is_refused(tmp_path):
    header = npy_header((1_000_000, 64, 64))
    path = sparse(tmp_path / "a.npy", len(header) + 1_000_000 * 64 * 64 * 4, header)
    refused(lambda: opened(path, **HU), "1000000 slices")


def test_the_hash_of_a_file_that_is_not_there_is_refused(tmp_path):
    header = npy_header((40_000, 256, 256))
    path = sparse(tmp_path / "a.npy", len(header) + 40_000 * 256 * 256 * 4, header)
    read(lambda: opened(path, **HU))
    dataset = open_input(str(path), InputOptions.from_dict(HU))
    refused(dataset.sha256, "DUALSCOPE_MAX_RATIO")


def zeros_npz(path, count):
    """An archive of ``count`` MiB of zeros in slices of 1 MiB."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("scan.npy", "w", force_zip64=True) as stream,
    ):
        stream.write(npy_header((count, 512, 512)))
        for _ in range(count):
            stream.write(bytes(1 << 20))
    return path


@pytest.mark.parametrize(("mib", "sentence"), [(1024, ""), (1500, "DUALSCOPE_MAX_EXPANDED_MIB")])
def test_a_gigabyte_in_an_npz_is_unpacked_by_slices_or_refused(tmp_path, mib, sentence):
    path = zeros_npz(tmp_path / "a.npz", mib)
    if sentence:
        refused(lambda: opened(path, **HU), sentence)
    else:
        assert "1024 slices (512, 512)" in read(lambda: opened(path, **HU)).value


def test_a_gigabyte_in_a_nii_gz_is_unpacked_by_slices(tmp_path):
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, 512, 512, 1000, 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, 16, 32)  # float32
    struct.pack_into("<f", header, 108, 352.0)
    header[344:347] = b"n+1"
    packer = zlib.compressobj(1, wbits=31)
    parts = [packer.compress(bytes(header))]
    parts += [packer.compress(bytes(1 << 20)) for _ in range(1000)]
    path = tmp_path / "a.nii.gz"
    path.write_bytes(b"".join(parts) + packer.flush())
    assert "1000 slices" in read(lambda: opened(path, modality="ct", unit="hu")).value


# HDF5


def links(path, count, cycle):
    """Groups that all lead to one another, by their names or by each other's."""
    with h5py.File(path, "w") as file:
        groups = [file.create_group(f"g{n}") for n in range(count)]
        for n, group in enumerate(groups):
            for m, other in enumerate(groups):
                if cycle or m > n:
                    group[f"to{m}"] = other
        groups[-1]["image"] = np.zeros((32, 32), np.float32)
    return path


@pytest.mark.parametrize("cycle", [False, True])
@pytest.mark.parametrize("name", ["a.h5", "a.mat"])
def test_fans_and_cycles_of_hard_links_end(tmp_path, name, cycle):
    path = links(tmp_path / name, 60, cycle)
    assert "(32, 32)" in read(lambda: opened(path, **HU)).value


@pytest.mark.parametrize("cycle", [False, True])
def test_matlab_structs_that_lead_to_one_another_are_refused(tmp_path, cycle):
    path = links(tmp_path / "a.mat", 40, cycle)
    with h5py.File(path, "r+") as file:
        file["g0"].attrs["MATLAB_class"] = b"struct"
    refused(lambda: opened(path, **HU), "a.mat")


def test_a_chunk_that_unpacks_to_more_than_the_file_supports_is_refused(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        image = file.create_dataset(
            "image", (256, 512, 512), "f4", chunks=(256, 512, 512), compression="gzip"
        )
        worker = zlib.compressobj(1)
        parts = [worker.compress(bytes(1 << 20)) for _ in range(256)]
        image.id.write_direct_chunk((0, 0, 0), b"".join(parts) + worker.flush())
    refused(lambda: opened(path, **HU), "stored in pieces that are too large")


def test_many_chunks_for_one_slice_are_refused(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        image = file.create_dataset(
            "image", (4096, 256, 512), "f4", chunks=(64, 256, 512), compression="gzip"
        )
        packed = zlib.compress(bytes(64 << 19), 1)
        for n in range(64):
            image.id.write_direct_chunk((64 * n, 0, 0), packed)
    refused(lambda: opened(path, **HU, axes="row,slice,column"), "to be unpacked")


# MATLAB 5


def mat_element(kind, body):
    return struct.pack("<2I", kind, len(body)) + body + bytes(-len(body) % 8)


def mat_array(count, name=b"a", is_complex=False, stored=2):
    """[512, count / 512] doubles, stored as zeros of one byte."""
    flags = mat_element(6, struct.pack("<2I", 6 | (0x800 if is_complex else 0), 0))
    dims = mat_element(5, struct.pack("<2i", 512, count // 512))
    parts = [mat_element(stored, bytes(count))] * (1 + is_complex)
    return mat_element(14, flags + dims + mat_element(1, name) + b"".join(parts))


def mat_file(path, *variables):
    packed = [mat_element(15, zlib.compress(one, 1)) for one in variables]
    # a compressed element is not padded
    packed = [one[: 8 + struct.unpack("<2I", one[:8])[1]] for one in packed]
    path.write_bytes(b"MATLAB 5.0".ljust(124) + b"\0\x01IM" + b"".join(packed))
    return path


@pytest.mark.parametrize(
    "arrays",
    [
        [(100 << 20, True)],  # 100 MB that become 1.6 GB of complex doubles
        [(400 << 20, False)],
        [(30 << 20, False)] * 20,
        [(12 << 20, True)] * 20,
    ],
)
def test_compressed_variables_that_grow_beyond_measure_are_refused(tmp_path, arrays):
    variables = [
        mat_array(count, b"a%02d" % n, is_complex) for n, (count, is_complex) in enumerate(arrays)
    ]
    path = mat_file(tmp_path / "a.mat", *variables)
    refused(lambda: opened(path, **HU), "DUALSCOPE_MAX_RATIO")


def test_a_sparse_matlab_file_is_refused(tmp_path):
    head = b"MATLAB 5.0".ljust(124) + b"\0\x01IM" + struct.pack("<2I", 14, 0xFFFFFF00)
    path = sparse(tmp_path / "a.mat", 7 * GIB, head)
    refused(lambda: opened(path, **HU), "DUALSCOPE_MAX_RATIO")


# BART and checkpoints


@pytest.mark.parametrize("dims", ["1 4096 4096 48", "4096 4096 48", "128 128 1024 96"])
def test_a_sparse_cfl_that_must_be_read_whole_is_refused(tmp_path, dims):
    (tmp_path / "a.hdr").write_text(f"# Dimensions\n{dims}\n")
    path = sparse(tmp_path / "a.cfl", 8 * int(np.prod([int(n) for n in dims.split()])))
    refused(lambda: opened(path), "DUALSCOPE_MAX_R")


def test_a_slice_of_a_sparse_cfl_is_read_alone(tmp_path):
    (tmp_path / "a.hdr").write_text("# Dimensions\n256 256 1 8 1 1 1 1 1 1 1 1 1 3000\n")
    path = sparse(tmp_path / "a.cfl", 8 * 256 * 256 * 8 * 3000)  # 12.6 GB
    with path.open("r+b") as stream:
        stream.seek(8 * 256 * 256 * 8 * 1500)
        stream.write(np.ones(2 * 256 * 256 * 8, "<f4").tobytes())
    assert "3000 slices (256, 256)" in read(lambda: opened(path)).value


def test_a_sparse_checkpoint_is_refused(tmp_path):
    path = sparse(tmp_path / "a.checkpoint.safetensors", 12 * GIB, (100).to_bytes(8, "little"))
    refused(lambda: Checkpoint.read(path), "DUALSCOPE_MAX_READ_MIB")
    os.truncate(path, 6 * GIB)
    refused(lambda: Checkpoint.read(path), "DUALSCOPE_MAX_RATIO")


# DICOM


def jpeg2000(tmp_path, side=32_000, boxed=False, **changed):
    """A slice whose codestream says that it is so many pixels wide and high."""
    path = write_slice(tmp_path / "good.dcm", syntax=uid.JPEG2000Lossless)
    import pydicom

    frame = bytearray(get_frame(pydicom.dcmread(path).PixelData, 0, number_of_frames=1))
    at = frame.index(b"\xff\x4f\xff\x51")
    good = bytes(frame)
    struct.pack_into(">2I", frame, at + 8, side, side)
    struct.pack_into(">2I", frame, at + 24, side, side)
    if boxed:  # a box before it holds a codestream of the right size
        decoy = struct.pack(">I4s", 8 + len(good), b"xml ") + good
        box = struct.pack(">I4s", 8 + len(frame), b"jp2c") + bytes(frame)
        signature = struct.pack(">I4sI", 12, b"jP  ", 0x0D0A870A)
        frame = bytearray(signature + decoy + box)
    path = write_encapsulated(
        tmp_path / "a.dcm", bytes(frame + b"\0" * (len(frame) % 2)), uid.JPEG2000Lossless
    )
    data = pydicom.dcmread(path)
    data.BitsAllocated, data.BitsStored, data.HighBit = 16, 16, 15
    for name, value in changed.items():
        setattr(data, name, value)
    data.save_as(path)
    return path


def test_a_jpeg_2000_stream_of_another_size_than_the_header_is_refused(tmp_path):
    path = jpeg2000(tmp_path)
    refused(lambda: opened(path), "compressed at another size")


def test_a_jpeg_2000_stream_as_large_as_the_header_says_is_refused(tmp_path):
    path = jpeg2000(tmp_path, Rows=32_000, Columns=32_000)
    refused(lambda: opened(path), "too large")
    path = jpeg2000(tmp_path, 8000, Rows=8000, Columns=8000)
    refused(lambda: open_input(str(path)).read(0), "DUALSCOPE_MAX_RATIO")


def test_a_box_before_a_jpeg_2000_stream_cannot_speak_for_it(tmp_path):
    path = jpeg2000(tmp_path, boxed=True)
    refused(lambda: opened(path), "compressed at another size")


def test_a_deflated_dicom_file_may_not_grow_without_end(tmp_path):
    path = write_slice(tmp_path / "a.dcm", syntax=uid.DeflatedExplicitVRLittleEndian)
    content = path.read_bytes()
    at = 144 + struct.unpack_from("<I", content, 140)[0]  # where the meta header ends
    body = zlib.decompress(content[at:], -zlib.MAX_WBITS)
    packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    parts = [packer.compress(body), *(packer.compress(bytes(1 << 20)) for _ in range(700))]
    path.write_bytes(content[:at] + b"".join(parts) + packer.flush())
    refused(lambda: opened(path), "DUALSCOPE_MAX_RATIO")


def test_a_folder_of_twenty_thousand_files_opens(tmp_path):
    """Honest folders are as large."""
    good = write_slice(
        tmp_path / "0.dcm",
        stored=picture(rows=16, columns=16),
        SOPInstanceUID="1.2.3.100000",
        ImagePositionPatient=[-20.0, -30.0, 100000.0],
    ).read_bytes()
    folder = tmp_path / "series"
    folder.mkdir()
    for n in range(20_000):
        (folder / f"{n}.dcm").write_bytes(good.replace(b"100000", b"%06d" % (100_000 + n)))
    assert "20000 slices" in read(lambda: opened(folder)).value


# honest files of any size


def test_one_slice_of_twenty_gigabytes_is_read_alone(tmp_path):
    """20,000 slices of 1 MiB, of which one is looked at: NumPy, NIfTI and HDF5."""
    header = npy_header((20_000, 512, 512))
    path = sparse(tmp_path / "a.npy", len(header) + 20_000 * (1 << 20), header)
    assert "20000 slices" in read(lambda: opened(path, **HU)).value
    nifti = bytearray(352)
    struct.pack_into("<i", nifti, 0, 348)
    struct.pack_into("<8h", nifti, 40, 3, 512, 512, 20_000, 1, 1, 1, 1)
    struct.pack_into("<2h", nifti, 70, 16, 32)
    struct.pack_into("<f", nifti, 108, 352.0)
    nifti[344:347] = b"n+1"
    path = sparse(tmp_path / "a.nii", 352 + 20_000 * (1 << 20), bytes(nifti))
    assert "20000 slices" in read(lambda: opened(path, modality="ct", unit="hu")).value
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("image", (20_000, 512, 512), "f4")
        file["image"][19_999] = 1.0
    assert path.stat().st_size > 20_000 * (1 << 20)
    assert "20000 slices" in read(lambda: opened(path, **HU)).value


def test_the_limits_are_a_persons_to_set(tmp_path, monkeypatch):
    path = zeros_npz(tmp_path / "a.npz", 3)
    assert opened(path, **HU)
    monkeypatch.setenv("DUALSCOPE_MAX_EXPANDED_MIB", "2")
    refused(lambda: opened(path, **HU), "up to 2.0 MiB are unpacked")
