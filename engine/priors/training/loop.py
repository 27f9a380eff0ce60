"""The training loop, as a generator: between two steps it can be stopped and saved.

Batches and noise depend on the seed and the step only, so that a resumed run equals an
uninterrupted one bit for bit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from engine.priors.network_prior import NetworkPrior
from engine.priors.networks import build_network
from engine.priors.networks.compact import CompactUNet
from engine.priors.precondition import Preconditioned, precondition
from engine.priors.training.checkpoint import FILE_NAME, History, read_checkpoint, write_checkpoint
from engine.priors.training.data import Sampler
from engine.priors.training.objective import Denoising, Objective, Validation, WeightAverage
from engine.priors.training.settings import RunSettings, TrainingSettings
from engine.spec.errors import DualscopeError, RequestError

ARCHITECTURE = "compact-unet"
LOSS_WINDOW = 50
# settings that may change when a run is extended: the network and the data units may not
FIXED = (
    "supervised",
    "modality",
    "widths",
    "blocks",
    "attention",
    "unshuffle",
    "embedding",
    "sigma_data",
    "align_phase",
)


def _comparable(settings: dict[str, Any]) -> dict[str, Any]:
    """Checkpoints older than a setting did without it; no CT network aligns phases."""
    aligned = settings["modality"] == "mr" and settings.get("align_phase", False)
    defaults = TrainingSettings(modality=settings["modality"]).to_dict()
    return {"supervised": False, **defaults, **settings, "align_phase": aligned}


@dataclass(frozen=True)
class Progress:
    """Where the run stands after a step."""

    step: int
    steps: int
    loss: float
    rate: float
    seconds: float
    fraction: float


class Trainer:
    """A network, its optimiser and its averaged weights, in a folder that remembers them."""

    def __init__(
        self,
        settings: TrainingSettings,
        run: RunSettings,
        sampler: Sampler,
        sigma_data: float,
        data_sha256: str,
        folder: Path,
        device: torch.device | str = "cpu",
        objective: Objective | None = None,
    ) -> None:
        self.settings, self.run, self.sampler = settings, run, sampler
        self.objective = objective or Denoising(settings)
        self.folder, self.device = folder, torch.device(device)
        self.data_sha256 = data_sha256
        self.step = self.start = 0
        self.seconds = 0.0
        self.history = History()
        torch.manual_seed(settings.seed)
        self.denoiser = self._new_denoiser(sigma_data)
        self.average = WeightAverage(self.denoiser, settings.ema_decay)
        self.optimizer = torch.optim.AdamW(
            self.denoiser.parameters(),
            lr=settings.learning_rate,
            betas=(0.9, 0.99),
            weight_decay=settings.weight_decay,
            fused=True,
        )

    def _new_denoiser(self, sigma_data: float) -> Preconditioned:
        network = build_network(ARCHITECTURE, self.settings.network_kwargs())
        objective = self.objective
        denoiser = precondition(
            objective.preconditioning, network, sigma_data, objective.preconditioning_kwargs
        )
        return denoiser.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def grow_from(self, prior: NetworkPrior) -> None:
        """Begin as a trained prior, with the coarser levels of this network yet to learn."""
        grow(self.denoiser.model, prior.denoiser.model)
        self.average = WeightAverage(self.denoiser, self.settings.ema_decay)

    # -- saving and resuming

    def described(self) -> dict[str, Any]:
        """All settings that decide the outcome."""
        return {**self.settings.to_dict(), **self.objective.to_dict()}

    def save(self, name: str = FILE_NAME) -> None:
        write_checkpoint(
            self.folder / name,
            {
                "settings": json.dumps(self.described()),
                "data_sha256": self.data_sha256,
                "step": self.step,
                "start": self.start,
                "seconds": self.seconds,
                "sigma_data": self.denoiser.sigma_data,
                "denoiser": self.denoiser.state_dict(),
                "average": self.average.values,
                "optimizer": self.optimizer.state_dict(),
                "history": self.history.to_json(),
            },
        )

    def resume(self, extend: bool = False) -> bool:
        """Continue from the folder's checkpoint, if there is one.

        ``extend`` accepts other settings or data and begins a new schedule with the trained
        weights; without it they must be equal.
        """
        state = read_checkpoint(self.folder)
        if state is None:
            return False
        try:
            self._take(state, extend)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise RequestError(
                f"The checkpoint in {self.folder} is damaged: remove it to begin anew."
            ) from error
        return True

    def _take(self, state: dict[str, Any], extend: bool) -> None:
        self._check_same(state, extend)
        self.denoiser.load_state_dict(state["denoiser"])
        # what the weights were trained for, even if new data have another one
        self.denoiser.sigma_data = float(state.get("sigma_data", self.denoiser.sigma_data))
        for name, value in self.average.values.items():
            value.copy_(state["average"][name])
        self.step, self.seconds = state["step"], state["seconds"]
        self.start = state["start"]
        self.history = History.from_json(state["history"])
        if extend:
            self.start, self.seconds = self.step, 0.0
        self.optimizer.load_state_dict(state["optimizer"])
        for group in self.optimizer.param_groups:
            group["weight_decay"] = self.settings.weight_decay

    def _check_same(self, state: dict[str, Any], extend: bool) -> None:
        old, new = _comparable(json.loads(state["settings"])), _comparable(self.described())
        differing = [name for name in new if old.get(name) != new[name]]
        refused = [name for name in differing if name in FIXED or not extend]
        where = f"the checkpoint in {self.folder}"
        if refused:
            name = refused[0]
            raise RequestError(
                f"⟦{name}⟧ {new[name]} differs from {old.get(name)} in {where}: "
                "use the same value, another ⟦work⟧ folder"
                + (", or ⟦extend⟧." if name not in FIXED else ".")
            )
        if state["data_sha256"] != self.data_sha256 and not extend:
            raise RequestError(f"The data differ from those of {where}: use ⟦extend⟧ to accept.")

    # -- training

    def fraction(self) -> float:
        """How far the schedule is, 0 to 1: by steps or by hours, whichever is further.

        So a run with a time limit ends fully decayed, however fast the computer is.
        """
        by_steps = (self.step - self.start) / max(self.settings.steps - self.start, 1)
        by_time = self.seconds / 3600 / self.run.hours if self.run.hours else 0.0
        return max(by_steps, by_time)

    def decays(self) -> bool:
        """Whether the learning rate has begun to fall at the end of the schedule."""
        return self.fraction() > 1 - self.settings.decay_share

    def steps(self) -> Iterator[Progress]:
        """Train until the schedule ends; yields after every step.

        The time that validation and saving take between two steps counts as well.
        """
        began = time.monotonic()
        while (fraction := self.fraction()) < 1:
            rate = self.settings.rate(self.step, self.start, fraction)
            loss = self._one_step(rate)
            self.step += 1
            now = time.monotonic()
            self.seconds, began = self.seconds + now - began, now
            self.history.add(self.step, loss, LOSS_WINDOW)
            yield Progress(
                self.step, self.settings.steps, loss, rate, self.seconds, self.fraction()
            )

    def _one_step(self, rate: float) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        clean, generator = self.sampler.batch(self.step)
        example = [t.to(self.device) for t in self.objective.example(clean, generator)]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bf16()):
            loss = self.objective.loss(self.denoiser, *example)
        if not loss.isfinite():
            raise DualscopeError(
                f"Training diverged at step {self.step}: the last checkpoint is kept; "
                "continue from it with ⟦extend⟧ and a lower ⟦learning_rate⟧."
            )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.denoiser.parameters(), self.settings.clip_norm)
        self.optimizer.step()
        self.average.update(self.denoiser, self.step)
        return loss.item()

    def _bf16(self) -> bool:
        wanted = self.settings.precision
        return wanted == "bf16" or (wanted == "auto" and self.device.type == "cuda")

    def averaged(self) -> Preconditioned:
        """The denoiser with the averaged weights, which is the one to use."""
        denoiser = self._new_denoiser(self.denoiser.sigma_data)
        denoiser.load_state_dict(self.average.values)
        return denoiser.eval().requires_grad_(False)

    def validate(self, validation: Validation) -> dict[str, float]:
        psnr = validation.psnr(self.averaged())
        self.history.validations.append((self.step, psnr))
        return psnr


# A larger network that begins as a trained one: nothing learned is lost, new parts start at zero.
#
# A small network learns faster per hour; coarser levels, which see more of the image at once, and
# further blocks can be added to it afterwards.


@torch.no_grad()
def grow(network: nn.Module, trained: nn.Module) -> None:
    """Give ``network`` the weights of ``trained``, its finer part, so that both compute the same.

    Blocks that a level has beyond the trained one's come after those and are built as nothing.
    Where the trained network ended, the new one joins its own coarser levels; that joint passes
    the finer features on and ignores the coarser ones until training finds them useful.
    """
    if not isinstance(network, CompactUNet) or not isinstance(trained, CompactUNet):
        raise RequestError("⟦grow_from⟧ needs a prior of the compact network.")
    weights, known = network.state_dict(), trained.state_dict()
    levels = len(trained.encoder)
    fits = len(network.encoder) >= levels and network.unshuffle == trained.unshuffle
    if not fits or any(
        name not in weights or weights[name].shape != values.shape for name, values in known.items()
    ):
        raise RequestError(
            "⟦grow_from⟧: the prior's levels must be the first ones of the new network, "
            "with the same widths and attention and at least as many blocks."
        )
    network.load_state_dict({**weights, **known})
    if len(network.encoder) > levels:
        joint = network.fuse[levels - 1]
        assert isinstance(joint, nn.Conv2d)
        assert joint.bias is not None
        fine = joint.out_channels
        joint.weight[:, :fine].zero_()  # what comes up from below
        joint.weight[:, fine:] = torch.eye(fine)[:, :, None, None]  # what was there
        joint.bias.zero_()
