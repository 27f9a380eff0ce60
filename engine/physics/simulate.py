"""From an image and an acquisition to a Problem with a known reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from engine.physics.aperture import ApertureCT
from engine.physics.fourier import centred_fft2, ifft2c, to_channels, to_complex
from engine.physics.geometry import CTGeometry
from engine.physics.masks import build_mask
from engine.physics.mri import MultiCoilMRI, SingleCoilMRI
from engine.physics.noise import complex_gaussian, gaussian, poisson_line_integrals
from engine.physics.operator import Operator
from engine.physics.plugins import make_ct_operator
from engine.physics.problem import Problem
from engine.physics.projection import project
from engine.physics.random import MEASUREMENT, make_generator
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import (
    IntensityMap,
    hu_to_mu,
    noise_scale,
    normalise_line_integrals,
    physical_line_integrals,
)
from engine.spec.acquisition import CTAcquisition, MRIAcquisition
from engine.spec.errors import RequestError

# Pixels are no exact picture of what a finer grid holds: with this share DC-PnPDP reconstructs 20
# views of one best. On the reconstruction's own grid there is next to no such error.
FINE_MODEL_ERROR = 2e-5


@dataclass(frozen=True)
class Slices:
    """Loaded images ``[N, C, H, W]``: HU (CT, one channel) or complex as two channels (MR)."""

    images: Tensor
    modality: str
    pixel_mm: float
    numbers: tuple[int, ...] = (0,)  # which slices of the input these are
    fine: Tensor | None = None  # the same images on a finer grid, to simulate scans of


def simulate(
    source: Slices,
    acquisition: CTAcquisition | MRIAcquisition,
    intensity: IntensityMap,
    seed: int = 0,
) -> Problem:
    """Measure ``source`` as ``acquisition`` says, in the units of ``intensity``."""
    if isinstance(acquisition, CTAcquisition):
        return simulate_ct(source, acquisition, intensity, seed)
    return simulate_mri(source, acquisition, seed)


def ct_geometry(acquisition: CTAcquisition, size: tuple[int, int], pixel_mm: float) -> CTGeometry:
    is_fan = acquisition.geometry == "fan"
    return CTGeometry.sparse_view(
        views=acquisition.views,
        angular_range_deg=acquisition.angular_range,
        start_deg=acquisition.start_angle,
        size=size,
        pixel_mm=pixel_mm,
        kind=acquisition.geometry,
        detectors=acquisition.detectors,
        pitch_mm=acquisition.pitch_mm,
        source_origin_mm=acquisition.source_origin_mm if is_fan else None,
        source_detector_mm=acquisition.source_detector_mm if is_fan else None,
    )


def simulate_ct(
    source: Slices, acquisition: CTAcquisition, intensity: IntensityMap, seed: int
) -> Problem:
    if intensity.kind != "hu":
        raise RequestError("This prior is for MR images; choose a CT prior.")
    size = (source.images.shape[-2], source.images.shape[-1])
    geometry = ct_geometry(acquisition, size, source.pixel_mm)
    operator = make_ct_operator(
        geometry, backend=acquisition.backend, filter_name=acquisition.fbp_filter
    )
    if acquisition.aperture and acquisition.fine_grid > 1:
        operator = ApertureCT(operator)
    noise_sigma: Tensor | float = 0.0
    weights = None
    provenance: dict[str, object] = {"simulated": True}
    model_error = Problem.model_error
    if acquisition.fine_grid > 1:
        fine, images = finer(source, acquisition.fine_grid)
        reference, lengths = intensity.to_normalised(images), operator.ray_lengths()
        clean = fine_line_integrals(fine, geometry, acquisition.fine_grid)
        measurement = normalise_line_integrals(clean, lengths, intensity)
        provenance["fine_grid"], model_error = acquisition.fine_grid, FINE_MODEL_ERROR
    else:
        reference = intensity.to_normalised(source.images)
        measurement = operator.forward(reference)
    if acquisition.photons is not None:
        if acquisition.fine_grid == 1:
            lengths = operator.forward(torch.ones_like(reference))
            clean = physical_line_integrals(measurement, lengths, intensity)
        noisy = [
            poisson_line_integrals(
                clean[i : i + 1],
                acquisition.photons,
                acquisition.electronic_noise,
                make_generator(seed, stream=MEASUREMENT + number),
            )
            for i, number in enumerate(source.numbers)
        ]
        y = torch.cat([one.line_integrals for one in noisy])
        measurement = normalise_line_integrals(y, lengths, intensity)
        sigma = torch.tensor([one.sigma for one in noisy]).view(-1, 1, 1, 1)
        noise_sigma = noise_scale(intensity) * sigma
        weights = torch.cat([one.weights for one in noisy]) if acquisition.weighted else None
        provenance["starved_rays"] = sum(one.starved for one in noisy)
    elif acquisition.gaussian_noise > 0:
        noise_sigma = noise_scale(intensity) * acquisition.gaussian_noise
        measurement = per_slice(gaussian, measurement, noise_sigma, source, seed)
    return Problem(
        operator=operator,
        measurement=measurement,
        intensity=intensity,
        modality="CT",
        noise_sigma=noise_sigma,
        model_error=model_error,
        noise_origin="simulated",
        weights=weights,
        reference=reference,
        pixel_mm=(source.pixel_mm, source.pixel_mm),
        slices=source.numbers,
        provenance=provenance,
    )


def finer(source: Slices, factor: int) -> tuple[Tensor, Tensor]:
    """The images on a grid ``factor`` times finer, and their means over the pixels.

    Where the source has none, cubic interpolation whose means are the images themselves.
    """
    if source.fine is not None:
        return source.fine, functional.avg_pool2d(source.fine, factor)
    smooth = functional.interpolate(source.images, scale_factor=factor, mode="bicubic")
    lacking = source.images - functional.avg_pool2d(smooth, factor)
    return smooth + functional.interpolate(lacking, scale_factor=factor), source.images


def fine_line_integrals(images_hu: Tensor, geometry: CTGeometry, factor: int) -> Tensor:
    """Line integrals of attenuation, each bin the mean over ``factor`` finer ones."""
    y = project(hu_to_mu(images_hu), geometry.finer(factor))
    return functional.avg_pool2d(y, (1, factor))


def per_slice(
    add_noise: Callable[[Tensor, float, torch.Generator], Tensor],
    y: Tensor,
    sd: float,
    source: Slices,
    seed: int,
) -> Tensor:
    """Noise whose random numbers belong to the slice, whatever slices are beside it."""
    noisy = [
        add_noise(y[i : i + 1], sd, make_generator(seed, stream=MEASUREMENT + number))
        for i, number in enumerate(source.numbers)
    ]
    return torch.cat(noisy)


def mr_scale(images: Tensor) -> float:
    """The 0.99 quantile of the magnitude, which a prior sees as 1."""
    scale = float(torch.quantile(to_complex(images).abs().flatten()[: 1 << 24], 0.99))
    if not scale > 0:
        raise RequestError("The MR image is empty: its 0.99 quantile is zero.")
    return scale


def kspace_centre(fine: Tensor, factor: int) -> Tensor:
    """The k-space ``[B, coils, H, W]`` that a scan of complex images on a finer grid samples.

    The pixel at its origin is that of the coarse grid, whose centre lies between finer ones.
    """
    full = centred_fft2(fine) / factor
    for axis in (-2, -1):
        size = fine.shape[axis] // factor
        full = full.narrow(axis, factor * size // 2 - size // 2, size)
        shift = (size // 2 + 0.5) * factor - 0.5 - factor * size // 2
        k = torch.arange(size, dtype=torch.float64) - size // 2
        turn = torch.polar(torch.ones_like(k), 2 * torch.pi * shift * k / (factor * size))
        full = full * (turn[:, None] if axis == -2 else turn).to(full)
    return full


def simulate_mri(source: Slices, acquisition: MRIAcquisition, seed: int) -> Problem:
    if source.modality != "MR":
        raise RequestError("This is a CT image; MRI settings do not apply.")
    height, width = source.images.shape[-2:]
    mask = build_mask(
        acquisition.mask,
        width,
        acquisition.acceleration,
        acs_lines=acquisition.acs_lines,
        seed=seed,
    )
    coils, factor, images = acquisition.coils, acquisition.fine_grid, source.images
    operator: Operator
    if coils == 1:
        operator = SingleCoilMRI(mask, (height, width))
    else:
        operator = MultiCoilMRI(mask, birdcage_maps(coils, height, width))
    if factor > 1:
        # what a scanner shows of the finer image when it samples every line
        object_ = to_complex(finer(source, factor)[0])
        images = ifft2c(to_channels(kspace_centre(object_, factor)))
    intensity = IntensityMap("mr", mr_scale(images))
    reference = intensity.to_normalised(images)
    if factor > 1:
        maps = birdcage_maps(coils, height, width, fine=factor) if coils > 1 else torch.ones(1)
        full = kspace_centre(maps * object_, factor) / intensity.scale
        measurement = to_channels(full * mask.to_tensor())
    else:
        measurement = operator.forward(reference)
    if acquisition.kspace_noise > 0:
        measurement = per_slice(
            partial(complex_gaussian, mask=mask.to_tensor()),
            measurement,
            acquisition.kspace_noise,
            source,
            seed,
        )
    return Problem(
        operator=operator,
        measurement=measurement,
        intensity=intensity,
        modality="MR",
        noise_sigma=acquisition.kspace_noise,
        noise_origin="simulated",
        reference=reference,
        pixel_mm=(source.pixel_mm, source.pixel_mm),
        slices=source.numbers,
        provenance={
            "simulated": True,
            "scale": intensity.scale,
            **({"fine_grid": factor} if factor > 1 else {}),
        },
    )
