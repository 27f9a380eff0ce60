"""The XML header of ISMRMRD, which fastMRI files carry too: sizes, limits, trajectory."""

from __future__ import annotations

import math
import re
import struct
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import h5py

from engine.data.kspace.grid import Space
from engine.data.readers.hdf5.records import GlobalHeap, raw_records
from engine.data.readers.hdf5.safe import item, text
from engine.spec.errors import RequestError

MAX_HEADER_BYTES = 1 << 20
MAX_MATRIX = 1 << 14
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Limits:
    """Lowest and highest step of an encoding, and the step at the zero frequency."""

    minimum: int
    maximum: int
    centre: int


@dataclass(frozen=True)
class Encoding:
    encoded: Space
    recon: Space
    step_1: Limits | None
    step_2: Limits | None
    trajectory: str
    calibration_mode: str = ""  # of parallel imaging: embedded, interleaved, separate, external


@dataclass(frozen=True)
class MrdHeader:
    encodings: tuple[Encoding, ...]
    vendor: str
    noise_bandwidth: float  # receiver noise bandwidth relative to the sampled one


def read_header(group: h5py.Group, name: str, path: Path) -> MrdHeader | None:
    """The header stored as the text ``name``, or None when there is none."""
    found = item(group, name)
    if found is None:
        return None
    string = h5py.check_string_dtype(found.dtype) if isinstance(found, h5py.Dataset) else None
    if string is None or found.size is None or not 1 <= found.size <= 64:
        raise RequestError(f"{path}: the header '{name}' is not a text.")
    layout = found.id.get_create_plist().get_layout()
    if string.length is None and found.ndim < 2 and layout != h5py.h5d.COMPACT:
        return parse_header(_heap_text(found, path), path)
    if (string.length or 0) > MAX_HEADER_BYTES:
        raise RequestError(f"{path}: the header '{name}' is longer than any header is.")
    return parse_header(text(group, name) or "", path)


def _heap_text(dataset: h5py.Dataset, path: Path) -> str:
    """The first text of a list of them, as ISMRMRD stores its header."""
    pointer = next(iter(raw_records(dataset, path, 16)))[0].tobytes()
    length, address, index = struct.unpack("<IQI", pointer)
    if length > MAX_HEADER_BYTES:
        raise RequestError(f"{path}: the XML header is longer than any header is.")
    with GlobalHeap(path, dataset.file.userblock_size) as heap:
        return heap.read(address, index, length).decode("utf-8", "replace")


def parse_header(xml: str, path: Path) -> MrdHeader:
    if len(xml) > MAX_HEADER_BYTES:
        raise RequestError(f"{path}: the XML header is longer than any header is.")
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", xml, re.IGNORECASE):
        # Entities can expand without bound or name other files; no real header has them.
        raise RequestError(f"{path}: the XML header defines entities; refused.")
    try:
        root = ElementTree.fromstring(xml.rstrip("\0 \n\r\t"))
        encodings = tuple(_encoding(node) for node in _children(root, "encoding"))
        bandwidth = float(
            _text(root, "acquisitionSystemInformation/relativeReceiverNoiseBandwidth") or 1
        )
    except (ElementTree.ParseError, ValueError, OverflowError, RecursionError) as error:
        raise RequestError(f"{path}: the XML header cannot be understood.") from error
    vendor = _text(root, "acquisitionSystemInformation/systemVendor") or ""
    return MrdHeader(encodings, vendor, bandwidth if 0 < bandwidth <= 1 else 1.0)


def _encoding(node: ElementTree.Element) -> Encoding:
    limits = _child(node, "encodingLimits")
    return Encoding(
        encoded=_space(_child(node, "encodedSpace")),
        recon=_space(_child(node, "reconSpace")),
        step_1=_limits(limits, "kspace_encoding_step_1"),
        step_2=_limits(limits, "kspace_encoding_step_2"),
        trajectory=(_text(node, "trajectory") or "cartesian").lower(),
        calibration_mode=(_text(node, "parallelImaging/calibrationMode") or "").lower()[:20],
    )


def _space(node: ElementTree.Element | None) -> Space:
    if node is None:
        raise ValueError("space missing")
    matrix = [int(_text(node, f"matrixSize/{axis}") or 1) for axis in AXES]
    fov = [float(_text(node, f"fieldOfView_mm/{axis}") or 0) for axis in AXES]
    if not all(1 <= n <= MAX_MATRIX for n in matrix):
        raise ValueError(f"matrix {matrix}")
    if not all(math.isfinite(mm) and mm >= 0 for mm in fov):
        raise ValueError(f"field of view {fov}")
    return Space((matrix[0], matrix[1], matrix[2]), (fov[0], fov[1], fov[2]))


def _limits(node: ElementTree.Element | None, name: str) -> Limits | None:
    found = None if node is None else _child(node, name)
    if found is None:
        return None
    low, high, centre = (int(_text(found, key) or 0) for key in ("minimum", "maximum", "center"))
    if not 0 <= low <= high <= 0xFFFF or not 0 <= centre <= 0xFFFF:
        raise ValueError(f"limits of {name}")
    return Limits(low, high, centre)


def _local(node: ElementTree.Element) -> str:
    """The tag without its namespace, which versions of the format spell differently."""
    return node.tag.rsplit("}", 1)[-1]


def _children(node: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [child for child in node if _local(child) == name]


def _child(node: ElementTree.Element, name: str) -> ElementTree.Element | None:
    found = _children(node, name)
    return found[0] if found else None


def _text(node: ElementTree.Element, path: str) -> str | None:
    here: ElementTree.Element | None = node
    for name in path.split("/"):
        here = None if here is None else _child(here, name)
    return None if here is None or here.text is None else here.text.strip() or None
