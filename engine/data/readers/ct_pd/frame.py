"""Which way the patient lies in a DICOM-CT-PD scan, and how its rays become the engine's.

The format's frame (user manual, version 3) is fixed to the table and left-handed: seen from the
table's side of the gantry, x points right and y up, and z points away, from the table's base into
the gantry. The angle phi is 0 at twelve o'clock and grows counter-clockwise, so a source is at

    x = -rho sin(phi),  y = rho cos(phi).

With the detector at six o'clock (phi = 0), column 1 is the leftmost and row 1 the farthest one,
at the largest z; columns therefore rise along (cos phi, sin phi).

Radiologists look from the feet. Who lies head first has the feet on the table's side: what is
seen from there is the image, x and y are the engine's. With its source at R (sin t, -cos t),

    t = phi + pi,

and the engine's detector axis (cos t, sin t) = -(cos phi, sin phi) runs against the columns.
Who lies feet first is seen from the head, and the image is that mirrored: x is -x. Then

    t = pi - phi,

and the axis (cos t, sin t) = (-cos phi, sin phi) is that of the columns, mirrored as well.
The direction to the head is z for head first, -z for feet first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engine.data.dataset import Placement, Vector
from engine.data.sinogram.rebinning import Floats

LEFT, BACK, HEAD = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
RIGHT, FRONT = (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0)
# which way the image's rows and columns run when up in the image is up in the room
LYING: dict[str, tuple[Vector, Vector]] = {
    "S": (LEFT, BACK),
    "P": (RIGHT, FRONT),
    "DL": (FRONT, LEFT),  # left side down
    "DR": (BACK, RIGHT),
}


@dataclass(frozen=True)
class Frame:
    """How the patient lies; ``known`` when the file says so."""

    feet_first: bool = False
    lying: str = "S"
    known: bool = False

    @property
    def words(self) -> str:
        names = {"S": "supine", "P": "prone", "DL": "left side down", "DR": "right side down"}
        return f"{'feet' if self.feet_first else 'head'} first, {names[self.lying]}"

    def angles_rad(self, phi_rad: Floats) -> Floats:
        """The engine's angles of views at ``phi_rad``; the first one within the first turn."""
        angles = math.pi - phi_rad if self.feet_first else phi_rad + math.pi
        return angles - 2 * math.pi * np.floor(angles[0] / (2 * math.pi))

    def u_mm(self, u_mm: Floats) -> Floats:
        """Positions of the bins along the engine's detector, rising."""
        return u_mm if self.feet_first else -u_mm[::-1]

    def views(self, values: Floats) -> Floats:
        """Samples ``[views, bins]`` in the order of those positions."""
        return values if self.feet_first else values[:, ::-1]

    def head_mm(self, z_mm: Floats) -> Floats:
        return -z_mm if self.feet_first else z_mm

    def placements(
        self, head_mm: Floats, size: tuple[int, int], pixel_mm: float, thickness_mm: float
    ) -> tuple[Placement, ...]:
        """Slices with the rotation axis at x = y = 0, for no file says where that is."""
        row, column = (np.array(way) for way in LYING[self.lying])
        corner = -((size[1] - 1) / 2 * row + (size[0] - 1) / 2 * column) * pixel_mm
        return tuple(
            Placement(
                position=(float(corner[0]), float(corner[1]), float(z)),
                along_row=LYING[self.lying][0],
                along_column=LYING[self.lying][1],
                spacing_mm=(pixel_mm, pixel_mm),
                thickness_mm=thickness_mm,
            )
            for z in head_mm
        )


def frame_of(patient_position: str) -> Frame:
    """From PatientPosition: HFS, FFP, HFDR and so on; head first and supine when not known."""
    end, lying = patient_position[:2], patient_position[2:]
    if end in ("HF", "FF") and lying in LYING:
        return Frame(end == "FF", lying, True)
    return Frame()
