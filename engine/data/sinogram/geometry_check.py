"""Does the sinogram fit its geometry? Which other reading would fit better?

What data can tell, and what not. Let p(t, s) be the sinogram of an image f.

- Parallel rays: p(-t, s) is the sinogram of f upside down and p(t, -s) that of f turned by
  half a turn. Both are as consistent as p itself, so a wrong direction or a flipped detector
  only ever mirrors or turns the image; the data cannot tell. They can tell the centre.
- Fan: p(-t, -s) is the sinogram of a mirrored f, but with only one of the two changed the rays
  do not meet as they should. So the data tell whether direction and detector order fit each
  other, not which of the two was wrong: the two corrections differ by a mirror.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.data.dataset import Verdict
from engine.data.sinogram.rotation_centre import CoarseScan, Offset
from engine.physics.geometry import CTGeometry
from engine.physics.view_weights import arc
from engine.spec.errors import RequestError

CLEARLY = 0.95  # another reading must leave less than this of the residual to be put first
SAME_BIN = 0.1  # offsets this close, in detector bins, are the same
SHORT_ARC_DEG = 150.0
SUSPICIOUS = 0.04  # a residual above which rarer mistakes are tried, too
NOTHING_FITS = 0.2  # of the best reading
MUCH_BETTER = 0.8  # of the residual as it is: then the geometry is doubtful
OFF_CENTRE = 0.5  # detector bins, likewise
EXACTLY = 0.003  # an arc this near to pi or 2 pi degrees is no chance
FEWEST_BINS = 16  # with fewer bins or views nothing can be told


@dataclass(frozen=True)
class Proposal:
    """One way to read the sinogram and the relative residual it leaves.

    ``offset_mm`` is the detector offset to use, for the bins in the order of this proposal.
    """

    residual: float
    offset_mm: float
    reverse: bool = False
    flip: bool = False
    transposed: bool = False
    radians: bool = False  # the angles are in radians, not in degrees
    unchanged: bool = False  # the geometry as it was given
    words: str = ""

    @property
    def changes(self) -> int:
        return self.reverse + self.flip + self.transposed + self.radians


def check_geometry(
    sinogram: NDArray, geometry: CTGeometry, even_pitch_mm: float | None = None
) -> list[Proposal]:
    """Readings of ``sinogram`` ``[views, detectors]``, best first; the given one is among them.

    Readings that the data cannot tell apart have the same residual, the one with the fewest
    changes first.

    ``even_pitch_mm`` is given when the views are evenly spread over an arc, however many there
    are: then views and detectors may have been exchanged even if their numbers differ, and this
    is the pitch of the unbinned detector.
    """
    shape = (geometry.views, geometry.detectors)
    if sinogram.shape not in (shape, shape[::-1]):
        raise RequestError(
            f"The sinogram has the shape {sinogram.shape} and the geometry needs {shape}."
        )
    if not np.isfinite(sinogram).all():
        raise RequestError("The geometry cannot be checked: some values are not finite.")
    scan = CoarseScan(geometry)
    found: list[Proposal] = []
    given: Proposal | None = None
    if sinogram.shape == shape:
        given = _as_given(scan, sinogram)
        found += _readings(scan, sinogram, given, transposed=False)
    if sinogram.shape == shape[::-1]:
        found += _readings(scan, sinogram.T, None, transposed=True)
    if given is not None and not min(p.residual for p in [given, *found]) <= SUSPICIOUS:
        if sinogram.shape != shape[::-1] and even_pitch_mm and min(shape) >= FEWEST_BINS:
            exchanged = _exchanged(geometry, even_pitch_mm)
            found += _readings(CoarseScan(exchanged), sinogram.T, None, transposed=True)
        if seems_in_radians(geometry):
            turned = replace(
                geometry, angles_rad=tuple(np.rad2deg(np.array(geometry.angles_rad)).tolist())
            )
            readings = _readings(CoarseScan(turned), sinogram, None, transposed=False)
            found += [replace(one, radians=True) for one in readings]
    if given is not None and not any(proposal.unchanged for proposal in found):
        found.append(given)
    found = [proposal for proposal in found if math.isfinite(proposal.residual)]
    if not found:
        raise RequestError("The geometry cannot be checked: the values are too large.")
    ordered = sorted(found, key=lambda p: (p.residual, p.changes))
    return [_worded(p, given, geometry) for p in _cautious(ordered)]


def seems_in_radians(geometry: CTGeometry) -> bool:
    """Whether the arc is pi or 2 pi degrees: half a turn or a whole one, said in radians."""
    if geometry.views < 8:
        return False
    reach = abs(math.degrees(geometry.angles_rad[-1] - geometry.angles_rad[0]))
    spans = (reach, reach * geometry.views / (geometry.views - 1))  # with and without the last view
    return any(abs(span / n / math.pi - 1) < EXACTLY for span in spans for n in (1, 2))


def arc_deg(geometry: CTGeometry) -> float:
    """How far the views reach, half a step on both sides included."""
    return math.degrees(arc(np.array(geometry.angles_rad), 2 * math.pi)[2])


def judge(proposals: list[Proposal], geometry: CTGeometry) -> tuple[Verdict, str, Proposal | None]:
    """A verdict on the geometry as it is, a sentence, and the reading to take instead."""
    best, given = proposals[0], next((p for p in proposals if p.unchanged), None)
    if best.residual > NOTHING_FITS:
        return (
            "doubtful",
            f"None of the readings fits: the best one leaves {100 * best.residual:.0f} % of the "
            "data unexplained. Look at the unit, the distances, the angles and the order of the "
            "axes.",
            None,
        )
    if arc_deg(geometry) < SHORT_ARC_DEG and not (best.radians or best.transposed):
        span = f"{arc_deg(geometry):.0f} degrees only"
        return "good", f"The views cover {span}, which says little about the geometry.", None
    given = given or best
    shift = abs(best.offset_mm - given.offset_mm) / geometry.pitch_mm
    small = best.changes == 0 and shift < OFF_CENTRE
    if small or best.residual > MUCH_BETTER * given.residual:
        left = f"{100 * given.residual:.1f} %"
        return "good", f"The sinogram fits its geometry: residual {left}.", None
    return "doubtful", f"Another reading fits better. {best.words}", best


def cannot_tell(geometry: CTGeometry) -> str:
    """What no residual can say of this kind of scan, as a sentence."""
    if geometry.kind == "parallel":
        text = (
            "With parallel rays a wrong direction only mirrors the image and a flipped detector "
            "only turns it by half a turn: the data cannot tell."
        )
    else:
        text = (
            "With a fan the data tell whether direction and detector order fit each other; "
            "changing both mirrors the image, which the data cannot tell."
        )
    span = arc_deg(geometry)
    if span < SHORT_ARC_DEG:
        text += f" The views cover {span:.0f} degrees only, so residuals say little."
    return text


def _as_given(scan: CoarseScan, sinogram: NDArray) -> Proposal:
    offset = scan.geometry.detector_offset_mm
    residual = scan.residuals(scan.smooth(sinogram), np.array([offset]))[0]
    return Proposal(float(residual), offset, unchanged=True)


def _exchanged(geometry: CTGeometry, pitch_mm: float) -> CTGeometry:
    """As many views as there are bins over the same arc, and as many bins as there are views."""
    views, bins = geometry.detectors, geometry.views
    first, last = geometry.angles_rad[0], geometry.angles_rad[-1]
    step = (last - first) / (bins - 1) * bins / views
    return replace(
        geometry,
        angles_rad=tuple((first + step * np.arange(views)).tolist()),
        detectors=bins,
        pitch_mm=pitch_mm,
        detector_offset_mm=0.0,
    )


def _readings(
    scan: CoarseScan, sinogram: NDArray, given: Proposal | None, transposed: bool
) -> list[Proposal]:
    """The distinguishable readings, each followed by the one that mirrors it."""
    plain = _settled(scan, scan.find_offset(sinogram), given)

    def proposal(best: Offset, offset_mm: float, reverse: bool, flip: bool) -> Proposal:
        same = not (reverse or flip or transposed) and given is not None
        unchanged = same and given is not None and offset_mm == given.offset_mm
        return Proposal(best.residual, offset_mm, reverse, flip, transposed, unchanged=unchanged)

    if scan.geometry.kind == "parallel":
        return [proposal(plain, plain.mm, False, False), proposal(plain, plain.mm, True, False)]
    flipped = scan.find_offset(sinogram[:, ::-1])
    return [
        proposal(plain, plain.mm, False, False),
        proposal(plain, -plain.mm, True, True),
        # (t, s) with t reversed is the mirror of (t, s) with s reversed
        proposal(flipped, -flipped.mm, True, False),
        proposal(flipped, flipped.mm, False, True),
    ]


def _settled(scan: CoarseScan, best: Offset, given: Proposal | None) -> Offset:
    """The given offset, when the best one is practically the same."""
    if given is None or abs(best.mm - given.offset_mm) > SAME_BIN * scan.geometry.pitch_mm:
        return best
    return Offset(given.offset_mm, given.residual, best.at_edge)


def _cautious(ordered: list[Proposal]) -> list[Proposal]:
    """A reading that is barely better does not overtake the one with the fewest changes."""
    best = ordered[0].residual
    near = [p for p in ordered if p.residual * CLEARLY <= best]
    rest = [p for p in ordered if p.residual * CLEARLY > best]
    near.sort(key=lambda p: (not p.unchanged, p.changes, p.residual))
    return near + rest


def _worded(proposal: Proposal, given: Proposal | None, geometry: CTGeometry) -> Proposal:
    parts = []
    if proposal.transposed:
        parts.append("exchange views and detectors")
    if proposal.radians:
        parts.append("read the angles as radians")
    if proposal.reverse:
        parts.append("reverse the direction")
    if proposal.flip:
        parts.append("flip the detector")
    shift = proposal.offset_mm
    if given is None or abs(shift - given.offset_mm) > 1e-9:
        bins = shift / geometry.pitch_mm
        parts.append(f"use a detector offset of {shift:.4g} mm ({bins:.2f} bins)")
    text = " and ".join(parts) if parts else "as it is"
    words = f"{text[0].upper()}{text[1:]}: residual {100 * proposal.residual:.2f} %"
    if given is not None and not proposal.unchanged:
        words += f" (as it is: {100 * given.residual:.2f} %)"
    return replace(proposal, words=words + ".")
