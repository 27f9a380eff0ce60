"""Turning the state of a run into a prior file, its model card and its loss plot."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.files.atomic import write_bytes_atomic
from engine.priors.familiarity import learn
from engine.priors.safetensors_file import PriorHeader, save_prior
from engine.priors.training.data import Source
from engine.priors.training.loop import ARCHITECTURE, Trainer
from engine.priors.training.objective import Denoising
from engine.priors.training.report import model_card, write_loss_plot
from engine.priors.training.validation import Validation


@dataclass(frozen=True)
class Origin:
    """What the person who trains says about the prior."""

    name: str
    description: str
    training_data: str
    licence: str


def data_sha256(sources: list[Source]) -> str:
    """One hash for all training slices, in the order of their names."""
    digest = hashlib.sha256()
    for source in sorted(sources, key=lambda source: source.name):
        digest.update(f"{source.name} {source.slices.shape}".encode())
        digest.update(source.slices.tobytes())
    return digest.hexdigest()


def export(
    trainer: Trainer, origin: Origin, path: Path, validation: Validation | None = None
) -> None:
    """Write OUT.safetensors, OUT.md and OUT.png from the averaged weights.

    Of a denoiser, ``validation`` slices tell what is familiar to it.
    """
    known = None
    if (
        validation is not None
        and len(validation.images) > 1
        and isinstance(trainer.objective, Denoising)
    ):
        largest, sources = trainer.objective.sigma_range[1], len(validation.names)
        known = learn(trainer.averaged(), validation.images, largest, sources)
    settings, objective = trainer.settings, trainer.objective
    average = trainer.average.values
    source = json.dumps([trainer.described(), trainer.data_sha256, trainer.step])
    count = sum(value.numel() for value in average.values())
    card = model_card(
        origin.name,
        origin.description,
        trainer,
        {
            "Training data": origin.training_data,
            "Licence": origin.licence,
            "Parameters": f"{count:,}",
            "Steps": f"{trainer.step:,} of {settings.batch} images",
            "Training time": f"{trainer.seconds / 3600:.2f} h",
            "Trained with": f"torch {torch.__version__} on {trainer.device.type}",
            **objective.facts(),
            "Standard deviation of clean pixels": f"{trainer.denoiser.sigma_data:g}",
            **({"Familiar images": known.words()} if known else {}),
        },
    )
    header = PriorHeader(
        name=origin.name,
        architecture=ARCHITECTURE,
        architecture_kwargs=settings.network_kwargs(),
        preconditioning=objective.preconditioning,
        preconditioning_kwargs=objective.preconditioning_kwargs,
        sigma_data=trainer.denoiser.sigma_data,
        sigma_min=objective.sigma_range[0],
        sigma_max=objective.sigma_range[1],
        channels=settings.channels,
        intensity=settings.intensity.to_dict(),
        native_size=settings.size,
        training_data=origin.training_data,
        licence=origin.licence,
        source_sha256=hashlib.sha256(source.encode()).hexdigest(),
        description=origin.description,
        model_card=card,
        symmetric=settings.flip,
        familiarity=known.to_dict() if known else {},
    )
    save_prior(path, header, average)
    write_bytes_atomic(path.with_suffix(".md"), card.encode())
    write_loss_plot(path.with_suffix(".png"), trainer.history, objective.heading)
