"""What the four tools find of a lesion that is not there, and of one that was taken away.

A phantom with a true low-contrast lesion is scanned and reconstructed. Then the image is changed
by hand in three ways, and every tool is asked what it sees of the change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from engine.data.dataset import ImageDataset
from engine.physics.phantoms import ct_phantom
from engine.physics.phantoms.phantom import Phantom
from engine.runs.certificate import certify
from engine.runs.prepare import Prepared, prepare
from engine.runs.rerun import run_again
from engine.runs.run import Run
from engine.spec.control import RunControl
from engine.spec.job import Job
from engine.workflows.trust.pictures import Picture, sheet
from engine.workflows.trust.split import Split, Splitter, Spread

PHANTOM_SEED: Final = 7
SIZE: Final = 128
CONTRAST_HU: Final = 50.0
NOISE: Final = 0.004  # SD of a line integral
SETTINGS: Final = {"nfe": 30, "cg_iterations": 40, "preconditioner": "none"}
RING_PX: Final = 4.0  # width of the surroundings a lesion is compared with

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Lesion:
    """An ellipse; ``angle_deg`` turns its long axis from the rows towards the columns."""

    row: float
    col: float
    long_px: float
    short_px: float
    angle_deg: float = 0.0

    def cover(self, size: int, grow: float = 0.0) -> np.ndarray:
        """1 inside, 0 outside, a ramp of one pixel between them."""
        rows, cols = np.mgrid[:size, :size]
        turn = np.deg2rad(self.angle_deg)
        along = (cols - self.col) * np.cos(turn) + (rows - self.row) * np.sin(turn)
        across = (rows - self.row) * np.cos(turn) - (cols - self.col) * np.sin(turn)
        a, b = self.long_px + grow, self.short_px + grow
        distance = np.sqrt((along / a) ** 2 + (across / b) ** 2)
        return np.clip((1 - distance) * min(a, b) + 0.5, 0, 1)

    def contrast(self, image: np.ndarray) -> float:
        """Mean inside minus mean of the ring around."""
        inside = self.cover(image.shape[-1]) > 0.5
        near = self.cover(image.shape[-1], 1.5) > 0
        ring = (self.cover(image.shape[-1], 1.5 + RING_PX) > 0.5) & ~near
        return float(image[inside].mean() - image[ring].mean())

    def painted_over(self, image: np.ndarray) -> np.ndarray:
        """The lesion replaced by the mean of its ring."""
        near = self.cover(image.shape[-1], 1.5)
        ring = (self.cover(image.shape[-1], 1.5 + RING_PX) > 0.5) & ~(near > 0)
        return image + near * (image[ring].mean() - image)


@dataclass(frozen=True)
class Scan:
    label: str
    acquisition: dict[str, Any]
    true: Lesion
    false: Lesion


# Discs, which 20 views see well; and ellipses whose long edges face the 90 degrees that the
# limited scan leaves out.
SCANS: Final = (
    Scan(
        "SVCT-20",
        {"views": 20, "gaussian_noise": NOISE},
        Lesion(72, 30, 4, 4),
        Lesion(56, 38, 4, 4),
    ),
    Scan(
        "LACT-90",
        {"views": 90, "angular_range": 90.0, "gaussian_noise": NOISE},
        Lesion(72, 30, 7, 2, 135),
        Lesion(56, 38, 7, 2, 135),
    ),
)


@dataclass
class Studied:
    """One scan: its images in HU by name, and a row of numbers for every change."""

    scan: Scan
    images: dict[str, np.ndarray]
    rows: list[dict[str, Any]]


def phantom_with(lesion: Lesion) -> tuple[ImageDataset, np.ndarray]:
    phantom: Phantom = ct_phantom(seed=PHANTOM_SEED, size=SIZE)
    image = (phantom.image + CONTRAST_HU * lesion.cover(SIZE)).astype(np.float32)
    dataset = ImageDataset(
        modality="CT",
        description=phantom.description,
        count=1,
        image_size=(SIZE, SIZE),
        pixel_mm=(phantom.pixel_mm, phantom.pixel_mm),
        read=lambda number: image,
        _sha256=hashlib.sha256(image.tobytes()).hexdigest(),
    )
    return dataset, image


def study_scan(
    scan: Scan,
    seeds: int,
    control: RunControl,
    progress: Progress,
    prior: str = "ct-small",
    settings: dict[str, Any] | None = None,
) -> Studied | None:
    """None when cancelled."""
    dataset, truth = phantom_with(scan.true)
    asked: dict[str, Any] = {**SETTINGS, **(settings or {})}
    job = Job("phantom", acquisition=scan.acquisition, settings=asked, prior=prior, device="cpu")
    prepared = prepare(job, dataset)
    runs = _runs(prepared, seeds, control, progress, scan.label)
    if runs is None:
        return None
    first = runs[0]
    assert first.image is not None
    assert first.last is not None
    progress(1.0, f"{scan.label}: split")
    scale = first.problem.intensity.scale
    splitter = Splitter(first.problem, first.image)
    samples = [_hu(run) for run in runs]
    base, spread = samples[0], Spread()
    for sample in samples:
        spread.add(sample)
    lesion = CONTRAST_HU * scan.false.cover(SIZE)
    inserted = _split(splitter, lesion, first)
    unseen = scale * _plane(inserted.guessed)
    changes = {
        "false lesion inserted": (scan.false, lesion),
        "true lesion removed": (scan.true, scan.true.painted_over(base) - base),
        "unseen part of a false lesion": (scan.false, unseen),
    }
    # what the data would change, asked about structures of a lesion's contrast
    asking = Splitter(first.problem, first.image, signal=CONTRAST_HU / scale)
    pull = np.abs(scale * _plane(first.last.x - first.last.z))
    images = {"truth": truth, "result": base, "pull": pull}
    rows = []
    for name, (where, change) in changes.items():
        split = inserted if change is lesion else _split(splitter, change, first)
        edited = first.image + _tensor(change / scale, first)
        correction = scale * _plane(asking.correction(edited))
        images[name], images[f"correction: {name}"] = base + change, correction
        rows.append(
            {"scan": scan.label, "change": name}
            | {"contrast_hu": where.contrast(change), "null_share": split.share[0]}
            | _certified(first, change)
            | {
                "taken_back": -where.contrast(correction) / where.contrast(change),
                "seeds_hu": [where.contrast(sample) for sample in samples],
                "seeds_away": _seeds_away(where, samples, base + change),
                "pull_inside_hu": float(pull[where.cover(SIZE) > 0.5].mean()),
                "pull_everywhere_hu": float(pull.mean()),
            }
        )
    if spread.sd is not None:
        images["spread"] = spread.sd
    return Studied(scan, images, rows)


def _runs(
    prepared: Prepared, seeds: int, control: RunControl, progress: Progress, label: str
) -> list[Run] | None:
    runs = []
    for seed in range(seeds):
        until = int(prepared.settings.to_dict()["nfe"])
        run = run_again(
            prepared,
            until,
            control,
            lambda it, done=seed: progress(  # type: ignore[misc]
                (done + it.k / it.K) / seeds, f"{label}: seed {done}"
            ),
            seed,
        )
        if run is None:
            return None
        runs.append(run)
    return runs


def _split(splitter: Splitter, change: np.ndarray, run: Run) -> Split:
    """Of a change in HU, which has no origin."""
    return splitter(_tensor(change / run.problem.intensity.scale, run) + splitter.origin)


def _certified(run: Run, change: np.ndarray) -> dict[str, Any]:
    """The certificate before and after the change, and how loudly the data contradict it."""
    problem = run.problem
    assert run.image is not None
    normalised = _tensor(change / problem.intensity.scale, run)
    seen = problem.operator.forward(normalised).double()
    noise = float(torch.as_tensor(problem.noise_sigma).max())
    (before,), (after,) = certify(problem, run.image), certify(problem, run.image + normalised)
    return {
        "evidence_sd": float(seen.norm()) / noise,
        "chi2_before": before.reduced,
        "chi2_after": after.reduced,
        "noise_explains": [before.low, before.high],
        "verdict_before": before.verdict,
        "verdict_after": after.verdict,
        "suspicious_views": [len(before.suspicious), len(after.suspicious)],
        "views": len(after.parts),
        "certificate_finds_it": before.verdict != "worse" and after.verdict == "worse",
    }


def _seeds_away(where: Lesion, samples: list[np.ndarray], edited: np.ndarray) -> float | None:
    """How many SDs of the seeds' own contrasts the edited one lies away from their mean."""
    contrasts = [where.contrast(sample) for sample in samples]
    if len(contrasts) < 2:
        return None
    return abs(where.contrast(edited) - float(np.mean(contrasts))) / float(
        np.std(contrasts, ddof=1)
    )


def _tensor(values: np.ndarray, run: Run) -> Tensor:
    assert run.image is not None
    return torch.from_numpy(values).to(run.image)[None, None]


def _plane(image: Tensor) -> np.ndarray:
    return image[0, 0].detach().cpu().double().numpy()


def _hu(run: Run) -> np.ndarray:
    assert run.image is not None
    return _plane(run.problem.physical(run.image))


WINDOW: Final = (40.0, 250.0)
CROP: Final = (slice(36, 92), slice(8, 64))
ZOOM: Final = 3
LIMIT_HU: Final = 50.0
CHANGES: Final = {
    "false lesion inserted": "false lesion inserted",
    "true lesion removed": "true lesion removed",
    "unseen part of a false lesion": "its unseen part only",
}


def study_figure(found: list[Studied]) -> bytes:
    """A row of images and a row of maps for every scan."""
    rows = []
    for studied in found:
        images = {name: values[CROP] for name, values in studied.images.items()}
        chi2 = {row["change"]: row["chi2_after"] for row in studied.rows}
        before = studied.rows[0]["chi2_before"]
        plain = [
            Picture(f"{studied.scan.label}: truth", images["truth"], WINDOW),
            Picture(f"result\nchi2 {before:.2f}", images["result"], WINDOW),
        ]
        for name, caption in CHANGES.items():
            plain.append(Picture(f"{caption}\nchi2 {chi2[name]:.2f}", images[name], WINDOW))
        rows += [plain, _maps(images)]
    return sheet(rows, zoom=ZOOM)


def _maps(images: dict[str, np.ndarray]) -> list[Picture]:
    """Over the unchanged result: what varies, and what the data would take back."""
    result = images["result"]
    maps = [Picture("prior pull |x - z|", result, WINDOW, images["pull"], "HU")]
    if "spread" in images:
        maps.append(Picture("spread over seeds", result, WINDOW, images["spread"], "HU"))
    for name in CHANGES:
        values = images[f"correction: {name}"]
        maps.append(Picture("the data would change", result, WINDOW, values, "HU", LIMIT_HU))
    return maps
