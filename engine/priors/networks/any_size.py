"""Networks on images of other sizes than they were trained on.

A convolutional network takes any size that its pyramid divides, so an image is extended to such
a size and cropped again. Only an image many times larger than the training size is tiled.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from torch import Tensor, nn

from engine.priors.networks.compact import pad_to_multiple
from engine.priors.tiling import tiled

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
