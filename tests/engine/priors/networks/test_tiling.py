"""Tiles: what they blend to, and when they are used."""

import pytest
import torch

from engine.priors.adapted import tiled
from engine.priors.networks.any_size import LARGEST_FACTOR, AnySizeNetwork


class Spy(AnySizeNetwork):
    """The identity on two channels out of one; remembers what it saw."""

    multiple, native_size = 4, 16

    def __init__(self):
        super().__init__()
        self.seen = []

    def evaluate(self, x, c_noise):
        self.seen.append(tuple(x.shape[-2:]))
        return torch.cat([x, 2 * x], dim=1)


@pytest.mark.parametrize(("height", "width"), [(64, 64), (65, 100), (10, 200), (16, 16), (17, 3)])
@pytest.mark.parametrize("overlap", [0, 4, 8])
def test_tiles_of_a_pointwise_function_blend_to_it(height, width, overlap):
    x = torch.randn(2, 1, height, width)
    out = tiled(lambda part: 3 * part + 1, x, 16, overlap)
    assert torch.allclose(out, 3 * x + 1, atol=1e-5)


def test_neighbouring_tiles_blend_smoothly():
    """Tiles that disagree leave no edge: steps are spread over the overlap."""
    answers = iter([0.0, 1.0, 0.0, 1.0])
    x = torch.zeros(1, 1, 16, 40)
    out = tiled(lambda part: torch.full_like(part, next(answers)), x, 24, 8)
    assert float(out.diff(dim=-1).abs().max()) < 0.25


def test_images_up_to_a_few_times_the_training_size_are_not_tiled():
    network = Spy()
    side = LARGEST_FACTOR * 16
    network(torch.randn(1, 1, side, 30), torch.zeros(1))
    assert network.seen == [(side, 32)]


def test_very_large_images_are_tiled_at_the_training_size():
    network, x = Spy(), torch.randn(1, 1, 70, 90)
    out = network(x, torch.zeros(1))
    assert set(network.seen) == {(16, 16)}
    assert torch.allclose(out, torch.cat([x, 2 * x], dim=1), atol=1e-5)
