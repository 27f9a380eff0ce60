"""Your own forward model: an image of which three pixels of four are not seen."""

import sys

import torch

import dualscope as ds

size, nfe = (64, 4) if "--quick" in sys.argv else (256, 50)


class Seen(ds.Operator):
    """A x: the pixels that are seen."""

    def __init__(self, seen: torch.Tensor) -> None:
        self.seen = seen
        self.image_shape = self.measurement_shape = (1, *seen.shape)

    def forward(self, x):
        return self.seen * x

    def adjoint(self, y):
        return self.seen * y

    def pseudo_inverse(self, y):
        return self.adjoint(y)

    def describe(self):
        return {"kind": "seen pixels", "share": float(self.seen.mean())}


seen = (torch.rand(size, size, generator=torch.Generator().manual_seed(0)) < 0.25).float()
problem = ds.simulate("demo:ct", operator=Seen(seen), noise_sigma=0.01, size=size)
result = ds.reconstruct(problem, prior="ct-small", nfe=nfe)
print(result)
result.save("own_operator.png", overwrite=True)
