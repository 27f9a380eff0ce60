"""What a detector adds to line integrals, taken out again; nothing here happens unasked.

- Air: bins at the ends of the detector that see nothing read zero in every view.
- Bad pixels: values that stick out of their neighbours are found and filled in.
- Rings: a bin that always reads too much makes a ring. Sorted by size, the values of
  neighbouring bins are nearly the same function of their rank whatever the object, so what a
  bin has beyond their median is its own error (sorting: N. T. Vo, R. C. Atwood,
  M. Drakopoulos, Opt. Express 26 (2018) 28396).
- Beam hardening: a polynomial of the line integral.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import interp1d
from scipy.ndimage import median_filter, rank_filter, uniform_filter, uniform_filter1d

from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

Lines = NDArray[np.float32]
Mask = NDArray[np.bool_]

AROUND = 9  # bins among which a pixel is compared
STICKS_OUT = 4.0  # ranges of the bins around
STAYS = 15  # views among which a stuck pixel is stuck in most
LEAST = 0.02  # of a line integral: less than this is never called bad
SHARE_OF_VIEWS = 0.3  # a bin bad in more of its views is bad in all
MOST_BAD = 0.2  # of all values; more is not a detector to be mended
MOST_TERMS = 8
RANK_PARTS = 4  # of the ranks, between which a bin's error changes smoothly


@dataclass(frozen=True)
class Repair:
    """The corrections asked for, in the order in which they are applied."""

    scale: float = 1.0
    air_bins: int = 0
    bad_pixels: bool = False
    bad_bins: tuple[int, ...] = ()
    rings: int = 0
    hardening: tuple[float, ...] = ()

    @classmethod
    def asked(cls, options: InputOptions, bad_bins: tuple[int, ...] = ()) -> Repair:
        return cls(
            options.scan_scale or 1.0,
            options.scan_air_bins or 0,
            bool(options.scan_bad_pixels),
            bad_bins,
            options.scan_rings or 0,
            coefficients(options.scan_hardening),
        )

    def check(self, name: str, detectors: int) -> None:
        """Refuse what this detector cannot have."""
        if 2 * self.air_bins >= detectors:
            raise RequestError(
                f"{name}: ⟦scan_air_bins⟧ {self.air_bins} of {detectors} bins leaves no object."
            )
        if self.rings > detectors:
            raise RequestError(f"{name}: ⟦scan_rings⟧ {self.rings} is wider than the detector.")
        if any(bin_ >= detectors for bin_ in self.bad_bins):
            raise RequestError(f"{name}: 'bad_bins' names bins beyond {detectors - 1}.")

    def words(self) -> dict[str, str]:
        """What is done, for the facts."""
        said = {
            "line integrals": f"multiplied by {self.scale:g}" if self.scale != 1.0 else "",
            "air level": f"{self.air_bins} bins at either end read zero" if self.air_bins else "",
            "bad pixels": self._bad_words(),
            "rings": f"median of {self.rings} bins over sorted values" if self.rings else "",
            "beam hardening": polynomial_words(self.hardening),
        }
        return {name: text for name, text in said.items() if text}

    def _bad_words(self) -> str:
        parts = [f"{len(self.bad_bins)} bins named"] if self.bad_bins else []
        parts += ["found in the data"] if self.bad_pixels else []
        return " and ".join(parts) + ", filled in, no weight" if parts else ""

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "bad_bins": list(self.bad_bins), "hardening": list(self.hardening)}

    def mask(self, values: Lines) -> Mask:
        """Which values are not believed: the named bins, and those found."""
        bad = np.zeros(values.shape, bool)
        bad[:, list(self.bad_bins)] = True
        return bad | find_bad(values) if self.bad_pixels else bad

    def shaped(self, values: Lines) -> Lines:
        """Scale and air, before bad pixels are looked for."""
        values = values if self.scale == 1.0 else values * np.float32(self.scale)
        if self.air_bins:
            ends = np.concatenate([values[:, : self.air_bins], values[:, -self.air_bins :]], axis=1)
            values = values - np.nanmedian(ends, axis=1, keepdims=True)
        return values

    def finished(self, values: Lines) -> Lines:
        """Rings and beam hardening, on values that are all finite."""
        if self.rings:
            values = without_rings(values, self.rings)
        if self.hardening:
            powers = [
                a * values.astype(np.float64) ** (n + 1) for n, a in enumerate(self.hardening)
            ]
            values = np.sum(powers, axis=0)
        return np.asarray(values, dtype=np.float32)


def coefficients(text: str | None) -> tuple[float, ...]:
    """'1,0.05' as a1 and a2."""
    if text is None:
        return ()
    try:
        found = tuple(float(part) for part in text.split(","))
        if not np.isfinite(found).all() or not found[0] > 0 or len(found) > MOST_TERMS:
            raise ValueError
    except ValueError:
        raise RequestError(
            f"⟦scan_hardening⟧ '{text[:40]}': give the coefficients of p, p^2, ..., such as "
            "1,0.05; the first is greater than 0."
        ) from None
    return found


def polynomial_words(terms: tuple[float, ...]) -> str:
    powers = [f"{a:g} p" + (f"^{n}" if n > 1 else "") for n, a in enumerate(terms, 1)]
    return " + ".join(powers)


def find_bad(values: Lines) -> Mask:
    """Pixels that are stuck for many views or hot in a single one.

    Both lie far outside the range of the bins around them, of which two on either side may be
    bad as well. So does a thin wire, but it moves on to the next bins from view to view: a
    stuck pixel stays, and a hot one has nothing beside it.
    """
    finite = np.isfinite(values)
    filled = np.where(finite, values, 0.0)
    high = rank_filter(filled, -3, size=(1, AROUND), mode="nearest")
    low = rank_filter(filled, 2, size=(1, AROUND), mode="nearest")
    spread = high - low
    usual = median_filter(np.median(spread, axis=0), size=2 * AROUND + 1, mode="nearest")
    outside = np.maximum(filled - high, low - filled)
    spikes = outside > np.maximum(STICKS_OUT * np.maximum(spread, usual), LEAST)
    stays = uniform_filter1d(spikes.astype(np.float32), STAYS, axis=0, mode="nearest") > 0.5
    alone = uniform_filter(spikes.astype(np.float32), 5, mode="constant") * 25 < 1.5
    bad = ~finite | (spikes & (stays | alone))
    bad |= bad.mean(axis=0) > SHARE_OF_VIEWS
    return np.asarray(bad)


def fill_in(values: Lines, bad: Mask) -> Lines:
    """Bad values by interpolation along the detector; a view without any good one, by its bins."""
    mended = values.copy()
    bins = np.arange(values.shape[1])
    for view in np.flatnonzero(bad.any(axis=1)):
        good = ~bad[view]
        if good.any():
            mended[view, ~good] = np.interp(bins[~good], bins[good], values[view, good])
    lost = np.flatnonzero(bad.all(axis=1))
    if lost.size:
        kept = np.flatnonzero(~bad.all(axis=1))
        mended[lost] = mended[kept[np.abs(kept[None] - lost[:, None]).argmin(axis=1)]]
    return mended


def without_rings(values: Lines, window: int) -> Lines:
    """What a bin has beyond the median across bins of equal rank, as a slow function of rank.

    Slow, because a bin's error depends at most smoothly on what it measures; noise and small
    things in the object do not, and are left alone.
    """
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    beyond = ranked - median_filter(ranked, size=(1, window | 1), mode="nearest")
    parts = np.array_split(np.arange(len(values)), min(RANK_PARTS, len(values)))
    centres = np.array([part.mean() for part in parts])
    levels = np.stack([np.median(beyond[part], axis=0) for part in parts])
    if len(parts) > 1:
        levels = interp1d(
            centres, levels, axis=0, bounds_error=False, fill_value=(levels[0], levels[-1])
        )(np.arange(len(values)))
    back = np.empty_like(values)
    np.put_along_axis(back, order, (ranked - levels).astype(values.dtype), axis=0)
    return back
