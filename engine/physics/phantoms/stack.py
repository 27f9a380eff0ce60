"""CT slices of the trunk in HU, alone or as a stack that changes smoothly: the demo of volumes.

Skin, fat and table are made here, the inside in chest.py and abdomen.py. In a stack one slice is
bent a little further from slice to slice by slow waves, and round structures of a few millimetres
come and go in it. Its texture bends along, so that a coronal cut shows the anatomy and nothing
that flickers.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.ndimage

from engine.physics.phantoms import abdomen, chest
from engine.physics.phantoms.phantom import Phantom, check_request
from engine.physics.phantoms.shapes import Array, Warp, ellipse, normals, offset, tube
from engine.physics.phantoms.texture import stream
from engine.physics.phantoms.tissue import AIR_HU, LABEL, NAMES, Body

REGIONS = ("chest", "abdomen")
FOV_MM = 380.0
# half the field of view less a margin: nobody is cut off at the sides
REACH_MM = 181.0


def ct_phantom(
    seed: int, size: int = 256, region: str | None = None, lesions: bool = True
) -> Phantom:
    """A CT slice of the chest or the abdomen (None: the seed decides) in HU.

    Rows run anterior to posterior, columns from the patient's right to left. With
    `lesions=False` the same slice comes without its lesions, everything else bit for bit the same.
    """
    check_request(seed, size, region, REGIONS)
    rng = stream(seed, "body")
    chosen = region or REGIONS[int(rng.integers(2))]
    upper = bool(rng.random() < 0.5)
    painter = chest if chosen == "chest" else abdomen
    warp = Warp(
        stream(seed, "warp"),
        amplitude_mm=rng.uniform(3, 7),
        scale=(rng.uniform(0.97, 1.18), rng.uniform(1.02, 1.2)),
        turn_rad=rng.normal(0, 0.025),
    )
    body = Body(seed, size, FOV_MM, warp)
    skin, wall = _skin(body, painter.outline(body, upper), chosen)
    inside = body.canvas.cover(*skin)
    body.canvas.paint(inside, 18.0 + 6 * body.soft, LABEL["skin"])
    body.canvas.fill([offset(o, -1.9) for o in skin], body.fat, label=LABEL["fat"])
    _glands(body, skin[1:])
    body.canvas.fill(wall, body.muscle, label=LABEL["muscle"])
    level = painter.paint(body, upper)
    if lesions:
        (chest.nodules if chosen == "chest" else abdomen.liver_lesions)(body)
    table = _table(body, skin)
    image = _finish(body, np.maximum(inside, table))
    medium = "with contrast medium" if body.contrast else "without contrast medium"
    return Phantom(
        image=image,
        pixel_mm=FOV_MM / size,
        description=f"Synthetic CT of the {chosen} ({level}), {medium}, seed {seed}",
        labels=body.canvas.labels,
        names=dict(enumerate(NAMES)),
        lesions=tuple(body.lesions),
    )


def _skin(body: Body, wall: Array, region: str) -> tuple[list[Array], Array]:
    """The outline of the skin around that of the muscles; fits the body into the field of view."""
    rng = body.rng("skin")
    thin, thick = rng.uniform(5, 9), rng.uniform(8, 26 if region == "abdomen" else 18)
    out = normals(wall, closed=True)
    front, back = np.abs(wall[:, 1] * (wall[:, 1] < 0)) / 90, wall[:, 1].clip(0) / 100
    depth = thin + (thick - thin) * (0.45 + 0.55 * front - 0.25 * back).clip(0, 1)
    depth = depth - 3 * np.exp(-((wall[:, 0] / 18) ** 2)) * (out[:, 1] > 0)
    outlines = [offset(wall, depth)]
    if region == "chest" and rng.random() < 0.5:
        a, b = rng.uniform(44, 56), rng.uniform(20, 36)
        outlines += [ellipse(side * 72, -84, a, b, side * 0.35) for side in (-1.0, 1.0)]
    warp = body.canvas.warp
    assert warp is not None
    points = warp(np.concatenate(outlines))
    low, high = points.min(0), points.max(0)
    warp.shift_mm = (-0.5 * (low[0] + high[0]), -0.5 * (low[1] + high[1]) + rng.uniform(-12, 4))
    fit = min(1.0, 2 * REACH_MM / float(high[0] - low[0]))
    warp.scale = (warp.scale[0] * fit, warp.scale[1] * fit)
    warp.shift_mm = (warp.shift_mm[0] * fit, warp.shift_mm[1] * fit)
    return outlines, wall


def _glands(body: Body, breasts: list[Array]) -> None:
    """Strands of glandular tissue, densest in the middle of the breast."""
    if not breasts:
        return
    density = body.rng("glands").uniform(-0.4, 0.9)
    strands = (1.2 * body.field("glands", 6.0, 40.0, power=1.0) + density).clip(0, 1)
    cores = [0.72 * (b - b.mean(0)) + b.mean(0) + [0, -4] for b in breasts]
    soft = scipy.ndimage.gaussian_filter(body.canvas.cover(*cores), 5 / body.canvas.pixel_mm)
    body.canvas.paint(soft * strands, 32.0 + 5 * body.soft)


def _table(body: Body, skin: list[Array]) -> Array:
    """A thin curved shell under the patient, drawn unbent."""
    rng = body.rng("table")
    canvas = body.canvas
    bottom = (canvas.place(np.concatenate(skin))[:, 1].max() / canvas.size - 0.5) * FOV_MM
    empty = np.zeros_like(canvas.image)
    if rng.random() < 0.35 or bottom > 165:
        return empty
    x = np.linspace(-1.05, 1.05, 41) * rng.uniform(120, 185)
    y = bottom + rng.uniform(7, 12) - (x / rng.uniform(38, 55)) ** 2
    kept, canvas.warp = canvas.warp, None
    shell = canvas.cover(tube(np.stack([x, y], axis=-1), rng.uniform(2.0, 3.5)))
    canvas.warp = kept
    free = shell * (canvas.image <= AIR_HU)
    canvas.paint(free, float(rng.uniform(-250, 100)), LABEL["table"])
    return free


def _finish(body: Body, solid: Array) -> Array:
    """Blur by the scanner's resolution, add its grain, keep the air outside exactly -1000."""
    pixel = body.canvas.pixel_mm
    image = scipy.ndimage.gaussian_filter(body.canvas.image, 0.72 / pixel, truncate=3.0)
    grain = body.rng("grain").uniform(7, 12)
    image += grain * body.field("grain", 2.0, 11.0) * (solid > 0)
    image[solid == 0] = AIR_HU
    return image.clip(AIR_HU, 3000.0).astype(np.float32)


WAVES, WAVE_MM = 6, 2.5  # how many bend the body, and by how much each (SD)
BALLS = 60
SOFT_HU = (-120.0, 130.0)  # where balls may lie


class TorsoStack:
    """Slices of one phantom, drawn when they are asked for: ``image(number)`` in HU."""

    def __init__(
        self, seed: int, size: int = 256, count: int = 60, spacing_mm: float = 3.0
    ) -> None:
        self.seed, self.size, self.count, self.spacing_mm = seed, size, count, spacing_mm

    @cached_property
    def base(self) -> Phantom:
        return ct_phantom(self.seed, self.size, "abdomen")

    @cached_property
    def balls(self) -> Array:
        """Rows of (x, y, z, radius, contrast): mm from the centre and the first slice, and HU."""
        rng = stream(self.seed, "balls")
        low, high = SOFT_HU
        rows, columns = np.nonzero((self.base.image > low) & (self.base.image < high))
        chosen = rng.integers(len(rows), size=BALLS)
        x, y = ((axis[chosen] + 0.5) * self.base.pixel_mm - FOV_MM / 2 for axis in (columns, rows))
        z = rng.uniform(0, self.count * self.spacing_mm, BALLS)
        contrast = rng.uniform(30, 120, BALLS) * rng.choice([-1.0, 1.0], BALLS)
        return np.stack([x, y, z, rng.uniform(4, 14, BALLS), contrast], axis=-1)

    def image(self, number: int) -> Array:
        z, pixel = number * self.spacing_mm, self.base.pixel_mm
        axis = (np.arange(self.size) + 0.5) * pixel - FOV_MM / 2
        y, x = np.meshgrid(axis, axis, indexing="ij")
        image = self.base.image.astype(np.float64)
        near = np.abs(self.balls[:, 2] - z) < self.balls[:, 3] + pixel
        for ball_x, ball_y, ball_z, radius, contrast in self.balls[near]:
            distance = np.sqrt((x - ball_x) ** 2 + (y - ball_y) ** 2 + (z - ball_z) ** 2)
            # a soft edge of about a pixel, and no lump of tissue in the air
            cover = ((radius - distance) / (1.5 * pixel) + 0.5).clip(0, 1)
            image += contrast * cover * (self.base.image > -500)
        dx, dy = self._bend(x, y, z)
        rows, columns = ((at + FOV_MM / 2) / pixel - 0.5 for at in (y + dy, x + dx))
        bent = scipy.ndimage.map_coordinates(image, [rows, columns], order=3, cval=AIR_HU)
        return bent.clip(AIR_HU, 3000.0).astype(np.float32)

    def _bend(self, x: Array, y: Array, z: float) -> tuple[Array, Array]:
        """How far to the side a slice takes its tissue from, in mm."""
        rng = stream(self.seed, "bend")
        moved = []
        for _ in range(2):
            total = np.zeros_like(x)
            for _ in range(WAVES):
                length = rng.uniform(120, 400, 2) * rng.choice([-1.0, 1.0], 2)
                along_z, phase = 2 * np.pi / rng.uniform(120, 360), rng.uniform(0, 2 * np.pi)
                wave = np.cos(2 * np.pi * (x / length[0] + y / length[1]) + along_z * z + phase)
                total += WAVE_MM * rng.normal() * wave
            moved.append(total)
        return moved[0], moved[1]
