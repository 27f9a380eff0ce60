"""Axial brain MR slices: complex images with a smooth phase."""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from engine.physics.phantoms.head import CONTRASTS, FOV_MM, LABEL, NAMES, Head, Sulci, fold
from engine.physics.phantoms.phantom import Lesion, Phantom, check_request
from engine.physics.phantoms.shapes import (
    Array,
    arc,
    blob,
    ellipse,
    mirrored,
    offset,
    smooth,
    tube,
    xy,
)
from engine.physics.phantoms.texture import stream
from engine.spec.errors import RequestError

LEVELS = ("basal ganglia", "ventricle bodies", "centrum semiovale")
HEAD = [(0, -97), (27, -92), (50, -75), (66, -46), (73, -10), (74, 24), (66, 57), (47, 81)]
HEAD += [(22, 94), (0, 97)]


def brain_mr(
    seed: int,
    size: int = 256,
    contrast: str | None = None,
    lesions: bool = True,
    noise_sd: float = 0.0,
) -> Phantom:
    """An axial slice of the head (contrast None: the seed decides), 0.99 quantile of |x| = 1.

    The anatomy depends on the seed only, so one seed in three contrasts is one patient.
    `noise_sd` adds complex Gaussian noise of that standard deviation per component.
    """
    check_request(seed, size, contrast, CONTRASTS)
    if not 0 <= noise_sd < np.inf:
        raise RequestError(f"Phantom noise {noise_sd!r}: use a standard deviation of 0 or more.")
    rng = stream(seed, "brain choice")
    any_contrast = CONTRASTS[int(rng.integers(3))]
    level = LEVELS[int(rng.choice(3, p=[0.45, 0.3, 0.25]))]
    head = Head(seed, size, contrast or any_contrast)
    sulci = _draw(head, level)
    if lesions:
        _lesions(head, sulci)
    magnitude, gain = _finish(head)
    image = magnitude * np.exp(1j * _phase(head))
    if noise_sd > 0:
        noise = head.rng("noise").standard_normal((2, size, size), dtype=np.float32)
        image = image + noise_sd * (noise[0] + 1j * noise[1])
    return Phantom(
        image=image.astype(np.complex64),
        pixel_mm=FOV_MM / size,
        description=f"Synthetic {contrast or any_contrast} brain MR ({level}), seed {seed}",
        labels=head.canvas.labels,
        names=dict(enumerate(NAMES)),
        lesions=tuple(_seen(lesion, gain) for lesion in head.lesions),
    )


def _draw(head: Head, level: str) -> Sulci:
    """Everything but lesions; returns the folds, which lesions keep away from."""
    rng = head.rng("layers")
    outer = smooth(mirrored(HEAD))
    if level == "centrum semiovale":
        outer = outer * rng.uniform(0.88, 0.95)
    angle = np.linspace(0, 2 * np.pi, len(outer), endpoint=False)
    uneven = 1 + 0.18 * np.cos(angle * 2 + rng.uniform(0, 6)) + 0.1 * np.cos(angle * 5)
    fat = rng.uniform(3.0, 6.5) * uneven
    outer_table = fat + 1.6 + rng.uniform(1.4, 2.2)
    diploe = outer_table + rng.uniform(1.5, 3.6) * uneven
    inner_table = diploe + rng.uniform(1.4, 2.2)
    head.fill(outer, "skin")
    head.fill(offset(outer, -1.6), "fat")
    _scalp(head, outer, fat)
    head.fill(offset(outer, -fat - 1.6), "skull")
    head.fill(offset(outer, -outer_table), "marrow")
    head.fill(offset(outer, -diploe), "skull")
    dura = offset(outer, -inner_table)
    head.fill(dura, "csf")
    hull = offset(dura, -rng.uniform(0.6, 1.8) * (1 + 0.5 * np.cos(3 * angle + rng.uniform(0, 6))))
    sulci = _cerebrum(head, hull, level)
    head.fill(ellipse(0, dura[:, 1].max() - 3.0, 4.5, 3.6), "vein")
    return sulci


def _scalp(head: Head, outer: Array, fat: Array) -> None:
    """Muscle at the temples and the vessels and septa of the scalp."""
    rng = head.rng("scalp")
    ring = head.canvas.cover(offset(outer, -1.6)) - head.canvas.cover(offset(outer, -fat - 1.6))
    septa = np.exp(-((head.field("septa", 5.0, 25.0) / 0.25) ** 2)) * 0.55
    head.paint(ring * septa * head.field("patchy", 15.0).clip(0, 1), "muscle")
    middle = offset(outer, -0.62 * fat - 1.6)
    for side in (-1.0, 1.0):
        line = arc(middle, side * 0.12, side * (0.22 + rng.uniform(0, 0.05)), 21)
        swell = np.sin(np.linspace(0, np.pi, 21)) ** 0.6
        head.fill(tube(line, 0.3 + 1.1 * np.mean(fat) * swell), "muscle", ring)
    for place in rng.uniform(0, 1, 14):
        spot = arc(middle, place, place, 1)[0]
        head.fill(ellipse(*xy(spot), 1.0, 0.8), "vein" if rng.random() < 0.6 else "csf", ring)


def _cerebrum(head: Head, hull: Array, level: str) -> Sulci:
    rng = head.rng("cerebrum")
    canvas = head.canvas
    top, bottom = hull[:, 1].min(), hull[:, 1].max()
    atrophy = rng.uniform(0.65, 1.6)
    size = rng.uniform(0.75, 1.4)
    fissures = []
    keep_out: list[tuple[float, float, float, float]]
    if level == "centrum semiovale":
        spans = [(top, bottom)]
        keep_out = [(26, 2, 7, 30), (-26, 2, 7, 30)]
    elif level == "ventricle bodies":
        spans = [(top, -37), (34, bottom)]
        keep_out = [(0, 0, 27, 38), (26, 4, 11, 32), (-26, 4, 11, 32)]
    else:
        spans = [(top, -41), (36, bottom)]
        keep_out = [(0, -4, 36, 36), (0, 22, 32, 26)]
    for start, stop in spans:
        y = np.linspace(start, stop, 24)
        fissures.append(np.stack([0.8 * np.sin(y / 9 + rng.uniform(0, 6)), y], axis=-1))
    sulci = fold(rng, hull, fissures, keep_out, atrophy)
    if level == "basal ganglia":
        _sylvian(rng, sulci)
    inside = canvas.cover(hull)
    distance = sulci.distance(canvas, inside > 0)
    # a sheet cut obliquely looks thicker
    oblique = head.field("oblique", 14.0, 60.0).clip(-0.8, 2.0)
    thickness = rng.uniform(3.1, 3.8) * (1 + 0.22 * oblique)
    head.fill(hull, "grey")
    head.barred.fill(hull, 0.0)
    white = inside * ((distance - thickness) / 1.6 + 0.5).clip(0, 1)
    head.paint(white, "white")
    head.fill(sulci.tubes, "csf", inside, sulci.weights)
    for line in fissures:
        head.fill(tube(line, 0.7), "nucleus", inside)
    if level == "basal ganglia":
        _ganglia(head, rng, size)
    elif level == "ventricle bodies":
        _bodies(head, rng, size)
    return sulci


def _sylvian(rng: np.random.Generator, sulci: Sulci) -> None:
    for side in (-1.0, 1.0):
        shift = rng.normal(0, 2, 2)
        stem = np.array([(66, -14), (56, -10), (47, -8), (41, -6)]) * [side, 1] + shift
        sulci.add(smooth(stem, closed=False, per_segment=8), np.linspace(2.6, 1.6, 25))
        insula = np.array([(37, -24), (41, -12), (42, 2), (38, 14)]) * [side, 1] + shift
        sulci.add(smooth(insula, closed=False, per_segment=8), 1.8)


def _ganglia(head: Head, rng: np.random.Generator, size: float) -> None:
    for side in (-1.0, 1.0):
        head.deep(blob(rng, side * 10.5, 8, 9.0, 14.5, side * -0.35, 0.05), "nucleus", soft_mm=1.0)
        head.deep(blob(rng, side * 28, -6, 5.6, 17, side * -0.22, 0.05), "nucleus", soft_mm=1.0)
        head.deep(blob(rng, side * 21.5, -3, 4.2, 9.5, side * -0.4, 0.05), "pallidum", soft_mm=1.0)
        head.deep(blob(rng, side * 13.5, -23, 5.5, 9.0, side * 0.35, 0.05), "nucleus", soft_mm=1.0)
        horn = smooth(
            np.array([(1.8, -15), (4.5, -22), (9.0, -29), (14, -35)]) * [side, 1], closed=False
        )
        swell = np.sin(np.linspace(0.25, np.pi * 0.93, len(horn)))
        head.deep(tube(horn, 1.0 + 6.5 * size * swell), "csf")
        tail = smooth(np.array([(17, 25), (23, 33), (26, 43), (24, 52)]) * [side, 1], closed=False)
        swell = np.sin(np.linspace(0.5, np.pi * 0.95, len(tail)))
        head.deep(tube(tail, 1.0 + 7.5 * size * swell), "csf")
        head.deep(blob(rng, side * 21, 30, 2.6, 5.0, side * -0.5, 0.15), "plexus")
    head.deep(ellipse(0, 5, 1.2 + 1.3 * size, 12), "csf")
    head.deep(ellipse(0, -17, 0.6, 8), "white")
    cistern = blob(rng, 0, 29, 9, 3.5, 0.0, 0.15)
    head.deep(cistern, "csf")
    head.deep(ellipse(0, 27, 2.2, 2.8), "vein")


def _bodies(head: Head, rng: np.random.Generator, size: float) -> None:
    for side in (-1.0, 1.0):
        spine = np.array([(8, -27), (6.5, -12), (8, 4), (12, 18), (19, 29)]) * [side, 1]
        line = smooth(spine, closed=False)
        swell = np.sin(np.linspace(0.3, np.pi * 0.95, len(line))) ** 0.7
        head.deep(tube(line + np.array([side * 7.0, -2]), 5.0 * swell), "nucleus", soft_mm=1.2)
        head.deep(tube(line, 0.8 + 8.5 * size * swell), "csf")
        head.deep(tube(line[18:30] + np.array([side * 0.5, 1]), 2.0), "plexus")


def _lesions(head: Head, sulci: Sulci) -> None:
    rng = head.rng("lesions")
    canvas = head.canvas
    places = rng.uniform([-55, -65], [55, 65], (400, 2))
    room = scipy.ndimage.distance_transform_edt(head.barred.image < 0.5) * head.barred.pixel_mm
    cols, rows = np.floor(head.barred.place(places)).astype(int).T
    deep = sulci.clearance(canvas, canvas.place(places)) > 7.5
    places = places[deep & (room[rows, cols] > 4.0)]
    if len(places) == 0:
        return
    kind = rng.random()
    if kind < 0.15:
        _tumour(head, rng, places[0])
    elif kind < 0.7:
        for centre in places[: int(rng.integers(2, 9))]:
            radius = float(rng.uniform(1.6, 4.2))
            # plaques point away from the ventricles
            angle = np.arctan2(centre[1], centre[0])
            shape = blob(rng, *xy(centre), radius * 1.35, radius * 0.8, angle, 0.10)
            head.fill(offset(shape, 1.5), "plaque", weights=0.4, soft_mm=0.8)
            head.fill(shape, "plaque", soft_mm=0.4)
            _report(head, "plaque", centre, radius)


def _tumour(head: Head, rng: np.random.Generator, centre: Array) -> None:
    radius = float(rng.uniform(7, 13))
    brain = np.isin(head.canvas.labels, [LABEL[n] for n in ("grey", "white", "nucleus", "csf")])
    halo = blob(rng, *xy(centre), radius * 1.9, radius * 1.7, 0.0, 0.16, orders=7)
    head.fill(halo, "oedema", np.isin(head.canvas.labels, [LABEL["white"]]).astype(np.float32))
    rim = blob(rng, *xy(centre), radius, radius * 0.9, 0.5, 0.10)
    head.fill(rim, "tumour rim", brain.astype(np.float32))
    head.fill(centre + 0.68 * (rim - centre), "tumour core", brain.astype(np.float32))
    _report(head, "tumour core", centre, 0.68 * radius)


def _report(head: Head, name: str, centre: Array, radius: float) -> None:
    x, y = head.canvas.place(centre)[0] - 0.5
    contrast = head.signal(name) - head.signal("white")
    head.lesions.append(Lesion(name, float(y), float(x), radius, contrast))


def _seen(lesion: Lesion, gain: Array) -> Lesion:
    """The lesion's contrast in the units of the finished image."""
    row, col = round(lesion.row), round(lesion.col)
    contrast = float(lesion.contrast * gain[row, col])
    return Lesion(lesion.kind, lesion.row, lesion.col, lesion.radius_mm, contrast)


def _finish(head: Head) -> tuple[Array, Array]:
    """Resolution, receive field and scale; returns the magnitude and signal-to-image factor."""
    canvas = head.canvas
    x, y = (g / (0.5 * FOV_MM) for g in canvas.grid())
    image = scipy.ndimage.gaussian_filter(canvas.image, 0.48 / canvas.pixel_mm, truncate=3.0)
    a = head.rng("bias").normal(0, [0.06, 0.06, 0.12, 0.12, 0.05])
    bias = np.exp(a[0] * x + a[1] * y + abs(a[2]) * x**2 + abs(a[3]) * y**2 + a[4] * x * y)
    gain = bias.astype(np.float32)
    magnitude = image * gain
    scale = np.float32(1 / np.quantile(magnitude, 0.99))
    return magnitude * scale, gain * scale


def _phase(head: Head) -> Array:
    """A few radians of low order, as a real receive chain and shim leave them."""
    rng = head.rng("phase")
    x, y = (g / (0.5 * FOV_MM) for g in head.canvas.grid())
    c = rng.normal(0, [1.0, 1.0, 0.7, 0.7, 0.7])
    phase = c[0] * x + c[1] * y + c[2] * x * x + c[3] * y * y + c[4] * x * y
    return phase + rng.uniform(-np.pi, np.pi) + 0.4 * head.field("phase field", 90.0)
