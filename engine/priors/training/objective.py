"""What a network is trained to do, and how well it does it on slices that were kept apart.

Supervised training: a network that corrects the FBP images of one kind of scan.

A reference to compare solvers with that were trained for no scan at all. It is plain
post-processing in one pass, and not the ProCT of the paper.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engine.physics.random import make_generator
from engine.physics.simulate import Slices, simulate_ct
from engine.priors.precondition import Preconditioned
from engine.priors.trained_scan import TrainedScan
from engine.priors.training.augment import random_phase
from engine.priors.training.data import UNITS_PER_X, Source
from engine.priors.training.settings import TrainingSettings
from engine.spec.errors import RequestError


class Objective(ABC):
    """The difference between training a denoiser and training anything else."""

    preconditioning: str
    preconditioning_kwargs: dict[str, Any]
    description: str
    validated: str  # what the validation measures
    heading: str  # of the column that names the rows of the validation
    sigma_range: tuple[float, float]

    @abstractmethod
    def example(self, clean: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """What ``loss`` needs beside the network, for a batch of clean images."""

    @abstractmethod
    def loss(self, network: Preconditioned, *example: Tensor) -> Tensor:
        """One number to make small."""

    def to_dict(self) -> dict[str, Any]:
        """Settings beyond TrainingSettings; two runs that differ in them are different runs."""
        return {}

    def facts(self) -> dict[str, str]:
        """Rows of the model card."""
        return {}


class Denoising(Objective):
    """D(x + noise; sigma) = x, at noise levels drawn from a log-normal distribution."""

    preconditioning = "edm"
    validated, heading = "Denoising PSNR", "sigma"

    def __init__(self, settings: TrainingSettings) -> None:
        self.settings = settings
        self.preconditioning_kwargs: dict[str, Any] = {}
        self.description = (
            f"Compact U-Net for {settings.modality.upper()} slices, trained as a denoiser."
        )
        # three standard deviations each way hold 99.7 % of what was seen
        low, high = (math.exp(settings.p_mean + k * settings.p_std) for k in (-3, 3))
        self.sigma_range = (float(f"{low:.2g}"), float(f"{high:.2g}"))

    def example(self, clean: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        settings = self.settings
        sigma = sample_sigma(len(clean), settings.p_mean, settings.p_std, generator)
        return clean, sigma, torch.randn(clean.shape, generator=generator)

    def loss(self, network: Preconditioned, *example: Tensor) -> Tensor:
        return edm_loss(network, *example)

    def facts(self) -> dict[str, str]:
        low, high = self.sigma_range
        return {"Noise levels": f"{low:g} to {high:g}"}


def sample_sigma(count: int, p_mean: float, p_std: float, generator: torch.Generator) -> Tensor:
    """Noise levels with ln sigma ~ N(p_mean, p_std^2), spread evenly over each batch.

    One draw per stratum of the distribution: every batch holds low and high levels, which
    makes the gradient of small batches much less noisy and leaves its mean unchanged.
    """
    uniform = (torch.arange(count) + torch.rand(count, generator=generator)) / count
    uniform = uniform[torch.randperm(count, generator=generator)].clamp(1e-6, 1 - 1e-6)
    return torch.exp(p_mean + p_std * math.sqrt(2) * torch.erfinv(2 * uniform - 1))


def edm_loss(denoiser: Preconditioned, clean: Tensor, sigma: Tensor, noise: Tensor) -> Tensor:
    """Mean of (sigma^2 + sd^2) / (sigma sd)^2 * (D(clean + sigma noise; sigma) - clean)^2."""
    sd = denoiser.sigma_data
    s = sigma[:, None, None, None]
    weight = (s**2 + sd**2) / (s * sd) ** 2
    return (weight * (denoiser(clean + s * noise, sigma) - clean) ** 2).mean()


class WeightAverage:
    """An exponential moving average of parameters, short at first.

    The decay rises as (1 + t) / (10 + t), so that the first, untrained weights are forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.values = {name: p.detach().clone() for name, p in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        current = model.state_dict()
        torch._foreach_lerp_(
            list(self.values.values()), [current[n] for n in self.values], 1 - decay
        )


SIGMAS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
# CT is judged within +-800 HU, as in the reconstruction metrics; range in normalised units
CT_LIMIT = 0.8


class Validation:
    """Clean slices, and the PSNR of denoising them at each of ``SIGMAS``.

    CT: clipped to +-800 HU, data range 1600 HU. MR: the complex error, against a peak of 1 (the
    0.99 quantile of the magnitude). The mean over slices of the PSNR of each slice.
    """

    def __init__(self, sources: list[Source], modality: str, count: int) -> None:
        if not sources:
            raise RequestError("⟦validation⟧ holds no slices.")
        self.modality = modality
        picked = [image for source in sources for image in _spread(source, count, len(sources))]
        self.images = [self._prepare(image, i) for i, image in enumerate(picked[:count])]
        self.names = [source.name for source in sources]

    def _prepare(self, image: np.ndarray, index: int) -> Tensor:
        x = torch.from_numpy(image.astype(np.float32) / UNITS_PER_X)[None]
        if self.modality == "mr":
            x = x * random_phase(x.shape[1], x.shape[2], np.random.default_rng(index))
        return x[None]

    @torch.inference_mode()
    def psnr(self, denoiser: Preconditioned) -> dict[str, float]:
        """Mean PSNR in dB for each noise level."""
        device = next(denoiser.parameters()).device
        result = {}
        for level, sigma in enumerate(SIGMAS):
            outputs = []
            for index, clean in enumerate(self.images):
                generator = make_generator(index, stream=level)
                noise = torch.randn(clean.shape, generator=generator)
                outputs.append(denoiser((clean + sigma * noise).to(device), sigma).cpu())
            result[f"{sigma:g}"] = self.mean_psnr(outputs)
        return result

    def mean_psnr(self, outputs: list[Tensor]) -> float:
        """Over the slices, of one output for each."""
        pairs = zip(outputs, self.images, strict=True)
        return round(float(np.mean([self._psnr(out, clean) for out, clean in pairs])), 3)

    def _psnr(self, out: Tensor, clean: Tensor) -> float:
        if self.modality == "ct":
            limited = out.clamp(-CT_LIMIT, CT_LIMIT) - clean.clamp(-CT_LIMIT, CT_LIMIT)
            error, data_range = limited.square().mean(), 2 * CT_LIMIT
        else:
            error, data_range = (out - clean).square().sum(1).mean(), 1.0
        return float(10 * torch.log10(data_range**2 / error.clamp_min(1e-12)))


def _spread(source: Source, count: int, sources: int) -> np.ndarray:
    """About ``count / sources`` slices of a source, evenly spaced."""
    wanted = min(len(source.slices), -(-count // sources))
    indices = np.linspace(0, len(source.slices) - 1, wanted + 2)[1:-1].round().astype(int)
    return source.slices[indices]


class Correction(Objective):
    """F(FBP) = image for one scan: mean squared error of whole images, for streaks cross them."""

    preconditioning = "direct"
    validated, heading = "PSNR of FBP images before and after the network", "image"
    sigma_range = (0.0, 1.0)  # there is no noise level: any will do

    def __init__(self, settings: TrainingSettings, scan: TrainedScan) -> None:
        if settings.modality != "ct":
            raise RequestError("⟦supervised⟧ is for CT: leave ⟦modality⟧ mr.")
        if settings.crop:
            raise RequestError("⟦crop⟧ must be 0 with ⟦supervised⟧: streaks cross the whole image.")
        self.scan, self.intensity = scan, settings.intensity
        self.preconditioning_kwargs = {"scan": scan.to_dict()}
        self.description = (
            f"Not a denoiser: a supervised U-Net that corrects FBP images ({scan.words()})."
        )

    def fbp(self, clean: Tensor, seed: int) -> Tensor:
        """The FBP images of simulated scans, in normalised units like ``clean``."""
        images = self.intensity.to_physical(clean)
        numbers = tuple(range(len(clean)))
        source = Slices(images, "CT", self.scan.pixel_mm, numbers)
        problem = simulate_ct(source, self.scan, self.intensity, seed)
        return problem.operator.pseudo_inverse(problem.measurement)

    def example(self, clean: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        seed = int(torch.randint(1 << 31, (1,), generator=generator).item())
        return clean, self.fbp(clean, seed)

    def loss(self, network: Preconditioned, *example: Tensor) -> Tensor:
        """Relative to the variance of clean pixels, so that gradients have a usual size."""
        clean, fbp = example
        return (network(fbp, 0.0) - clean).square().mean() / network.sigma_data**2

    def to_dict(self) -> dict[str, Any]:
        return {"supervised": True, **self.scan.to_dict()}

    def facts(self) -> dict[str, str]:
        return {
            "Trained for": f"FBP images, {self.scan.words()}",
            "It is not": "a denoiser, or ProCT",
        }


class CorrectionValidation(Validation):
    """The PSNR of FBP images of slices kept apart, as they are and corrected."""

    def __init__(self, sources: list[Source], objective: Correction, count: int) -> None:
        super().__init__(sources, "ct", count)
        self.inputs = [objective.fbp(clean, seed) for seed, clean in enumerate(self.images)]

    @torch.inference_mode()
    def psnr(self, network: Preconditioned) -> dict[str, float]:
        device = next(network.parameters()).device
        corrected = [network(fbp.to(device), 0.0).cpu() for fbp in self.inputs]
        return {"FBP": self.mean_psnr(self.inputs), "corrected": self.mean_psnr(corrected)}
