"""Cartesian sampling masks: which phase-encode lines of k-space were measured.

The phase-encode axis is the last image axis (W). Papers that say "R = 6, equispaced" mean
different line sets, so the mask itself, not its name, is what a run record keeps.
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from engine.spec.errors import RequestError

# A mask read back from a record may not unpack to more than this many points.
MAX_POINTS = 1 << 26


@dataclass(frozen=True, eq=False)
class SamplingMask:
    """The measured part of k-space.

    Attributes
    ----------
    sampled : bool array
        ``(W,)`` lines along the last axis, or ``(H, W)`` for a given two-dimensional mask.
    name : str
        The rule that made it: one of `MASK_NAMES`.
    acceleration : float
        What was asked for; `true_acceleration` is what the lines amount to.
    acs_lines : int
        Width of the fully sampled block around the centre of k-space.
    offset : int
        First line of the regular pattern.
    seed : int or None
        Seed of a random mask.
    """

    sampled: NDArray[np.bool_]
    name: str
    acceleration: float
    acs_lines: int = 0
    offset: int = 0
    seed: int | None = None

    def __post_init__(self) -> None:
        sampled = np.array(self.sampled, dtype=bool)
        if sampled.ndim not in (1, 2) or sampled.size == 0:
            raise RequestError(
                f"A sampling mask has one or two axes, not the shape {sampled.shape}."
            )
        if not sampled.any():
            raise RequestError("The sampling mask selects no k-space line at all.")
        sampled.setflags(write=False)
        object.__setattr__(self, "sampled", sampled)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SamplingMask) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.sampled.shape, self.sampled.tobytes()))

    @property
    def width(self) -> int:
        """Number of phase-encode lines, measured or not."""
        return int(self.sampled.shape[-1])

    @property
    def true_acceleration(self) -> float:
        """All points of k-space divided by the measured ones."""
        return self.sampled.size / int(self.sampled.sum())

    def to_tensor(self, device: torch.device | str = "cpu") -> Tensor:
        """A bool tensor ``[1, 1, 1, W]`` or ``[1, 1, H, W]`` that multiplies k-space."""
        rows = self.sampled.reshape(-1, self.width)
        return torch.from_numpy(rows.copy())[None, None].to(device)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, with lines as ranges (``"0,6,147-171"``) and 2-D masks as packed bits."""
        record: dict[str, Any] = {
            "name": self.name,
            "acceleration": float(self.acceleration),
            "true_acceleration": self.true_acceleration,
            "acs_lines": int(self.acs_lines),
            "offset": int(self.offset),
            "seed": self.seed,
            "shape": list(self.sampled.shape),
        }
        if self.sampled.ndim == 1:
            record["lines"] = _ranges(self.sampled)
        else:
            packed = zlib.compress(np.packbits(self.sampled).tobytes(), 9)
            record["packed"] = base64.b64encode(packed).decode("ascii")
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> SamplingMask:
        """The inverse of `to_dict`; refuses a record that does not describe a mask."""
        try:
            shape = tuple(int(n) for n in record["shape"])
            if len(shape) not in (1, 2) or min(shape) < 1 or math.prod(shape) > MAX_POINTS:
                raise ValueError(f"shape {shape}")
            unpack = _from_ranges if len(shape) == 1 else _from_packed
            seed = record.get("seed")
            return cls(
                sampled=unpack(record["lines" if len(shape) == 1 else "packed"], shape),
                name=str(record["name"]),
                acceleration=float(record["acceleration"]),
                acs_lines=int(record.get("acs_lines", 0)),
                offset=int(record.get("offset", 0)),
                seed=None if seed is None else int(seed),
            )
        except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as error:
            raise RequestError(f"The stored sampling mask cannot be read ({error}).") from error


def _ranges(sampled: NDArray[np.bool_]) -> str:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], sampled.astype(np.int8), [0]))))
    runs = edges.reshape(-1, 2)
    return ",".join(f"{a}" if b == a + 1 else f"{a}-{b - 1}" for a, b in runs)


def _from_ranges(text: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    sampled = np.zeros(shape, dtype=bool)
    for run in text.split(","):
        first, _, last = run.partition("-")
        start, stop = int(first), int(last or first) + 1
        if not 0 <= start < stop <= shape[0]:
            raise ValueError(f"line {run} of {shape[0]}")
        sampled[start:stop] = True
    return sampled


def _from_packed(text: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    size = math.prod(shape)
    expected = (size + 7) // 8
    # Bounded, so that a small hostile record cannot fill the memory.
    raw = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), expected + 1)
    if len(raw) != expected:
        raise ValueError("packed length does not fit the shape")
    bits = np.unpackbits(np.frombuffer(raw, dtype=np.uint8), count=size)
    return bits.astype(bool).reshape(shape)


def _centre_block(n: int, width: int, *, round_up: bool) -> slice:
    """The ACS block. With an odd remainder fastMRI puts the spare line left, InverseBench right."""
    start = (n - width + round_up) // 2
    return slice(start, start + width)


def _default_fraction(acceleration: float) -> float:
    """Both fastMRI's usual pairs (4, 8 %), (8, 4 %) and InverseBench switch between 6 and 8."""
    if acceleration == 1:
        return 0.0
    return 0.08 if acceleration <= 6 else 0.04


def _regular_or_block(n: int, spacing: float, acs: int, offset: int) -> NDArray[np.bool_]:
    """Lines offset, offset + R, ... (R need not be an integer), and the ACS block."""
    lines = np.round(np.arange(offset, n, spacing)).astype(np.intp)
    sampled = np.zeros(n, dtype=bool)
    sampled[lines[lines < n]] = True
    sampled[_centre_block(n, acs, round_up=True)] = True
    return sampled


def equispaced(
    n: int, acceleration: float, *, acs_lines: int | None = None, offset: int = 0
) -> SamplingMask:
    """Every R-th line and nothing else, unless an ACS block is asked for."""
    acs = _checked(n, acceleration, acs_lines, 0, offset)
    sampled = _regular_or_block(n, acceleration, acs, offset)
    return SamplingMask(sampled, "equispaced", acceleration, acs, offset)


def fastmri(
    n: int, acceleration: float, *, acs_lines: int | None = None, offset: int = 0
) -> SamplingMask:
    """FastMRI's equispaced mask: every R-th line or the ACS block; true acceleration < R."""
    default = round(n * _default_fraction(acceleration))
    acs = _checked(n, acceleration, acs_lines, default, offset)
    sampled = _regular_or_block(n, acceleration, acs, offset)
    return SamplingMask(sampled, "fastmri", acceleration, acs, offset)


def fastmri_fraction(
    n: int, acceleration: float, *, acs_lines: int | None = None, offset: int = 0
) -> SamplingMask:
    """FastMRI's equispaced-fraction mask: wider spacing, so that about N / R lines remain."""
    default = round(n * _default_fraction(acceleration))
    acs = _checked(n, acceleration, acs_lines, default, offset)
    if acceleration > 1 and acs * acceleration >= n:
        raise RequestError(
            f"An ACS block of {acs} lines alone exceeds {n} lines / {acceleration:g}; "
            "ask for fewer ACS lines or less acceleration."
        )
    sampled = np.zeros(n, dtype=bool)
    if acceleration == 1:
        sampled[:] = True
    else:
        spacing = acceleration * (acs - n) / (acs * acceleration - n)
        sampled[np.around(np.arange(offset, n - 1, spacing)).astype(np.intp)] = True
    sampled[_centre_block(n, acs, round_up=True)] = True
    return SamplingMask(sampled, "fastmri-fraction", acceleration, acs, offset)


def inversebench(
    n: int, acceleration: float, *, acs_lines: int | None = None, offset: int = 0
) -> SamplingMask:
    """InverseBench's equispaced mask: an ACS block, then every int(R)-th *remaining* line.

    Taking the block out of the list first breaks the spacing across the centre.
    """
    default = math.floor(n * _default_fraction(acceleration))
    acs = _checked(n, acceleration, acs_lines, default, offset)
    sampled = np.zeros(n, dtype=bool)
    sampled[_centre_block(n, acs, round_up=False)] = True
    sampled[np.flatnonzero(~sampled)[offset :: int(acceleration)]] = True
    return SamplingMask(sampled, "inversebench", acceleration, acs, offset)


def random(
    n: int, acceleration: float, *, acs_lines: int | None = None, seed: int = 0
) -> SamplingMask:
    """floor(N / R) lines: the ACS block, and the rest drawn without replacement."""
    default = math.floor(n * _default_fraction(acceleration))
    acs = _checked(n, acceleration, acs_lines, default, 0)
    budget = math.floor(n / acceleration)
    if not max(acs, 1) <= budget:
        raise RequestError(
            f"Acceleration {acceleration:g} of {n} lines leaves {budget}, "
            f"fewer than the {max(acs, 1)} needed; ask for fewer ACS lines or less acceleration."
        )
    if seed < 0:
        raise RequestError(f"The mask seed must not be negative ({seed}).")
    sampled = np.zeros(n, dtype=bool)
    sampled[_centre_block(n, acs, round_up=False)] = True
    rest = np.flatnonzero(~sampled)
    sampled[np.random.default_rng(seed).choice(rest, budget - acs, replace=False)] = True
    return SamplingMask(sampled, "random", acceleration, acs, seed=seed)


def given(array: ArrayLike) -> SamplingMask:
    """A mask that came with the data: ``(W,)`` lines or the full ``(H, W)`` plane of 0 and 1."""
    values = np.asarray(array)
    if values.ndim == 2 and values.shape[0] == 1:
        values = values[0]
    if values.dtype != bool and not np.isin(values, (0, 1)).all():
        raise RequestError("A given sampling mask may only hold 0 and 1.")
    sampled = values.astype(bool)
    mask = SamplingMask(sampled, "given", 1.0)
    return SamplingMask(sampled, "given", mask.true_acceleration, _measured_acs(sampled))


def _measured_acs(sampled: NDArray[np.bool_]) -> int:
    """Width of the run of full lines around DC, which sits at N // 2."""
    lines = np.logical_and.reduce(np.atleast_2d(sampled), axis=0)
    centre = len(lines) // 2
    if not lines[centre]:
        return 0
    gaps = np.flatnonzero(~lines)
    before, after = gaps[gaps < centre], gaps[gaps > centre]
    first = before[-1] + 1 if len(before) else 0
    last = after[0] if len(after) else len(lines)
    # A lone DC line is part of the pattern, not a calibration block.
    return int(last - first) if last - first > 1 else 0


def _checked(
    n: int, acceleration: float, acs_lines: int | None, default_acs: int, offset: int
) -> int:
    """Refuse impossible requests in one sentence; returns the ACS width to use."""
    if n < 1:
        raise RequestError(f"A sampling mask needs at least one line, not {n}.")
    if not (math.isfinite(acceleration) and acceleration >= 1):
        raise RequestError(f"The acceleration must be 1 or more, not {acceleration:g}.")
    if acceleration > n:
        raise RequestError(f"An acceleration of {acceleration:g} leaves no line of {n}.")
    if not 0 <= offset < acceleration:
        raise RequestError(
            f"The mask offset must lie between 0 and the acceleration {acceleration:g}, "
            f"not {offset}."
        )
    acs = default_acs if acs_lines is None else acs_lines
    if acs < 0:
        raise RequestError(f"The number of ACS lines must not be negative ({acs}).")
    if acs > n:
        raise RequestError(f"{acs} ACS lines are more than the {n} lines there are.")
    return acs


_REGULAR = {
    "equispaced": equispaced,
    "fastmri": fastmri,
    "fastmri-fraction": fastmri_fraction,
    "inversebench": inversebench,
}
MASK_NAMES = (*_REGULAR, "random", "given")


def build_mask(
    name: str,
    n: int,
    acceleration: float,
    *,
    acs_lines: int | None = None,
    offset: int = 0,
    seed: int = 0,
    array: ArrayLike | None = None,
) -> SamplingMask:
    """Make the mask called ``name`` over ``n`` phase-encode lines.

    Parameters
    ----------
    acs_lines : int, optional
        Overrides the rule's own width of the fully sampled centre.
    offset : int
        First line of a regular pattern.
    seed : int
        Used by 'random' only.
    array : array of 0 and 1
        Used by 'given' only, whose acceleration is then measured.
    """
    if name in _REGULAR:
        return _REGULAR[name](n, acceleration, acs_lines=acs_lines, offset=offset)
    if name == "random":
        return random(n, acceleration, acs_lines=acs_lines, seed=seed)
    if name == "given":
        if array is None:
            raise RequestError("A 'given' mask needs the array of sampled lines.")
        mask = given(array)
        if mask.width != n:
            raise RequestError(f"The given mask has {mask.width} lines, the data {n}.")
        return mask
    raise RequestError(f"Unknown mask '{name}': expected one of {', '.join(MASK_NAMES)}.")
