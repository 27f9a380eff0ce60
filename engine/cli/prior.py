"""``dualscope prior list|info|import|train|calibrate``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from engine.cli import prior_train
from engine.physics.units import IntensityMap
from engine.priors.catalogue import KINDS, find_prior, list_priors, list_supervised, prior_file
from engine.priors.trained_scan import trained_scan
from engine.spec.errors import RequestError


def add_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="list|info|import|train|calibrate", parser_class=type(parser)
    )
    actions.add_parser("list", help="Names and what they are.")
    info = actions.add_parser("info", help="Everything known about one prior, as JSON.")
    info.add_argument("name", metavar="NAME|FILE")
    _add_import(actions.add_parser("import", help="Convert a checkpoint without running its code."))
    prior_train.add_options(actions.add_parser("train", help="Train a prior from images."))
    calibrate = actions.add_parser(
        "calibrate",
        help="Measure what is familiar to a prior, on slices like those it was trained on.",
    )
    calibrate.add_argument("name", metavar="NAME|FILE", help="The prior.")
    calibrate.add_argument(
        "data", nargs="+", metavar="DATA", help="Slices kept apart from training: .npz, .npy."
    )
    calibrate.add_argument(
        "--slices", metavar="N", type=int, default=100, help="How many of them. Default: 100."
    )


def run(options: argparse.Namespace) -> int:
    if options.action == "list":
        for modality in ("CT", "MR"):
            for name in [*list_priors(modality), *list_supervised(modality)]:
                try:
                    info = find_prior(name, modality).info
                except RequestError as error:  # a plug-in; the others are still listed
                    print(f"{modality}  {name:12s} {error}")
                    continue
                if info.intensity.kind == KINDS[modality]:
                    print(f"{modality}  {name:12s} {info.description}")
        return 0
    if options.action == "info":
        print(json.dumps(find_prior(options.name, "CT").info.to_dict(), indent=1))
        return 0
    if options.action == "import":
        return _import(options)
    if options.action == "train":
        return prior_train.run(options)
    if options.action == "calibrate":
        return _calibrate(options.name, options.data, options.slices)
    raise RequestError(
        "Say what to do: dualscope prior list, info NAME, import FILE OUT, train DATA or "
        "calibrate NAME DATA."
    )


def _calibrate(name: str, data: list[str], slices: int) -> int:
    """Write what is familiar beside the prior; the prior's own file is left as it is."""
    from engine.priors.familiarity import learn, write_beside
    from engine.priors.safetensors_file import load_prior_file
    from engine.priors.training.data import UNITS_PER_X, read_sources
    from engine.priors.training.objective import Validation

    path = prior_file(name)
    if not path.is_file():
        raise RequestError(f"{name} is not the name or the file of a trained prior.")
    if slices < 2:
        raise RequestError("--slices must be at least 2.")
    prior = load_prior_file(path)
    if trained_scan(prior.info) is not None:
        raise RequestError(f"{name} was trained to correct FBP images: it denoises nothing.")
    intensity, lowest = prior.info.intensity, prior.info.details.get("lowest_hu")
    modality = "ct" if intensity.kind == "hu" else "mr"
    kept_apart = Validation(read_sources(data, modality), modality, slices)
    images = kept_apart.images
    if modality == "ct":
        hu = [image * UNITS_PER_X for image in images]
        images = [intensity.to_normalised(x if lowest is None else x.clamp_min(lowest)) for x in hu]
    known = learn(prior, images, prior.info.sigma_max, len(kept_apart.names))
    print(f"{write_beside(path, prior.info.sha256, known)}: {known.words()}.")
    return 0


LARGEST_SCALE = 1e6


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help="An NVlabs EDM snapshot (.pkl), a torch.save file with a state dict (InverseBench, "
        "guided-diffusion), or a folder of a diffusers UNet2DModel. Nothing in it is run.",
    )
    parser.add_argument("output", metavar="OUT.safetensors", help="The prior to write.")
    parser.add_argument(
        "--config", metavar="FILE.json", help="Settings of the network that the file lacks."
    )
    parser.add_argument(
        "--architecture", metavar="NAME", help="The network expected. Default: recognised."
    )
    meaning = parser.add_argument_group("what the network's numbers mean")
    meaning.add_argument(
        "--hu-scale", type=float, metavar="S", help="CT: HU = S x + offset (800 for +-800 HU)."
    )
    meaning.add_argument("--hu-offset", type=float, metavar="O", help="Default: 0.")
    meaning.add_argument(
        "--lowest-hu",
        type=float,
        metavar="H",
        help="CT: the training images were clipped below at H (-800 for +-800 HU), so the network "
        "does not know air; it is shown H instead.",
    )
    meaning.add_argument(
        "--mr", action="store_true", help="MR, 1 = the 0.99 quantile of the magnitude."
    )
    meaning.add_argument(
        "--mirrored",
        action="store_true",
        help="The network was trained on mirrored images as well: solvers may then show it the "
        "image mirrored and shifted (--symmetry).",
    )
    about = parser.add_argument_group("written into the prior")
    about.add_argument("--name", help="Default: the name of OUT.")
    about.add_argument("--licence", help="Of the weights. Default: that of their publisher.")
    about.add_argument("--training-data", help="What the network was trained on.")
    parser.add_argument(
        "--float32", action="store_true", help="Full precision, twice the size of the default."
    )
    parser.add_argument("--overwrite", action="store_true", help="Replace OUT if it exists.")


def _import(options: argparse.Namespace) -> int:
    # here, so that --help does not wait for torch
    from engine.priors.importing import import_checkpoint, read_config

    config: dict[str, Any] = dict(read_config(options.config))
    if options.architecture is not None:
        config["architecture"] = options.architecture
    header = import_checkpoint(
        Path(options.checkpoint),
        Path(options.output),
        config=config,
        intensity=_intensity(options),
        lowest_hu=options.lowest_hu,
        symmetric=options.mirrored,
        name=options.name,
        licence=options.licence,
        training_data=options.training_data,
        half=not options.float32,
        overwrite=options.overwrite,
    )
    size = "any size" if header.native_size is None else f"trained at {header.native_size}^2"
    print(f"{options.output}: {header.architecture}, {header.channels} channel(s), {size}.")
    print(f"Noise levels {header.sigma_min:g} to {header.sigma_max:g} ({header.preconditioning}).")
    print(f"Licence: {header.licence}.")
    return 0


def _intensity(options: argparse.Namespace) -> IntensityMap | None:
    """The intensity map that the options ask for; None leaves it to the checkpoint."""
    scale, offset = options.hu_scale, options.hu_offset
    if options.mr:
        if any(value is not None for value in (scale, offset, options.lowest_hu)):
            raise RequestError("--mr and --hu-scale contradict each other: give one of them.")
        return IntensityMap("mr")
    if scale is None:
        if offset is not None:
            raise RequestError("--hu-offset needs --hu-scale.")
        if options.lowest_hu is not None:
            raise RequestError("--lowest-hu needs --hu-scale.")
        return None
    offset = 0.0 if offset is None else offset
    if not 0 < scale <= LARGEST_SCALE:
        raise RequestError(f"--hu-scale {scale:g} must lie between 0 and {LARGEST_SCALE:g}.")
    if not abs(offset) <= LARGEST_SCALE:
        raise RequestError(f"--hu-offset {offset:g} is out of range.")
    if options.lowest_hu is not None and not abs(options.lowest_hu) <= LARGEST_SCALE:
        raise RequestError(f"--lowest-hu {options.lowest_hu:g} is out of range.")
    return IntensityMap("hu", scale, offset)
