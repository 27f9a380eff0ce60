"""What the fuzzers feed: ``use(content)`` reads or refuses in a sentence; seeds are good inputs.

The first byte of a seed of ``readers`` tells which kind of file the rest is.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HU = {"unit": "hu"}
KINDS = (
    *((suffix, HU) for suffix in (".nii", ".nii.gz", ".nrrd", ".mha", ".png", ".tif")),
    *((suffix, HU) for suffix in (".npy", ".npz", ".mat")),
    (".dcm", {}),
    (".npy", {"kind": "kspace"}),
)
KEY, PARCEL = bytes(32), b"a parcel"


@dataclass(frozen=True)
class Target:
    use: Callable[[bytes, Path], None]  # content, and a folder for files
    seeds: Callable[[Path], Iterator[bytes]]


def _read(content: bytes, folder: Path) -> None:
    from fuzzing import open_fully

    suffix, options = KINDS[content[0] % len(KINDS)] if content else KINDS[0]
    path = folder / f"x{suffix}"
    path.write_bytes(content[1:])
    open_fully(path, options)


def _reader_seeds(folder: Path) -> Iterator[bytes]:
    from fuzz_seeds import arrays, dicom, images

    for family in (arrays, images, dicom):
        place = folder / family.__name__
        place.mkdir()
        for name, options in family(place).items():
            kind = ("".join(Path(name).suffixes), options)
            if kind in KINDS and (place / name).is_file():
                yield bytes([KINDS.index(kind)]) + (place / name).read_bytes()


def _import(name: str) -> Callable[[bytes, Path], None]:
    def use(content: bytes, folder: Path) -> None:
        from engine.priors.importing import open_checkpoint

        path = folder / name
        path.write_bytes(content)
        open_checkpoint(path, {})

    return use


def _pickle_seeds(folder: Path) -> Iterator[bytes]:
    import fuzz_files

    yield fuzz_files.snapshot(folder)


def _archive_seeds(folder: Path) -> Iterator[bytes]:
    import fuzz_files

    yield fuzz_files.torch_archive(folder)


def _safetensors(content: bytes, folder: Path) -> None:
    from engine.files.checkpoint import Checkpoint
    from engine.priors.safetensors_file import load_prior_file
    from engine.spec.errors import RequestError

    path = folder / "x.safetensors"
    path.write_bytes(content)
    try:
        load_prior_file(path)
    except RequestError:
        Checkpoint.read(path)


def _safetensors_seeds(folder: Path) -> Iterator[bytes]:
    import fuzz_files
    import torch

    from engine.files.checkpoint import Checkpoint

    yield fuzz_files.prior(folder)
    path, image = folder / "x.safetensors", torch.zeros(1, 1, 4, 4)
    Checkpoint(2, {"u": image}, image, [torch.zeros(8, dtype=torch.uint8)]).write(path)
    yield path.read_bytes()


def _record(content: bytes, folder: Path) -> None:
    from engine.files.record import RunRecord

    path = folder / "x.json"
    path.write_bytes(content)
    RunRecord.read(path)


def _record_seeds(folder: Path) -> Iterator[bytes]:
    from engine.files.record import RunRecord

    RunRecord(job={"input": "x.npy", "solver": "fbp"}).write(folder / "x.json")
    yield (folder / "x.json").read_bytes()


def _mrd(content: bytes, folder: Path) -> None:
    from engine.data.readers.kspace.mrd_header import parse_header

    parse_header(content.decode("utf-8", "replace"), folder / "x.h5")


def _mrd_seeds(folder: Path) -> Iterator[bytes]:
    import kspace_files

    yield kspace_files.header_xml((32, 24, 1), (24, 24, 1)).encode()


def _answer(content: bytes, folder: Path) -> None:
    """As a rogue worker may seal it."""
    import hmac

    from engine.spec.errors import RequestError
    from engine.workflows.cluster.answers import unpack_answer, unpack_facts
    from engine.workflows.volume.slice_file import unpack_slice

    sha256 = hashlib.sha256(PARCEL).digest()
    seal = hmac.digest(KEY, sha256 + content, hashlib.sha256)
    unpack_facts(content)
    try:
        _, parts = unpack_answer(content + seal, KEY, sha256)
        for part in parts:
            unpack_slice(part, 0, (1, 4, 4))
    except ValueError as error:
        raise RequestError("refused") from error


def _answer_seeds(folder: Path) -> Iterator[bytes]:
    import torch

    from engine.physics.units import IntensityMap
    from engine.runs.run import image_sha256
    from engine.workflows.cluster.answers import SLICES, pack_answer
    from engine.workflows.volume.compute import SliceResult
    from engine.workflows.volume.slice_file import pack_slice

    image = torch.zeros(1, 4, 4)
    result = SliceResult(0, image, IntensityMap("hu", 1000.0), image_sha256(image[None]))
    yield pack_answer(SLICES, [pack_slice(result)], KEY, PARCEL)[:-32]


TARGETS = {
    "readers": Target(_read, _reader_seeds),
    "pickles": Target(_import("x.pkl"), _pickle_seeds),
    "archives": Target(_import("x.pt"), _archive_seeds),
    "safetensors": Target(_safetensors, _safetensors_seeds),
    "records": Target(_record, _record_seeds),
    "mrd": Target(_mrd, _mrd_seeds),
    "answers": Target(_answer, _answer_seeds),
}


def trial(target: Target) -> Callable[[bytes], None]:
    """One input, in a folder of its own; anything but a refusal in one sentence is a finding."""
    from engine.spec.errors import DualscopeError

    def one(content: bytes) -> None:
        folder = Path(tempfile.mkdtemp(prefix="dualscope-fuzz-"))
        try:
            target.use(content, folder)
        except DualscopeError as error:
            if not str(error).strip() or "\n" in str(error).strip():
                raise AssertionError(f"not one sentence: {error!r}") from error
        finally:
            shutil.rmtree(folder)

    return one
