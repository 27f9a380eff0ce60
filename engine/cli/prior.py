"""``dualscope prior list|info|import|train|calibrate``."""

from __future__ import annotations

import argparse
import json

from engine.cli import prior_import, prior_train
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
    prior_import.add_options(
        actions.add_parser("import", help="Convert a checkpoint without running its code.")
    )
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
        return prior_import.run(options)
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
