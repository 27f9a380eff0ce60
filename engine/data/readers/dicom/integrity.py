"""What a DICOM stack is looked at for before a run: numbers, compression, text, field of view."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydicom import uid
from scipy.ndimage import binary_dilation, binary_erosion

from engine.data.dataset import ImageDataset
from engine.data.images.air import AIR_HU, LOWEST_HU, AirFloor
from engine.data.readers.dicom.geometry import Stack, make_stack, same_places, sort_along_normal
from engine.data.readers.dicom.image import SliceImage
from engine.data.readers.dicom.kinds import uid_name
from engine.data.readers.dicom.pixels import is_inverted, stored_values
from engine.data.readers.dicom.series import Series
from engine.spec.errors import RequestError

LOSSY = {uid.JPEGBaseline8Bit, uid.JPEGExtended12Bit, uid.JPEGLSNearLossless}
MOST_PIXELS = 1 << 22  # of a slice that is looked at when a series is opened
FEWEST_PIXELS = 64  # of a side: smaller images are details
MOST_COMPARED = 500  # slices that share their place with another one
NO_AIR_HU = -300.0  # without anything below it the numbers are hardly HU
TISSUE_HU = -200.0  # at the edge of the field of view: body, and not air, clothes or a mattress
CUT_OFF = 0.01  # of the edge
THIN_MM = 6.0  # half of what is not thinner than a table
HIGHEST_FILL_HU = -900.0
SMALLEST_DISC = 0.45  # of the image's side
DISC, FULL_DISC = 0.97, 0.99  # of the radius that is looked at, and how full it must be
RIM_PX = 3  # scanners leave a few pixels between what they fill and what they reconstruct


def settled_stack(slices: Sequence[SliceImage], modality: str) -> Stack:
    """The stack of a series, of which images that are the same pixel for pixel are there once."""
    stack = make_stack(slices, modality)
    copies = _equal_pixels(stack.slices) if stack.slices[0].placement else set()
    if copies:
        stack = make_stack([image for image in slices if id(image) not in copies], modality)
        stack = replace(stack, copies=len(copies))
    return stack


def _equal_pixels(ordered: Sequence[SliceImage]) -> set[int]:
    """The ids of images that only repeat another one of the same place."""
    _, heights = sort_along_normal(ordered)
    groups = same_places(heights)
    if sum(map(len, groups)) > MOST_COMPARED:
        return set()
    copies = set()
    for group in groups:
        seen = set()
        for number in group:
            try:
                pixels = stored_values(ordered[number])[0]
            except RequestError:
                continue  # reading it for a run will say why
            digest = hashlib.sha256(np.ascontiguousarray(pixels).tobytes()).digest()
            if digest in seen:
                copies.add(id(ordered[number]))
            seen.add(digest)
    return copies


def check_series(dataset: ImageDataset, series: Series, stack: Stack) -> None:
    """What the places of the slices say, and which stack of the series this is."""
    for found in stack.checks:
        dataset.check(found.name, found.verdict, found.sentence, found.fix)
    if series.part:
        which = f"told apart by {series.part_by}: this is {series.part}"
        if not series.part_by:
            which = "and these images belong to none of them"
        dataset.check(
            "stacks",
            "corrected",
            f"The series holds several stacks in the same places, {which}.",
            "The others are in the list of series.",
        )
    if copies := series.copies + stack.copies:
        dataset.check(
            "copies",
            "corrected",
            f"{copies} slices are there twice (same SOPInstanceUID or the same pixels in the same "
            "place); one was taken.",
        )


def check_pixels(dataset: ImageDataset, slices: Sequence[SliceImage], modality: str) -> None:
    """Where the numbers come from, and what is unusual about them."""
    _check_values(dataset, slices, modality)
    _check_shape(dataset, modality)
    lossy = [image for image in slices if image.lossy or image.pixels.syntax in LOSSY]
    if lossy:
        fix = "Fine textures are the compression's, not the scanner's: use the originals."
        dataset.check("compression", "doubtful", "The images were compressed with loss.", fix)
    else:
        dataset.check("compression", "good", "No image says that it was compressed with loss.")
    if any(image.burned_in for image in slices):
        dataset.check(
            "burned-in text",
            "doubtful",
            "Text is burned into the pixels (BurnedInAnnotation YES); it may name the patient.",
            "It is simulated and reconstructed like the body: use images without it.",
        )
    if any(image.is_mosaic for image in slices):
        dataset.check(
            "mosaic",
            "blocking",
            "Every image is a mosaic of many small slices side by side (ImageType MOSAIC).",
            "Have the scanner or a converter write its slices one by one.",
        )


def _check_values(dataset: ImageDataset, slices: Sequence[SliceImage], modality: str) -> None:
    first, sentences = slices[0], []
    rescales = {(image.rescale.slope, image.rescale.intercept) for image in slices}
    slope, intercept = first.rescale.slope, first.rescale.intercept
    shown = f"{slope:g} * stored {intercept:+g}" if len(rescales) == 1 else "each slice its own"
    stated = all(image.rescale.stated for image in slices)
    dataset.add_fact("values", shown, "RescaleSlope, RescaleIntercept" if stated else "assumed")
    if modality == "CT" and not stated:
        sentences.append(
            "RescaleSlope or RescaleIntercept is missing: stored numbers are taken as HU."
        )
    if modality == "CT" and any(image.rescale.type == "US" for image in slices):
        sentences.append(
            "The unit of the numbers is given as unspecified (RescaleType US); taken as HU."
        )
    if sentences:
        fix = "Look at the image: water must be near 0 HU and air near -1000."
        dataset.check("values", "doubtful", " ".join(sentences), fix)
    elif modality == "CT":
        origin = "by RescaleSlope and RescaleIntercept"
        dataset.check("values", "good", f"The numbers are HU {origin}.")
    if len(rescales) > 1:
        dataset.warn(
            f"The rescale differs among the slices ({len(rescales)} kinds); each uses its own."
        )
    paddings = {image.padding for image in slices} - {None}
    if paddings:
        fill = f"{AIR_HU:g} HU" if modality == "CT" else "0"
        low, high = next(iter(paddings)) or (0, 0)
        shown = f"stored {low}" if low == high else f"stored {low} to {high}"
        dataset.add_fact("padding", f"{shown} -> {fill}", "PixelPaddingValue")
    if any(image.pixels.photometric == "MONOCHROME1" for image in slices):
        done = "inverted" if is_inverted(first, modality) else "kept as they are"
        dataset.warn(
            f"MONOCHROME1: small stored numbers are meant to be shown white; values are {done}."
        )
    dataset.add_fact("transfer syntax", uid_name(first.pixels.syntax), "TransferSyntaxUID")


def _check_shape(dataset: ImageDataset, modality: str) -> None:
    if dataset.pixel_mm is None:
        sentence = "The size of a pixel is not known: PixelSpacing is missing."
        dataset.check("pixel size", "doubtful", sentence, "Say it with ⟦pixel_mm⟧.")
        return
    rows, columns = dataset.pixel_mm
    if abs(rows - columns) <= 1e-3 * rows:
        dataset.check("pixel size", "good", f"The pixels are square, {rows:g} mm wide.")
    elif modality == "CT":
        sentence = f"The pixels are not square: {rows:g} x {columns:g} mm."
        fix = "Resample the images: a CT scan can be simulated of square pixels only."
        dataset.check("pixel size", "blocking", sentence, fix)


def look_at(dataset: ImageDataset) -> None:
    """Read the middle slice and both ends of a CT stack: unit, air and truncation."""
    if dataset.modality != "CT" or dataset.image_size[0] * dataset.image_size[1] > MOST_PIXELS:
        return
    floor = AirFloor(dataset)
    last = dataset.count - 1
    numbers = sorted({0, last // 2, last})
    lowest, edges = np.inf, []
    for number in numbers:
        try:
            raw, values = floor.below(number), floor(number)
        except RequestError:  # its sentence names the file, and that may name the patient
            sentence = f"Slice {number} (counted from 0) cannot be read; others were not looked at."
            dataset.check("pixels", "doubtful", sentence, "Leave it out of the run.")
            continue
        lowest = min(lowest, float(values.min()))
        edges.append(share_of_edge(raw, values, dataset.pixel_mm[1] if dataset.pixel_mm else 1.0))
    floor.say()
    dataset.read = floor
    if not edges:
        return
    if lowest > NO_AIR_HU:
        dataset.check(
            "values",
            "doubtful",
            f"The smallest number is {lowest:g}: nothing is as empty as air (-1000 HU).",
            "If these are not HU, nothing that is said in HU will be right.",
        )
    cut = max(edges)
    if min(dataset.image_size) < FEWEST_PIXELS:
        return
    if cut > CUT_OFF:
        dataset.check(
            "field of view",
            "doubtful",
            f"The body reaches the edge of the field of view on up to {100 * cut:.0f} % of it: "
            "what lies beyond is not in the image.",
            "The simulated scan is of a body that is cut off; near the edge results mean little.",
        )
    else:
        dataset.check("field of view", "good", "The body lies inside the field of view.")


def share_of_edge(raw: np.ndarray, values: np.ndarray, pixel_mm: float = 1.0) -> float:
    """Which part of the edge of what the scanner reconstructed shows the body.

    The edge is the image's, or that of the disc inside which anything is reconstructed: scanners
    fill the corners with one number. What is thin there is the table, not the body.
    """
    inside = _reconstructed(raw)
    core = binary_erosion(inside, iterations=RIM_PX, border_value=0)
    edge = core & ~binary_erosion(core, border_value=0)
    steps = min(max(round(THIN_MM / pixel_mm), 1), max(raw.shape) // 16)
    thick = binary_erosion((values > TISSUE_HU) | ~inside, iterations=steps, border_value=1)
    body = binary_dilation(thick & core, iterations=steps) & (values > TISSUE_HU)
    return float(body[edge].mean()) if edge.any() else 0.0


def _reconstructed(raw: np.ndarray) -> np.ndarray:
    """The disc about the image's centre outside of which is the corners' number; else all of it."""
    everything = np.ones(raw.shape, dtype=bool)
    corners = {float(raw[row, column]) for row in (0, -1) for column in (0, -1)}
    fill = corners.pop()
    if corners or fill > HIGHEST_FILL_HU:
        return everything
    inside = raw != fill
    rows, columns = (np.arange(n) - (n - 1) / 2 for n in raw.shape)
    distance = np.hypot(rows[:, None], columns)
    if not inside.any():
        return everything
    radius = distance[inside].max()
    if fill >= LOWEST_HU and radius < SMALLEST_DISC * max(raw.shape):
        return everything  # a round body in air without noise
    return inside if inside[distance < DISC * radius].mean() > FULL_DISC else everything
