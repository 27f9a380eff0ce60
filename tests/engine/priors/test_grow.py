"""A network grows out of a trained one without forgetting anything."""

import pytest
import torch

from engine.priors.networks.compact import CompactUNet
from engine.priors.training.loop import grow
from engine.spec.errors import RequestError


def scrambled(widths, attention=()):
    """A network whose every weight says something, as after training."""
    torch.manual_seed(len(widths))
    network = CompactUNet(1, widths, [1] * len(widths), attention, 2, 16)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return network


def test_a_grown_network_computes_what_the_trained_one_does_and_can_learn_more():
    trained, deeper = scrambled([16, 24]), scrambled([16, 24, 32, 32], attention=[3])
    # as built, a residual block is the identity; only then is the whole new part
    for level in deeper.decoder[1:]:
        for block in level.blocks:
            torch.nn.init.zeros_(block.conv1.weight)
            torch.nn.init.zeros_(block.conv1.bias)
    grow(deeper, trained)
    x, noise = torch.randn(2, 1, 48, 32), torch.tensor([-0.5, 0.3])
    torch.testing.assert_close(deeper(x, noise), trained(x, noise), rtol=1e-5, atol=1e-5)
    deeper(x, noise).square().mean().backward()
    assert deeper.fuse[1].weight.grad[:, :24].abs().max() > 0  # the coarser levels are asked


def test_a_network_with_more_blocks_begins_as_the_trained_one_too():
    trained = scrambled([16, 32], attention=[1])
    torch.manual_seed(0)
    taller = CompactUNet(1, [16, 32], [2, 3], [1], 2, 16)
    grow(taller, trained)
    x, noise = torch.randn(2, 1, 48, 32), torch.tensor([-0.5, 0.3])
    torch.testing.assert_close(taller(x, noise), trained(x, noise), rtol=1e-5, atol=1e-5)
    taller(x, noise).square().mean().backward()
    assert taller.encoder[0].blocks[1].conv1.weight.grad.abs().max() > 0  # the new one can learn


@pytest.mark.parametrize("widths", [[16, 32], [16]])
def test_a_network_that_does_not_begin_like_the_trained_one_is_refused(widths):
    with pytest.raises(RequestError, match="--grow-from"):
        grow(scrambled(widths), scrambled([16, 24]))
