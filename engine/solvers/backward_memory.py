"""What back-propagating through a denoiser costs in memory, known before it is tried."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.physics.system_matrix import available_memory_bytes
from engine.priors.prior import Prior
from engine.spec.errors import RequestError

# On top of what is counted, the backward pass holds a few maps of gradients at a time; peaks
# measured with the bundled priors are 1.1 to 1.2 times the count.
HEADROOM = 1.25


def backward_bytes(prior: Prior, x: Tensor, sigma: float) -> int:
    """Memory that the graph of D(x; sigma) would keep, counted without keeping it.

    One denoiser call, outside of the method's budget, in which every tensor is dropped as soon
    as its size is noted. What several operations keep is counted once for each.
    """
    total = 0

    def note(tensor: Tensor) -> None:
        nonlocal total
        if tensor.requires_grad:  # parameters are there anyway
            total += tensor.numel() * tensor.element_size()

    def refuse(_: None) -> Tensor:
        raise AssertionError("the counted graph keeps nothing to go back through")

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, refuse):
        image = prior(x.detach().clone().requires_grad_(), sigma)
    if not image.requires_grad:
        raise RequestError(f"The prior {prior.info.name} cannot be differentiated.")
    return total


def free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return available_memory_bytes()


def check_memory(prior: Prior, x: Tensor, sigma: float, allowed_gb: float | None) -> None:
    """Refuse a backward pass that would not fit, and say what would."""
    needed = HEADROOM * backward_bytes(prior, x, sigma)
    allowed = free_bytes(x.device) if allowed_gb is None else allowed_gb * 1e9
    if needed <= allowed:
        return
    height, width = x.shape[-2:]
    share = (allowed / needed) ** 0.5
    raise RequestError(
        f"Back-propagation through this prior needs {needed / 1e9:.2g} GB for one slice of "
        f"{height} x {width} and {allowed / 1e9:.2g} GB are "
        f"{'free' if allowed_gb is None else 'allowed'}: slices up to about "
        f"{int(share * height)} x {int(share * width)} would fit, or a smaller prior."
    )
