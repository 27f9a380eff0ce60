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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.data.rotation_centre import CoarseScan, Offset
from engine.errors import RequestError
from engine.physics.geometry import CTGeometry
from engine.physics.view_weights import arc

CLEARLY = 0.95  # another reading must leave less than this of the residual to be put first
SAME_BIN = 0.1  # offsets this close, in detector bins, are the same
SHORT_ARC_DEG = 150.0


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
    unchanged: bool = False  # the geometry as it was given
    words: str = ""


def check_geometry(sinogram: NDArray, geometry: CTGeometry) -> list[Proposal]:
    """Readings of ``sinogram`` ``[views, detectors]``, best first; the given one is among them.

    Readings that the data cannot tell apart have the same residual, the one with the fewest
    changes first.
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
    if given is not None and not any(proposal.unchanged for proposal in found):
        found.append(given)
    ordered = sorted(found, key=lambda p: (p.residual, p.reverse + p.flip + p.transposed))
    return [_worded(p, given, geometry) for p in _cautious(ordered)]


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
    span = math.degrees(arc(np.array(geometry.angles_rad), 2 * math.pi)[2])
    if span < SHORT_ARC_DEG:
        text += f" The views cover {span:.0f} degrees only, so residuals say little."
    return text


def _as_given(scan: CoarseScan, sinogram: NDArray) -> Proposal:
    offset = scan.geometry.detector_offset_mm
    residual = scan.residuals(scan.smooth(sinogram), np.array([offset]))[0]
    return Proposal(float(residual), offset, unchanged=True)


def _readings(
    scan: CoarseScan, sinogram: NDArray, given: Proposal | None, transposed: bool
) -> list[Proposal]:
    """The distinguishable readings, each followed by the one that mirrors it."""
    plain = _settled(scan, scan.find_offset(sinogram), given)

    def proposal(best: Offset, offset_mm: float, reverse: bool, flip: bool) -> Proposal:
        same = not (reverse or flip or transposed) and given is not None
        unchanged = same and given is not None and offset_mm == given.offset_mm
        return Proposal(best.residual, offset_mm, reverse, flip, transposed, unchanged)

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
    near.sort(key=lambda p: (not p.unchanged, p.reverse + p.flip + p.transposed, p.residual))
    return near + rest


def _worded(proposal: Proposal, given: Proposal | None, geometry: CTGeometry) -> Proposal:
    parts = []
    if proposal.transposed:
        parts.append("exchange views and detectors")
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
    return Proposal(**{**proposal.__dict__, "words": words + "."})
