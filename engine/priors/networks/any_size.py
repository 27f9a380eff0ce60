"""Networks on images of other sizes than they were trained on.

A convolutional network takes any size that its pyramid divides, so an image is extended to such
a size and cropped again. Only an image many times larger than the training size is tiled.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

from torch import Tensor, nn

from engine.priors.adapted import tiled
from engine.priors.networks.compact import pad_to_multiple
from engine.spec.errors import RequestError

# Sides up to this many times the training size go through the network whole: for the public
# checkpoints that is at least 256^2 positions per attention map, still a fraction of a second.
LARGEST_FACTOR = 4


class AnySizeNetwork(nn.Module, ABC):
    """A network F(x, c_noise) that pads, crops and, only when it must, tiles.

    Attributes
    ----------
    multiple
        Sides must be divisible by it.
    native_size
        The side of the images it was trained on.
    """

    multiple: int
    native_size: int

    def forward(self, x: Tensor, c_noise: Tensor) -> Tensor:
        if max(x.shape[-2:]) > LARGEST_FACTOR * self.native_size:
            tile = math.ceil(self.native_size / self.multiple) * self.multiple
            return tiled(lambda part: self._padded(part, c_noise), x, tile, tile // 4)
        return self._padded(x, c_noise)

    def _padded(self, x: Tensor, c_noise: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        return self.evaluate(pad_to_multiple(x, self.multiple), c_noise)[..., :height, :width]

    @abstractmethod
    def evaluate(self, x: Tensor, c_noise: Tensor) -> Tensor:
        """F for a batch whose sides ``multiple`` divides."""


# Checks of a network's keyword arguments, which come from files that nobody vouches for.
#
# The bounds lie far beyond anything useful and are small enough that a hostile file cannot make
# building a network exhaust memory or time.


def check_names(kwargs: dict[str, Any], known: Collection[str]) -> None:
    """Every argument is present and none is unknown."""
    odd = sorted(set(kwargs) ^ set(known), key=str)
    if odd:
        raise RequestError(f"The network's argument '{str(odd[0])[:60]}' is unknown or missing.")


def whole(kwargs: dict[str, Any], name: str, low: int, high: int) -> int:
    """One whole number within bounds."""
    value = kwargs[name]
    if type(value) is not int or not low <= value <= high:
        raise RequestError(f"The network's '{name}' must be a whole number, {low} to {high}.")
    return value


def wholes(
    kwargs: dict[str, Any], name: str, low: int, high: int, least: int, most: int
) -> list[int]:
    """A list of ``least`` to ``most`` whole numbers within bounds."""
    values = kwargs[name]
    if (
        not isinstance(values, list | tuple)
        or not least <= len(values) <= most
        or not all(type(value) is int and low <= value <= high for value in values)
    ):
        raise RequestError(
            f"The network's '{name}' must be {least} to {most} whole numbers, {low} to {high}."
        )
    return list(values)


def one_of(kwargs: dict[str, Any], name: str, choices: Collection[Any]) -> Any:
    """One of a few values, of the very same type (True is not 1)."""
    value = kwargs[name]
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise RequestError(f"The network's '{name}' must be one of {', '.join(map(str, choices))}.")
    return value


def check_levels(img_resolution: int, levels: int) -> None:
    """The resolution can be halved as often as the network does it."""
    if img_resolution % 2 ** (levels - 1):
        raise RequestError(
            f"The network's 'img_resolution' {img_resolution} cannot be halved {levels - 1} times."
        )
