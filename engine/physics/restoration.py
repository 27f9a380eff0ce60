"""From an image and a degradation to a Problem: deblurring and super-resolution."""

from __future__ import annotations

from engine.physics.blur import Blur, SuperResolution, gaussian_kernel, motion_kernel
from engine.physics.noise import gaussian
from engine.physics.operator import Operator
from engine.physics.problem import Problem
from engine.physics.simulate import Slices, mr_scale, per_slice
from engine.physics.units import IntensityMap
from engine.spec.acquisition import RestorationAcquisition
from engine.spec.errors import RequestError

# SD of an image in a prior's units, near enough to choose the Wiener filter of the first image.
SIGNAL_SD = 0.5
LEAST_WIENER = 1e-3


def restoration_operator(
    settings: RestorationAcquisition, shape: tuple[int, int], channels: int
) -> Operator:
    """The degradation as an operator on images of ``shape``."""
    if settings.task == "super-resolution":
        return SuperResolution(settings.factor, shape, channels, settings.boundary)
    wiener = max(LEAST_WIENER, (settings.image_noise / SIGNAL_SD) ** 2)
    if settings.task == "deblur-gaussian":
        kernel = gaussian_kernel(settings.blur_sd)
        about: dict[str, object] = {"kernel": "gaussian", "sd": settings.blur_sd}
    else:
        kernel = motion_kernel(settings.motion_length, settings.motion_angle)
        about = {
            "kernel": "motion",
            "length": settings.motion_length,
            "angle_deg": settings.motion_angle,
        }
    return Blur(kernel, shape, channels, settings.boundary, wiener=wiener, about=about)


def restoration_problem(
    source: Slices, settings: RestorationAcquisition, intensity: IntensityMap, seed: int = 0
) -> Problem:
    """Degrade ``source`` as ``settings`` say, in the units of ``intensity``.

    Of MR images the scale belongs to the data, as in a simulated scan; real and imaginary part
    are degraded alike.
    """
    if (intensity.kind == "mr") != (source.modality == "MR"):
        raise RequestError(f"This prior is not for {source.modality} images.")
    if source.modality == "MR":
        intensity = IntensityMap("mr", mr_scale(source.images))
    reference = intensity.to_normalised(source.images)
    channels, height, width = reference.shape[1:]
    operator = restoration_operator(settings, (height, width), channels)
    measurement = operator.forward(reference)
    if settings.image_noise > 0:
        measurement = per_slice(gaussian, measurement, settings.image_noise, source, seed)
    return Problem(
        operator=operator,
        measurement=measurement,
        intensity=intensity,
        modality=source.modality,
        noise_sigma=settings.image_noise,
        reference=reference,
        pixel_mm=(source.pixel_mm, source.pixel_mm),
        slices=source.numbers,
        provenance={"simulated": True, "task": settings.task},
    )
