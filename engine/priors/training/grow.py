"""A larger network that begins as a trained one: nothing learned is lost, new parts start at zero.

A small network learns faster per hour; coarser levels, which see more of the image at once, and
further blocks can be added to it afterwards.
"""

from __future__ import annotations

import torch
from torch import nn

from engine.priors.networks.compact import CompactUNet
from engine.spec.errors import RequestError


@torch.no_grad()
def grow(network: nn.Module, trained: nn.Module) -> None:
    """Give ``network`` the weights of ``trained``, its finer part, so that both compute the same.

    Blocks that a level has beyond the trained one's come after those and are built as nothing.
    Where the trained network ended, the new one joins its own coarser levels; that joint passes
    the finer features on and ignores the coarser ones until training finds them useful.
    """
    if not isinstance(network, CompactUNet) or not isinstance(trained, CompactUNet):
        raise RequestError("--grow-from needs a prior of the compact network.")
    weights, known = network.state_dict(), trained.state_dict()
    levels = len(trained.encoder)
    fits = len(network.encoder) >= levels and network.unshuffle == trained.unshuffle
    if not fits or any(
        name not in weights or weights[name].shape != values.shape for name, values in known.items()
    ):
        raise RequestError(
            "--grow-from: the prior's levels must be the first ones of the new network, "
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
