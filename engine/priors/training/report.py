"""What a run leaves: a progress line, a loss plot, a model card, and the prior's file."""

from __future__ import annotations

import hashlib
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import torch
from PIL import Image, ImageDraw

from engine.files.atomic import write_atomic, write_bytes_atomic
from engine.priors.familiarity import learn
from engine.priors.safetensors_file import PriorHeader, save_prior
from engine.priors.training.checkpoint import History
from engine.priors.training.data import Source
from engine.priors.training.loop import ARCHITECTURE, Progress, Trainer
from engine.priors.training.objective import Denoising, Validation

SHOWN_SIGMAS = ("0.1", "0.2", "0.5")
LOG_SECONDS = 30.0


class ProgressLine:
    """Step, loss, speed, time left and last validation: one line that rewrites itself.

    When the output is not a terminal, a new line every half minute.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.loss: float | None = None
        self.shown = 0.0
        self.recent: list[tuple[float, Progress]] = []

    def update(self, now: Progress, validation: dict[str, float] | None) -> None:
        self.loss = now.loss if self.loss is None else 0.98 * self.loss + 0.02 * now.loss
        terminal = self.stream.isatty()
        clock = time.monotonic()
        if clock - self.shown < (0.5 if terminal else LOG_SECONDS) and now.fraction < 1:
            return
        self.shown = clock
        self.recent = [*self.recent[-9:], (clock, now)]
        text = self.text(now, validation)
        self.stream.write(f"\r{text}\x1b[K" if terminal else f"{text}\n")
        self.stream.flush()

    def text(self, now: Progress, validation: dict[str, float] | None) -> str:
        """Speed and time left are those of the last few lines: a shared computer varies."""
        (first_clock, first), (last_clock, _) = self.recent[0], self.recent[-1]
        passed = last_clock - first_clock
        speed = (now.step - first.step) / passed if passed else 0.0
        gained = now.fraction - first.fraction
        left = f"{_clock(passed * (1 - now.fraction) / gained)} left" if gained else "..."
        parts = [f"step {now.step}/{now.steps}", f"loss {self.loss:.4f}", f"{speed:.2f} it/s", left]
        if validation:
            known = [s for s in SHOWN_SIGMAS if s in validation]
            figures = "/".join(f"{validation[s]:.2f}" for s in known or validation)
            at = f"at sigma {'/'.join(known)}" if known else f"({'/'.join(validation)})"
            parts.append(f"val {figures} dB {at}")
        return "  ".join(parts)


def _clock(seconds: float) -> str:
    minutes, second = divmod(max(round(seconds), 0), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{second:02d}"


def write_loss_plot(
    path: Path, history: History, heading: str = "sigma", size: tuple[int, int] = (900, 480)
) -> None:
    """Loss (log scale) over steps, as means of 50 steps and of 500, and the validation PSNR."""
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    half = (size[0] - 20) // 2
    losses = [(float(step), loss) for step, loss in history.losses]
    smooth = []
    for i, (step, _) in enumerate(losses):
        window = losses[max(0, i - 9) : i + 1]
        smooth.append((step, sum(loss for _, loss in window) / len(window)))
    curves = [(losses, "#c8c8c8", ""), (smooth, "#1f5fa8", "")]
    _panel(draw, (10, 10, half, size[1] - 20), "training loss (log scale)", curves, log=True)
    colours = ("#5e3c99", "#1f5fa8", "#1b9e77", "#c08000", "#d95f02", "#c02020", "#800000")
    validation = [
        ([(float(step), psnr[name]) for step, psnr in history.validations], colour, name)
        for name, colour in zip(_validated(history), colours, strict=False)
    ]
    box = (half + 10, 10, size[0] - 10, size[1] - 20)
    _panel(draw, box, f"validation PSNR in dB, by {heading}", validation, log=False)
    write_atomic(path, lambda stream: image.save(stream, format="PNG"))


def _validated(history: History) -> list[str]:
    return list(history.validations[-1][1]) if history.validations else []


def _panel(
    draw: ImageDraw.ImageDraw,
    box: tuple[int, int, int, int],
    title: str,
    curves: Sequence[tuple[list[tuple[float, float]], str, str]],
    log: bool,
) -> None:
    left, top, right, bottom = box[0] + 50, box[1] + 20, box[2] - 10, box[3] - 10
    draw.text((left, box[1]), title, fill="black")
    draw.rectangle((left, top, right, bottom), outline="#808080")
    points = [point for curve, _, _ in curves for point in curve]
    if not points:
        return
    scale = math.log10 if log else float
    last = max(step for step, _ in points) or 1.0
    heights = [scale(max(value, 1e-9)) for _, value in points]
    low, high = min(heights), max(heights)
    span = (high - low) or 1.0

    def place(step: float, value: float) -> tuple[float, float]:
        height = (scale(max(value, 1e-9)) - low) / span
        return left + (right - left) * step / last, bottom - (bottom - top) * height

    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        level = low + share * span
        y = bottom - (bottom - top) * share
        draw.line((left, y, right, y), fill="#e8e8e8")
        text = f"{10**level:.3g}" if log else f"{level:.1f}"
        draw.text((box[0], y - 6), text, fill="black")
    draw.text((right - 60, bottom + 2), f"step {last:.0f}", fill="black")
    for curve, colour, label in curves:
        placed = [place(step, value) for step, value in curve]
        if len(placed) > 1:
            draw.line(placed, fill=colour, width=2)
        for x, y in placed if len(placed) < 60 else []:
            draw.ellipse((x - 2, y - 2, x + 2, y + 2), fill=colour)
        if label and placed:
            draw.text((placed[-1][0] - 30, placed[-1][1] + 4), label, fill=colour)


def model_card(name: str, description: str, trainer: Trainer, facts: dict[str, str]) -> str:
    """The prior's description in Markdown; ``facts`` are rows of its first table."""
    history, objective = trainer.history, trainer.objective
    lines = [f"# {name}", "", description, ""]
    lines += ["Research use only: not a medical device.", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in facts.items()]
    if history.validations:
        step, psnr = history.validations[-1]
        measure = (
            "HU clipped to +-800, data range 1600 HU"
            if trainer.settings.modality == "ct"
            else "complex error, peak 1 = the 0.99 quantile of the magnitude"
        )
        lines += ["", "## Validation", ""]
        lines += [f"{objective.validated} on slices kept apart, after step {step} ({measure}).", ""]
        lines += [f"| {objective.heading} | PSNR (dB) |", "|---|---|"]
        lines += [f"| {row} | {value:.2f} |" for row, value in psnr.items()]
    lines += ["", "## Training settings", "", "| setting | value |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in trainer.described().items()]
    return "\n".join(lines) + "\n"


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
