"""``dualscope prior import CHECKPOINT OUT.safetensors``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from engine.physics.units import IntensityMap
from engine.spec.errors import DualscopeError, RequestError

DONE, FAILED, WRONG_REQUEST = 0, 1, 2
LARGEST_SCALE = 1e6


def add_options(parser: argparse.ArgumentParser) -> None:
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


def run(options: argparse.Namespace) -> int:
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
    return DONE


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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="dualscope prior import", description=__doc__)
    add_options(parser)
    try:
        return run(parser.parse_args(arguments))
    except DualscopeError as error:
        print(f"dualscope: {error}", file=sys.stderr)
        return WRONG_REQUEST if isinstance(error, RequestError) else FAILED


if __name__ == "__main__":
    sys.exit(main())
