"""A tiny network that corrects FBP images, in a file, with weights that nobody trained."""

import torch
from tiny_prior import tiny_header

from engine.priors.networks import build_network
from engine.priors.precondition import precondition
from engine.priors.safetensors_file import save_prior
from engine.priors.trained_scan import TrainedScan

KWARGS = {
    "channels": 1,
    "widths": [8, 16],
    "blocks": [1, 1],
    "attention": [],
    "unshuffle": 2,
    "embedding": 8,
}


def write_network(path, **scan):
    """Written to ``path``, which is returned; the image it makes is not its input."""
    trained = TrainedScan(**scan)
    kwargs = {"scan": trained.to_dict()}
    torch.manual_seed(0)
    network = precondition("direct", build_network("compact-unet", KWARGS), 0.5, kwargs)
    torch.nn.init.normal_(network.model.head.weight, std=0.02)
    header = tiny_header(
        KWARGS,
        name=path.stem,
        preconditioning="direct",
        preconditioning_kwargs=kwargs,
        sigma_min=0.0,
        sigma_max=1.0,
        native_size=64,
        source_sha256="0",
        description=f"Not a denoiser: corrects FBP images ({trained.words()}).",
    )
    save_prior(path, header, network.state_dict())
    return path
