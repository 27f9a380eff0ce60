"""Training images: read, checked, and sampled the same way for the same seed and step.

Files hold HU (CT), or magnitude with 1000 at the volume's 0.99 quantile (MR): arrays
``[n, H, W]`` in .npz (one per source) or .npy. Samples are normalised ``[B, C, H, W]``.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.files.atomic import write_atomic
from engine.physics.phantoms import brain_mr, ct_phantom
from engine.physics.random import make_generator
from engine.priors.networks.compact import turned
from engine.priors.training.augment import (
    AIR,
    add_grain,
    local_field,
    other_contrast,
    random_phase,
    scanned,
    warp,
)
from engine.priors.training.settings import MODALITIES, TrainingSettings
from engine.spec.errors import RequestError

UNITS_PER_X = 1000.0
# In file units. CT: below air is padding, above is metal, far from what a body does.
LIMITS = {"ct": (-1000, 3000), "mr": (0, 30000)}
PHANTOMS = tuple(f"phantom:{modality}" for modality in MODALITIES)


@dataclass(frozen=True)
class Source:
    """Slices that belong together (a patient, a series): correlated, so sampled as one."""

    name: str
    slices: np.ndarray


def read_sources(names: Iterable[str], modality: str) -> list[Source]:
    """Everything in the given .npz and .npy files, and in folders of those."""
    sources: list[Source] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            files = sorted(p for p in path.iterdir() if p.suffix in (".npz", ".npy"))
            if not files:
                raise RequestError(f"{path} holds no .npz or .npy file.")
        elif path.is_file():
            files = [path]
        else:
            raise RequestError(f"{path} does not exist.")
        for file in files:
            sources += _read_file(file, modality)
    return sources


def _read_file(path: Path, modality: str) -> list[Source]:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = {path.stem: loaded}
        else:
            with loaded:
                arrays = {f"{path.stem}/{key}": loaded[key] for key in loaded.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise RequestError(f"{path} cannot be read as .npz or .npy: {error}.") from error
    for name, array in arrays.items():
        _check(path, name, array)
    low, high = LIMITS[modality]
    return [Source(n, np.clip(a, low, high).astype(np.int16)) for n, a in arrays.items()]


def _check(path: Path, name: str, array: np.ndarray) -> None:
    if array.ndim != 3 or 0 in array.shape or array.dtype.kind not in "iuf":
        raise RequestError(
            f"{path}: '{name}' must be real slices [n, H, W], "
            f"not {array.dtype} {list(array.shape)}."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise RequestError(f"{path}: '{name}' holds NaN or infinity.")


def phantom_pool(modality: str, count: int, size: int, folder: Path, seed: int) -> Source:
    """Phantoms in file units, drawn once and kept in ``folder``."""
    path = folder / f"phantoms-{modality}-{size}-{count}-{seed}.npz"
    if not path.exists():
        first = 1_000_000 * (seed + 1)
        images = [_draw(modality, first + i, size) for i in range(count)]
        pool = np.stack(images).round().astype(np.int16)
        write_atomic(path, lambda stream: np.savez_compressed(stream, phantoms=pool))
    return Source(f"phantom:{modality}", _read_file(path, modality)[0].slices)


def _draw(modality: str, seed: int, size: int) -> np.ndarray:
    if modality == "ct":
        return ct_phantom(seed, size).image
    return np.abs(brain_mr(seed, size).image) * UNITS_PER_X


def check_apart(training: Iterable[Source], validation: Iterable[Source]) -> None:
    """Refuse a validation slice that is also trained on (blank slices are alike anywhere)."""
    seen = {digest: source.name for source in training for digest in _digests(source)}
    for source in validation:
        for digest in _digests(source):
            if digest in seen:
                raise RequestError(
                    f"⟦validation⟧ '{source.name}' shares slices with the training data "
                    f"'{seen[digest]}': validation must be kept apart."
                )


def _digests(source: Source) -> list[bytes]:
    textured = (image for image in source.slices if image.min() < image.max())
    return [hashlib.sha256(image.tobytes()).digest() for image in textured]


def fit_sigma_data(sources: list[Source], modality: str) -> float:
    """Standard deviation of clean pixels, every source counting the same."""
    variances = [float((s.slices / UNITS_PER_X).var()) for s in sources]
    # the energy of a magnitude with random phase is shared by two channels of mean zero
    if modality == "mr":
        variances = [float(((s.slices / UNITS_PER_X) ** 2).mean()) / 2 for s in sources]
    return round(float(np.sqrt(np.mean(variances))), 3)


def draw_weights(sources: list[Source], patterns: list[tuple[str, float]]) -> np.ndarray:
    """The chance of each source: even, but for those whose name fits a pattern."""
    for pattern, _ in patterns:
        if not any(fnmatchcase(source.name, pattern) for source in sources):
            raise RequestError(f"⟦source_weights⟧: no source is named like '{pattern}'.")
    weights = np.array(
        [next((w for p, w in patterns if fnmatchcase(s.name, p)), 1.0) for s in sources]
    )
    if sources and not weights.any():
        raise RequestError("⟦source_weights⟧: at least one source must be drawn.")
    return weights / max(weights.sum(), 1e-12)


class Sampler:
    """Batches for a step, from sources evenly or as weighted; the same step, the same batch."""

    def __init__(
        self, settings: TrainingSettings, sources: list[Source], phantoms: Source | None
    ) -> None:
        if not sources and phantoms is None:
            raise RequestError("There is nothing to train on: name data, or phantom:ct|mr.")
        self.settings, self.sources, self.phantoms = settings, sources, phantoms
        self.weights = draw_weights(sources, settings.weight_patterns())
        self.side = settings.crop or min(
            min(s.slices.shape[1:]) for s in [*sources, *([phantoms] if phantoms else [])]
        )
        for source in [*sources, *([phantoms] if phantoms else [])]:
            if min(source.slices.shape[1:]) < self.side:
                raise RequestError(
                    f"⟦crop⟧ {self.side} is larger than the slices of '{source.name}'."
                )

    def batch(self, step: int) -> tuple[Tensor, torch.Generator]:
        """Clean images ``[B, C, side, side]``, and the generator for this step's noise."""
        generator = make_generator(self.settings.seed, stream=step + 1)
        rng = np.random.default_rng(int(torch.randint(1 << 62, (1,), generator=generator).item()))
        images = [self._one(rng) for _ in range(self.settings.batch)]
        return torch.stack(images), generator

    def _one(self, rng: np.random.Generator) -> Tensor:
        settings = self.settings
        image = self._pick(rng).astype(np.float32) / UNITS_PER_X
        if settings.flip and rng.random() < 0.5:
            image = image[:, ::-1]
        x = torch.from_numpy(np.ascontiguousarray(image))[None]
        if rng.random() < settings.warp_share:
            any_angle = settings.turn_share > 0 and rng.random() < settings.turn_share
            turn = 180.0 if any_angle else settings.warp_deg
            outside = AIR if settings.modality == "ct" else 0.0
            x = warp(x, turn, settings.warp_zoom, rng, outside)
        changed = settings.scanner_share > 0 and rng.random() < settings.scanner_share
        if changed:
            x = scanned(x, rng) if settings.modality == "ct" else other_contrast(x, rng)
        if settings.grain_hu and settings.modality == "ct":
            x = add_grain(x, settings.grain_hu / UNITS_PER_X, rng)
        if settings.shift:
            most = settings.shift
            x = x.roll(tuple(rng.integers(-most, most + 1, 2).tolist()), (-2, -1))
        height, width = x.shape[-2:]
        row, col = rng.integers(height - self.side + 1), rng.integers(width - self.side + 1)
        if settings.modality == "mr":
            x = x * random_phase(height, width, rng)
            if changed:
                x = turned(x[None], *local_field(height, width, rng)[None, :, None].unbind(1))[0]
        return x[:, row : row + self.side, col : col + self.side]

    def _pick(self, rng: np.random.Generator) -> np.ndarray:
        share = self.settings.phantom_share if self.sources else 1.0
        source = self.phantoms if self.phantoms and rng.random() < share else None
        source = source or self.sources[rng.choice(len(self.sources), p=self.weights)]
        return source.slices[rng.integers(len(source.slices))]
