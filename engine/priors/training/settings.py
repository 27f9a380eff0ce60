"""What decides the outcome of a training run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError
from engine.spec.settings import Settings, setting

MODALITIES = ("ct", "mr")


@dataclass(frozen=True)
class TrainingSettings(Settings):
    """Two runs with equal settings and data give the same prior, bit for bit, on one machine."""

    modality: str = setting("ct", "What the data are.", choices=MODALITIES)
    widths: str = setting("96,160,224", "Channels of each level of the network, finest first.")
    blocks: str = setting("2,2,2", "Residual blocks of each level.")
    attention: str = setting("2", "Levels with self-attention, counted from 0; 'none' for none.")
    unshuffle: int = setting(4, "Fold N x N pixels into channels first.", low=1, high=8)
    embedding: int = setting(128, "Width of the noise embedding.", low=8, high=1024)
    align_phase: bool = setting(True, "MR: turn the local phase to zero before the network.")
    size: int = setting(256, "Image size the prior is made for.", low=64, high=1024, unit="px")
    crop: int = setting(128, "Side of the training crops; 0: whole images.", low=0, unit="px")
    batch: int = setting(8, "Images per step.", low=1, high=1024)
    steps: int = setting(20000, "Length of the schedule.", low=1)
    learning_rate: float = setting(5e-4, "Peak of the learning rate.", above=0, high=1)
    warmup_steps: int = setting(200, "Steps of linear rise before the cosine.", low=0)
    decay_share: float = setting(
        1.0, "Last part of the schedule, over which the rate falls.", above=0, high=1
    )
    weight_decay: float = setting(0.01, "Of AdamW.", low=0)
    clip_norm: float = setting(1.0, "Longest gradient taken.", above=0)
    ema_decay: float = setting(0.999, "Decay of the weight average per step.", low=0, high=0.99999)
    p_mean: float = setting(-1.2, "Mean of ln sigma in training.")
    p_std: float = setting(1.2, "Standard deviation of ln sigma.", above=0, high=5)
    sigma_data: float | None = setting(None, "Standard deviation of clean pixels.", above=0)
    phantom_share: float = setting(0.1, "Share of samples that are phantoms.", low=0, high=1)
    phantom_count: int = setting(400, "Phantoms drawn once and kept.", low=1, high=100000)
    flip: bool = setting(True, "Mirror left and right at random.")
    shift: int = setting(
        0, "Largest shift; what leaves on one side comes in on the other.", low=0, unit="px"
    )
    warp_share: float = setting(0.0, "Share of samples turned and scaled.", low=0, high=1)
    warp_deg: float = setting(5.0, "Largest turn.", low=0, high=180, unit="degrees")
    warp_zoom: float = setting(0.1, "Largest change of size.", low=0, high=0.9)
    turn_share: float = setting(0.0, "Share of those that are turned by any angle.", low=0, high=1)
    scanner_share: float = setting(
        0.0,
        "Share of samples with what scanners add. CT: tables, arms, implants, contrast, a round "
        "field of view; MR: other contrasts, coils and local phase.",
        low=0,
        high=1,
    )
    grain_hu: float = setting(
        0.0, "CT: largest standard deviation of added grain.", low=0, high=50, unit="HU"
    )
    source_weights: str = setting(
        "", "How often sources are drawn: PATTERN=WEIGHT with commas, the first that fits; else 1."
    )
    seed: int = setting(0, "Random seed.", low=0)
    precision: str = setting(
        "auto",
        "Of the forward pass; auto: bf16 on a GPU, fp32 on a CPU.",
        choices=("auto", "fp32", "bf16"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.network_kwargs()
        self.weight_patterns()

    @property
    def channels(self) -> int:
        return 1 if self.modality == "ct" else 2

    @property
    def intensity(self) -> IntensityMap:
        return IntensityMap("hu", 1000.0) if self.modality == "ct" else IntensityMap("mr")

    def network_kwargs(self) -> dict[str, Any]:
        kwargs = {
            "channels": self.channels,
            "widths": self._numbers("widths"),
            "blocks": self._numbers("blocks"),
            "attention": [] if self.attention == "none" else self._numbers("attention"),
            "unshuffle": self.unshuffle,
            "embedding": self.embedding,
        }
        return kwargs | ({"align_phase": True} if self.align_phase and self.channels == 2 else {})

    def _numbers(self, name: str) -> list[int]:
        text = getattr(self, name)
        try:
            return [int(part) for part in text.split(",")]
        except ValueError:
            raise RequestError(
                f"⟦{name}⟧ must be whole numbers with commas, not '{text}'."
            ) from None

    def weight_patterns(self) -> list[tuple[str, float]]:
        """Patterns of source names and how often those sources are drawn."""
        result = []
        for part in filter(None, self.source_weights.split(",")):
            pattern, _, weight = part.rpartition("=")
            try:
                value = float(weight)
            except ValueError:
                value = math.nan
            if not pattern or not (0 <= value < math.inf):
                raise RequestError(
                    "⟦source_weights⟧ must be PATTERN=WEIGHT with commas and weights from 0, "
                    f"not '{part}'."
                )
            result.append((pattern, value))
        return result

    def rate(self, step: int, start: int, progress: float) -> float:
        """The learning rate: a rise over the first steps, and at the end a cosine to nothing."""
        rise = min(1.0, (step - start + 1) / (self.warmup_steps + 1))
        decayed = min(max(1 - (1 - progress) / self.decay_share, 0.0), 1.0)
        return self.learning_rate * rise * (0.5 + 0.5 * math.cos(math.pi * decayed))


@dataclass(frozen=True)
class RunSettings(Settings):
    """How a run is carried out; changing these does not change what it converges to."""

    hours: float | None = setting(
        None, "End after this long, with the learning rate fully decayed.", above=0
    )
    checkpoint_minutes: float = setting(5.0, "Between checkpoints.", above=0)
    export_minutes: float = setting(10.0, "Between exports of the averaged weights.", above=0)
    validate_steps: int = setting(1000, "Between validations.", low=1)
    validation_slices: int = setting(12, "Slices validated on.", low=1, high=10000)
    threads: int | None = setting(None, "CPU threads.", low=1, high=1024)
