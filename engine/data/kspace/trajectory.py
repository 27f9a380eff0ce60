"""Where the samples of a radial or spiral scan lie in k-space: its units, its spokes, its gaps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.data.dataset import Fact
from engine.spec.errors import DescriptionNeeded, RequestError
from engine.spec.input_options import InputOptions

Positions = NDArray[np.float64]  # [2, spokes, samples]

MAX_SAMPLES = 1 << 26
LARGEST_SIZE = 4096
FEWEST_SPOKES = 4
FLAT = 1e-3  # third components below this share of the reach are rounding
STRAIGHT = 0.02  # of the reach: a spoke strays less from its line
UNIT_WORDS = {
    "fov": "cycles per field of view",
    "pixel": "cycles per pixel (-0.5 .. 0.5)",
    "radian": "radians per pixel (-pi .. pi)",
}


@dataclass(frozen=True)
class Trajectory:
    """``positions`` in cycles per field of view of an image of ``size`` x ``size`` pixels."""

    positions: Positions
    size: int
    facts: tuple[Fact, ...] = ()

    @property
    def spokes(self) -> int:
        return self.positions.shape[1]

    @property
    def radius(self) -> NDArray[np.float64]:
        return np.hypot(*self.positions)

    def is_radial(self) -> bool:
        """Whether every readout is a straight line through or from the centre."""
        x, y = self.positions
        angle = self._angles()[:, None]
        stray = np.abs(y * np.cos(angle) - x * np.sin(angle)).max()
        return bool(stray < STRAIGHT * self.radius.max())

    def _angles(self) -> NDArray[np.float64]:
        """Direction of each readout's outermost sample."""
        at = self.radius.argmax(axis=1)
        x, y = (part[np.arange(self.spokes), at] for part in self.positions)
        return np.arctan2(y, x)

    def kept(self, acceleration: float | None) -> NDArray[np.intp]:
        """Which readouts are used when one of ``acceleration`` is; None: all.

        Every n-th, or the first ones, whichever leaves the smaller gap: in steps of the golden
        angle the first ones are spread evenly, and every n-th need not be.
        """
        keep = self.spokes if acceleration is None else round(self.spokes / acceleration)
        if keep >= self.spokes:
            return np.arange(self.spokes)
        if keep < FEWEST_SPOKES:
            raise RequestError(
                f"⟦acceleration⟧ leaves {keep} of {self.spokes} spokes; at least {FEWEST_SPOKES} "
                "are needed."
            )
        every = np.arange(keep) * self.spokes // keep
        return min((every, np.arange(keep)), key=self._largest_gap)

    def distance_of_echo(self, power: NDArray[np.floating]) -> float:
        """How far from the centre readouts of ``power`` ``[spokes, samples]`` are strongest.

        A phase that rises across the image moves the echo to another place, the same for all
        spokes; only what is left, a shift along every spoke, is due to the trajectory.
        """
        at = np.arange(self.spokes), power.argmax(axis=1)
        if not self.is_radial() or self.spokes < FEWEST_SPOKES:
            return float(np.median(self.radius[at]))
        along = self.positions[:, :, -1] - self.positions[:, :, 0]
        along = along / np.maximum(np.hypot(*along), 1e-12)
        echo = (self.positions[(slice(None), *at)] * along).sum(axis=0)
        columns = np.stack((np.ones(self.spokes), *along), axis=1)
        return float(abs(np.linalg.lstsq(columns, echo, rcond=None)[0][0]))

    def cells(self, chosen: NDArray[np.intp]) -> NDArray[np.bool_]:
        """A picture of the paths: the Fourier samples ``[size, size]`` that they pass."""
        plane = np.zeros((self.size, self.size), bool)
        index = np.rint(self.positions[:, chosen].reshape(2, -1)).astype(int) + self.size // 2
        plane[tuple(index[:, ((index >= 0) & (index < self.size)).all(axis=0)])] = True
        return plane

    def _largest_gap(self, chosen: NDArray[np.intp]) -> float:
        # A line through the centre is the same in both directions.
        x, y = self.positions
        ends = x[:, 0] * x[:, -1] + y[:, 0] * y[:, -1]
        turn = math.pi if bool((ends < 0).all()) and self.is_radial() else 2 * math.pi
        angles = np.sort(self._angles()[chosen] % turn)
        return float(np.diff(angles, append=angles[0] + turn).max().round(6))


def two_components(array: NDArray, what: str) -> Positions:
    """``[2, P, Q]`` from complex numbers ``[P, Q]`` or 2 or 3 real ones first or last."""
    if array.size > MAX_SAMPLES:
        raise RequestError(f"{what}: a trajectory of {array.shape} is too large.")
    if array.dtype.kind not in "fiuc":
        raise RequestError(f"{what} holds {array.dtype} values: no trajectory.")
    array = np.asarray(array)
    if array.dtype.kind == "c":
        array = np.squeeze(array)
        parts = np.stack((array.real, array.imag)).astype(np.float64)
    else:
        parts = np.squeeze(array).astype(np.float64)
        if parts.ndim in (2, 3) and parts.shape[0] not in (2, 3) and parts.shape[-1] in (2, 3):
            parts = np.moveaxis(parts, -1, 0)
    if parts.ndim == 2:
        parts = parts[:, None]
    if parts.ndim != 3 or len(parts) not in (2, 3) or min(parts.shape[1:]) < 1:
        raise RequestError(
            f"{what} has the shape {tuple(array.shape)}: a trajectory has 2 or 3 components, "
            "spokes and samples."
        )
    if not np.isfinite(parts).all():
        raise RequestError(f"{what}: the trajectory holds NaN or infinite values.")
    reach = np.abs(parts[:2]).max()
    if len(parts) == 3 and np.abs(parts[2]).max() > FLAT * reach:
        raise RequestError(f"{what}: a 3-D trajectory; only paths within a plane are supported.")
    return parts[:2]


def readouts_last(positions: Positions) -> bool:
    """Whether the last axis runs along the readouts: there the distance from the centre varies."""
    radius = np.hypot(*positions)
    return bool(radius.std(axis=1).mean() >= radius.std(axis=0).mean())


def make_trajectory(
    positions: Positions, options: InputOptions, what: str, matrix: int | None = None
) -> Trajectory:
    """Positions in any usual unit, brought to cycles per field of view.

    ``matrix`` is the image size that a header states.
    """
    reach = float(np.abs(positions).max())
    unit, origin = options.trajectory_unit, "option"
    if unit is None:
        unit, origin = _unit_of(reach, what), f"detected: it reaches {reach:.4g}"
    facts = [Fact("trajectory unit", UNIT_WORDS[unit], origin)]
    size, from_where = options.size or matrix, "option" if options.size else "header"
    if unit == "fov":
        if size is None:
            size, from_where = 2 * math.ceil(reach - 1e-3), "twice the trajectory's reach"
    else:
        positions = positions / (2 * math.pi) if unit == "radian" else positions
        if size is None:
            size, from_where = _size_of(positions, what), "distance between samples of a spoke"
        positions = positions * size
    if not 8 <= size <= LARGEST_SIZE:
        raise RequestError(
            f"{what}: the trajectory reaches {reach:.4g}, which would be an image of {size} x "
            f"{size} pixels: say ⟦trajectory_unit⟧ ({', '.join(UNIT_WORDS)}) or ⟦size⟧."
        )
    facts.append(Fact("image size", f"{size} x {size}", from_where))
    found = Trajectory(positions, size)
    kind = "radial spokes" if found.is_radial() else "curved readouts"
    shape = f"{found.spokes} {kind} of {positions.shape[2]} samples"
    facts.append(Fact("trajectory", shape, "its positions"))
    return Trajectory(positions, size, tuple(facts))


def _unit_of(reach: float, what: str) -> str:
    if 0.05 < reach <= 0.51:
        return "pixel"
    if 2.8 <= reach <= 3.3:
        return "radian"
    if 4 <= reach <= LARGEST_SIZE:
        return "fov"
    raise RequestError(
        f"{what}: the trajectory reaches {reach:.4g}, which no usual unit explains: say "
        f"⟦trajectory_unit⟧ {', '.join(UNIT_WORDS)}."
    )


def _size_of(positions: Positions, what: str) -> int:
    """Pixels of the field of view that the readouts' sampling distance can tell apart."""
    step = np.hypot(*np.diff(positions, axis=2))
    middle = float(np.median(step)) if step.size else 0.0
    if not middle > 0 or np.abs(step - middle).max() > 0.1 * middle:
        raise DescriptionNeeded(
            f"{what}: the trajectory does not say how many pixels the image has: say ⟦size⟧ N.",
            ("size",),
        )
    pixels = round(1 / middle)
    return pixels + pixels % 2  # N samples that include both ends are 1 / (N - 1) apart
