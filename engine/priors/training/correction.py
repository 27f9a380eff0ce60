"""Supervised training: a network that corrects the FBP images of one kind of scan.

A reference to compare solvers with that were trained for no scan at all. It is plain
post-processing in one pass, and not the ProCT of the paper.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from engine.physics.simulate import Slices, simulate_ct
from engine.priors.precondition import Preconditioned
from engine.priors.trained_scan import TrainedScan
from engine.priors.training.data import Source
from engine.priors.training.objective import Objective
from engine.priors.training.settings import TrainingSettings
from engine.priors.training.validation import Validation
from engine.spec.errors import RequestError


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
