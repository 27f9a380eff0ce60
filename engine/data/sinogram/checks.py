"""What can be wrong with a measured sinogram, looked for on one slice before a run.

Every test compares numbers that a wrong unit, order or scale makes impossible or very unlikely,
so that a good scan gives no alarm. 'blocking' is kept for what would surely be nonsense.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.data.dataset import Check
from engine.data.sinogram.detector_repair import find_bad
from engine.data.sinogram.geometry_check import seems_in_radians
from engine.data.sinogram.units import Rows
from engine.spec.input_options import give

if TYPE_CHECKING:
    from engine.data.sinogram.dataset import SinogramDataset

HARDLY_A_RAY = 12.0  # line integral: a transmission of 6e-6, less than detectors can tell
NO_LOGARITHM = 20.0  # median of line integrals that are none
BRIGHTER_THAN_AIR, DARKER_THAN_AIR = 0.3, 0.3  # line integrals off by this: the air level is wrong
UNEVEN = 0.03  # of the largest value: ends of the detector that vary more are not air
REACHES_OUT = 0.1  # likewise: ends that read more than this see the object
NARROW = 0.04  # of the detector
LEAST_PITCH_MM, MOST_PITCH_MM = 2e-6, 20.0
SEEN = 12.0  # times the median difference of neighbours; noise alone has 5
FEW_VIEWS, SLICES_PER_VIEW = 10, 4
WATER_LIKE = (0.2, 4.0)  # times the attenuation of water
STRAY_PIXELS = 2e-4  # of all values
DARK_ENDS = 3.0  # line integral at the ends of the detector while others are below
MICROSCOPES = (".mrc", ".mrcs", ".st", ".ali")  # electrons: pixels of 0.1 nm are usual


@dataclass(frozen=True)
class Seen:
    """One slice in numbers; ``lines`` are ``[views, detectors]`` as they will be used."""

    lines: NDArray[np.float32]
    unit: str
    starved: float  # share of rays that let nothing through

    @property
    def ends(self) -> NDArray[np.float32]:
        """The outermost bins on both sides."""
        width = max(2, self.lines.shape[1] // 50)
        return np.concatenate([self.lines[:, :width], self.lines[:, -width:]], axis=1)

    @property
    def air(self) -> float:
        return float(np.median(self.ends))

    @property
    def top(self) -> float:
        return float(np.quantile(self.lines, 0.99))

    @property
    def ends_see_air(self) -> bool:
        """Whether both ends read the same in all views, which no object does."""
        views = np.median(self.ends, axis=1)
        return float(np.quantile(views, 0.9) - np.quantile(views, 0.1)) < UNEVEN * abs(self.top)


def check_scan(dataset: SinogramDataset, rows: Rows, lines: NDArray[np.float32]) -> list[Check]:
    """The verdicts on a slice, given as it was read and as it will be used."""
    unit = next((fact.value for fact in dataset.facts if fact.name == "unit"), "line-integral")
    seen = Seen(lines, unit, rows.starved / max(1, rows.values.size))
    found = [
        _units(seen),
        _angles(dataset),
        _pitch(dataset),
        _slices(dataset),
        _detector(dataset, rows),
    ]
    if found[0].verdict == "good" and shows_object(lines):  # else it would only repeat it
        if _width(seen) < 1:
            return [*found, _empty_views(dataset)]
        found += [_air(dataset, seen), _size(seen), _material(dataset, seen)]
    return found


def shows_object(lines: NDArray[np.float32]) -> bool:
    """Whether there is more in the slice than noise: the first ones of a stack may be empty."""
    if lines.shape[1] < 2:
        return False
    low, high = np.quantile(lines, [0.01, 0.99])
    return float(high - low) > SEEN * float(np.median(np.abs(np.diff(lines, axis=1))))


def _units(seen: Seen) -> Check:
    name, middle, top = "units", float(np.median(seen.lines)), seen.top
    if seen.unit != "line-integral" and seen.air > DARK_ENDS > np.quantile(seen.lines, 0.1):
        return Check(
            name,
            "doubtful",
            f"Taken for {seen.unit}, the values are lowest at the ends of the detector, where "
            "there should be air: they may be line integrals already.",
            give({"unit": "line-integral"}),
        )
    if middle > NO_LOGARITHM:
        return Check(
            name,
            "blocking",
            f"Half of the line integrals are above {middle:.3g}, a transmission of "
            f"{_falls(middle):.0e}: no logarithm of measured intensities is that "
            "large.",
            f"{give({'unit': 'counts'})} and ⟦scan_air⟧, or ⟦scan_scale⟧ 0.1 if lengths in mm "
            "were multiplied by 1/cm",
        )
    if top > HARDLY_A_RAY and seen.starved == 0:
        return Check(
            name,
            "doubtful",
            f"Line integrals reach {top:.3g}, a transmission of {_falls(top):.0e}, which no "
            "detector can tell from none.",
            f"{give({'scan_scale': 0.1})} if lengths in mm were multiplied by 1/cm",
        )
    if seen.unit == "line-integral" and _like_transmission(seen):
        return Check(
            name,
            "doubtful",
            f"The ends of the detector read {seen.air:.2f}, more than the middle, and nothing is "
            "much above 1: these look like transmissions, not line integrals.",
            give({"unit": "transmission"}),
        )
    return Check(name, "good", f"Line integrals reach {top:.3g}, as those of an object do.")


def _like_transmission(seen: Seen) -> bool:
    low, high = np.quantile(seen.lines, [0.001, 0.999])
    middle = float(np.quantile(seen.lines, 0.05))
    return bool(
        seen.ends_see_air
        and low > -0.1
        and high < 1.2
        and 0.7 < seen.air < 1.2
        and middle < 0.9 * seen.air
    )


def _angles(dataset: SinogramDataset) -> Check:
    name, angles = "angles", np.rad2deg(np.array(dataset.geometry.angles_rad))
    reach = abs(float(angles[-1] - angles[0]))
    if seems_in_radians(dataset.geometry):
        return Check(
            name,
            "blocking",
            f"The views reach over {reach:.4g} degrees, which is {math.degrees(reach):.0f} "
            "degrees if it was meant in radians.",
            give(dataset.angles_as_radians()),
        )
    if reach > 3600 and abs(math.radians(reach) - 200) < 200:
        return Check(
            name,
            "doubtful",
            f"The views reach over {reach:.0f} degrees: degrees seem to have been taken for "
            "radians.",
            give({"scan_angle_unit": "deg"}),
        )
    return Check(name, "good", f"{len(angles)} views over {reach:.4g} degrees.")


def _pitch(dataset: SinogramDataset) -> Check:
    name, pitch = "detector pitch", dataset.geometry.pitch_mm / dataset.layout.binning
    microscope = dataset.files and dataset.files[0].suffix.lower() in MICROSCOPES
    if pitch < LEAST_PITCH_MM and not microscope:
        return Check(
            name,
            "blocking",
            f"The detector pitch of {pitch:g} mm is smaller than any X-ray detector's; as metres "
            f"it would be {1000 * pitch:g} mm.",
            give({"scan_pitch_mm": 1000 * pitch}),
        )
    if pitch > MOST_PITCH_MM:
        return Check(
            name,
            "doubtful",
            f"The detector pitch of {pitch:g} mm is larger than that of a body scanner; as "
            f"micrometres it would be {pitch / 1000:g} mm.",
            give({"scan_pitch_mm": pitch / 1000}),
        )
    return Check(name, "good", f"{pitch:.4g} mm.")


def _slices(dataset: SinogramDataset) -> Check:
    views, count = dataset.geometry.views, dataset.count
    if views < FEW_VIEWS and count > SLICES_PER_VIEW * views:
        return Check(
            "slices",
            "doubtful",
            f"{views} views of {count} slices: the views may have been taken for the slices.",
            give({"axes": dataset.exchanged_axes("slice", "view")}),
        )
    return Check("slices", "good", f"{count} slices of {views} views.")


def _empty_views(dataset: SinogramDataset) -> Check:
    return Check(
        "axes",
        "doubtful",
        "Half of the views see nothing of the object: views and detectors may be exchanged.",
        give({"axes": dataset.exchanged_axes("view", "detector")}),
    )


def _detector(dataset: SinogramDataset, rows: Rows) -> Check:
    finite = np.isfinite(rows.values)
    dead = int((~finite).all(axis=0).sum())
    words = f"{dead} dead bins are filled in" if dead else ""
    if dataset.repair.bad_pixels or dataset.repair.bad_bins:
        said = dataset.repair.words()["bad pixels"]
        return Check(
            "detector", "corrected", "; ".join(filter(None, [words, f"Bad pixels {said}"]))
        )
    stray = find_bad(np.where(finite.all(axis=0), rows.values, 0.0))
    if stray.mean() > STRAY_PIXELS:
        return Check(
            "detector",
            "doubtful",
            f"{int(stray.sum())} values in {int(stray.any(axis=0).sum())} bins stick out of their "
            "neighbours, as stuck or hot pixels do.",
            give({"scan_bad_pixels": True}),
        )
    if dead:
        return Check("detector", "corrected", f"{words} from their neighbours and have no weight.")
    return Check("detector", "good", "No bin is dead, none sticks out.")


def _air(dataset: SinogramDataset, seen: Seen) -> Check:
    name, low = "air", float(np.quantile(seen.lines, 0.01))
    wanted = dataset.options.scan_air
    if low < -BRIGHTER_THAN_AIR:
        factor = _falls(low)
        right = f": {give({'scan_air': wanted * factor})}" if wanted else ""
        return Check(
            name,
            "doubtful",
            f"Rays are up to {factor:.3g} times as bright as air: its level is too low{right}.",
            give({"scan_air": wanted * factor}) if wanted else "check the flat field",
        )
    if seen.ends_see_air and seen.air > max(DARKER_THAN_AIR, REACHES_OUT * seen.top):
        return Check(
            name,
            "doubtful",
            f"No ray is as bright as air: beside the object the line integrals are "
            f"{seen.air:.2g} and not 0.",
            give({"scan_air": wanted * _falls(seen.air)})
            if wanted
            else give({"scan_air_bins": max(2, seen.lines.shape[1] // 50)}),
        )
    if not seen.ends_see_air:
        return Check(name, "good", "The ends of the detector do not see it all the time.")
    return Check(name, "good", f"Beside the object the line integrals are {seen.air:.2g}.")


def _size(seen: Seen) -> Check:
    name, share = "object size", _width(seen) / seen.lines.shape[1]
    if share < NARROW:
        return Check(
            name,
            "doubtful",
            f"The object covers {100 * share:.1f} % of the detector: few pixels are left for it.",
            "a smaller ⟦pixel_mm⟧ with a ⟦size⟧ that holds the object",
        )
    return Check(name, "good", f"The object covers {100 * share:.0f} % of the detector.")


def _falls(line_integral: float) -> float:
    """The transmission of a line integral, whatever that is."""
    return math.exp(min(700.0, max(-700.0, -line_integral)))


def _width(seen: Seen) -> float:
    """In bins, of the object's shadow in a usual view."""
    above = seen.lines - (seen.air if seen.ends_see_air else 0.0)
    return float(np.median((above > 0.1 * (seen.top - seen.air)).sum(axis=1)))


def _material(dataset: SinogramDataset, seen: Seen) -> Check:
    """Attenuation as the longest chord over the width of the shadow: right for a full disc."""
    name, geometry = "material", dataset.geometry
    width = _width(seen) * geometry.pitch_mm / geometry.magnification
    level = seen.air if seen.ends_see_air else 0.0
    mu = (float(np.median(seen.lines.max(axis=1))) - level) / max(width, 1e-9)
    times = mu / dataset.mu_water
    low, high = WATER_LIKE
    if low < times < high:
        return Check(name, "good", f"About {times:.2g} times the attenuation of water.")
    return Check(
        name,
        "doubtful",
        f"Not water-like: about {mu:.3g} / mm, {times:.3g} times as much as water. HU and the "
        "priors of bodies mean little here.",
        "⟦energy_kev⟧ or ⟦mu_water⟧ if the energy is another one; ⟦output_unit⟧ mu for results "
        "in 1/mm",
    )
