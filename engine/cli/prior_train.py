"""``dualscope prior train DATA... -o OUT.safetensors``."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType

import torch

from engine.cli.options import add_settings, given
from engine.physics.device import DEVICES, choose_device
from engine.priors.safetensors_file import load_prior_file
from engine.priors.trained_scan import TrainedScan
from engine.priors.training.checkpoint import BEFORE_DECAY
from engine.priors.training.data import (
    PHANTOMS,
    Sampler,
    Source,
    check_apart,
    fit_sigma_data,
    phantom_pool,
    read_sources,
)
from engine.priors.training.loop import Trainer
from engine.priors.training.objective import (
    Correction,
    CorrectionValidation,
    Denoising,
    Objective,
    Validation,
)
from engine.priors.training.report import Origin, ProgressLine, data_sha256, export
from engine.priors.training.settings import RunSettings, TrainingSettings
from engine.spec.errors import RequestError, option_name

DONE, CANCELLED = 0, 130


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data",
        nargs="+",
        metavar="DATA",
        help=".npz or .npy of slices [n, H, W], a folder, "
        "phantom:ct or phantom:mr. CT in HU; MR magnitude with 1000 = the 0.99 quantile.",
    )
    parser.add_argument("-o", "--output", metavar="OUT.safetensors", help="The prior to write.")
    parser.add_argument(
        "--validation", action="append", default=[], metavar="DATA", help="Slices kept apart."
    )
    parser.add_argument("--work", metavar="FOLDER", help="For checkpoints. Default: beside OUT.")
    parser.add_argument(
        "--extend",
        action="store_true",
        help="Continue a checkpoint with a new schedule, settings or data.",
    )
    parser.add_argument(
        "--grow-from",
        metavar="PRIOR.safetensors",
        help="Begin with the weights of a prior with fewer levels or blocks; the others start at "
        "nothing.",
    )
    parser.add_argument(
        "--export-now", action="store_true", help="Write OUT from the last checkpoint and stop."
    )
    parser.add_argument("--device", metavar="|".join(DEVICES), help="Default: auto.")
    parser.add_argument(
        "--supervised",
        action="store_true",
        help="Not a denoiser but a network that corrects FBP images of one CT scan, for "
        "--solver supervised. A reference to compare with; it is not ProCT.",
    )
    about = parser.add_argument_group("written into the prior")
    about.add_argument("--name", help="Default: the name of OUT.")
    about.add_argument("--description", help="One line.")
    about.add_argument("--training-data", help="Where the data come from. Default: their names.")
    about.add_argument("--licence", help="Of the weights. Default: unknown.")
    add_settings(parser, "training", TrainingSettings)
    add_settings(parser, "run", RunSettings)
    add_settings(parser, "the scan (with --supervised)", TrainedScan)


def run(options: argparse.Namespace) -> int:
    settings, objective = _task(options)
    limits = RunSettings(**given(options, RunSettings))
    out = _output(options.output)
    device = choose_device(options.device or "auto")
    if limits.threads:
        torch.set_num_threads(limits.threads)
    # denormal weights of a decayed network make CPU arithmetic many times slower
    torch.set_flush_denormal(True)
    folder = Path(options.work) if options.work else out.with_suffix(".training")
    folder.mkdir(parents=True, exist_ok=True)

    sources, phantoms = _training_data(options.data, settings, folder)
    validation = None
    if options.validation:
        kept_apart = read_sources(options.validation, settings.modality)
        check_apart([*sources, *([phantoms] if phantoms else [])], kept_apart)
        validation = _validation(kept_apart, objective, settings, limits)
    everything = [*sources, *([phantoms] if phantoms else [])]
    trainer = Trainer(
        settings,
        limits,
        Sampler(settings, sources, phantoms),
        settings.sigma_data or fit_sigma_data(sources or everything, settings.modality),
        data_sha256(everything),
        folder,
        device,
        objective,
    )
    resumed = trainer.resume(options.extend)
    if options.grow_from and not resumed:
        trainer.grow_from(load_prior_file(Path(options.grow_from)))
    origin = Origin(
        name=options.name or out.stem,
        description=options.description or objective.description,
        training_data=options.training_data or ", ".join(s.name for s in everything),
        licence=options.licence or "unknown (see the training data)",
    )
    if options.export_now:
        if not resumed:
            raise RequestError(f"--export-now: there is no checkpoint in {folder}.")
        export(trainer, origin, out, validation)
        return DONE
    return _train(trainer, validation, origin, out)


def _task(options: argparse.Namespace) -> tuple[TrainingSettings, Objective]:
    """What is trained: a denoiser, or a network that corrects FBP images."""
    values, scan = given(options, TrainingSettings), given(options, TrainedScan)
    if options.supervised:
        settings = TrainingSettings(**{"crop": 0, **values})
        return settings, Correction(settings, TrainedScan(**scan))
    if scan:
        raise RequestError(f"{option_name(next(iter(scan)))} needs --supervised.")
    settings = TrainingSettings(**values)
    return settings, Denoising(settings)


def _validation(
    sources: list[Source], objective: Objective, settings: TrainingSettings, limits: RunSettings
) -> Validation:
    if isinstance(objective, Correction):
        return CorrectionValidation(sources, objective, limits.validation_slices)
    return Validation(sources, settings.modality, limits.validation_slices)


def _output(text: str | None) -> Path:
    if text is None:
        raise RequestError("-o is missing: name the .safetensors file to write.")
    out = Path(text)
    if out.suffix != ".safetensors":
        raise RequestError(f"-o {out} must end in .safetensors.")
    if not out.absolute().parent.is_dir():
        raise RequestError(f"-o {out}: there is no folder {out.absolute().parent}.")
    return out


def _training_data(
    names: list[str], settings: TrainingSettings, folder: Path
) -> tuple[list[Source], Source | None]:
    """The sources in files, and the phantoms if they are named or have a share."""
    files = [name for name in names if name not in PHANTOMS]
    named = [name for name in names if name in PHANTOMS]
    if any(name != f"phantom:{settings.modality}" for name in named):
        raise RequestError(f"{named[0]} does not fit --modality {settings.modality}.")
    phantoms = None
    if named or settings.phantom_share > 0:
        phantoms = phantom_pool(
            settings.modality, settings.phantom_count, settings.size, folder, settings.seed
        )
    return read_sources(files, settings.modality), phantoms


def _train(trainer: Trainer, validation: Validation | None, origin: Origin, out: Path) -> int:
    """Train to the end of the schedule, or until a signal asks to stop."""
    limits, line = trainer.run, ProgressLine()
    stop = _StopRequest()
    saved = exported = time.monotonic()
    decays = trainer.decays()
    for now in trainer.steps():
        if not decays and trainer.decays():
            decays = True
            trainer.save(BEFORE_DECAY)
        finished = now.fraction >= 1
        if validation and (finished or now.step % limits.validate_steps == 0):
            trainer.validate(validation)
        latest = trainer.history.validations[-1][1] if trainer.history.validations else None
        line.update(now, latest)
        clock = time.monotonic()
        if finished or stop.asked or clock - saved > 60 * limits.checkpoint_minutes:
            trainer.save()
            saved = clock
        if finished or clock - exported > 60 * limits.export_minutes:
            export(trainer, origin, out, validation)
            exported = clock
        if stop.asked:
            print(f"dualscope: stopped at step {now.step}; run again to resume.", file=sys.stderr)
            return CANCELLED
    export(trainer, origin, out, validation)
    return DONE


class _StopRequest:
    """SIGINT and SIGTERM ask to stop after the present step; a second SIGINT stops at once."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
