"""The CT forward operator: line integrals through the image as a cached sparse matrix.

The matrix is made when it is first multiplied with: filtered back-projection needs none.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.physics.fbp import fbp
from engine.physics.geometry import CTGeometry
from engine.physics.matrix_cache import MatrixCache, default_cache
from engine.physics.operator import Operator
from engine.physics.projection import project, ray_lengths
from engine.physics.system_matrix import CSR
from engine.spec.errors import RequestError

Product = Callable[[Tensor], Tensor]


class CTOperator(Operator):
    """A x: the integrals of x along the rays of a geometry, in (units of x) times mm.

    The adjoint multiplies with the transposed matrix, so the pair matches to rounding. Both
    can be differentiated. With more than one image, the sinogram is returned with the batch
    innermost in memory, the order in which it was computed and in which ``adjoint`` wants it.

    Parameters
    ----------
    geometry : CTGeometry
    dtype : torch.float32 or torch.float64
        Of the matrix; inputs are converted to it.
    filter_name, weighting
        For ``pseudo_inverse``; see `engine.physics.fbp.fbp`.
    cache : MatrixCache, optional
        Where matrices are kept; by default the one shared by the process.
    """

    geometry: CTGeometry
    part = "view"

    def __init__(
        self,
        geometry: CTGeometry,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        filter_name: str = "ramp",
        weighting: str = "mean",
        cache: MatrixCache | None = None,
    ) -> None:
        if dtype not in (torch.float32, torch.float64):
            raise RequestError(f"A CT operator works in float32 or float64, not {dtype}.")
        self.geometry = geometry
        self.dtype = dtype
        self.filter_name = filter_name
        self.weighting = weighting
        self.image_shape = (1, *geometry.image_size)
        self.measurement_shape = (1, geometry.views, geometry.detectors)
        self._cache = cache
        self._pair: tuple[Tensor, Tensor] | None = None
        self._device = torch.device(device)

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent elsewhere as its recipe: the matrix is larger than all images, and soon built."""
        made_of = (self.geometry, "cpu", self.dtype, self.filter_name, self.weighting)
        return CTOperator, made_of

    @property
    def device(self) -> torch.device:
        return self._device

    def to(self, device: torch.device | str) -> CTOperator:
        self._device = torch.device(device)
        if self._pair is not None:
            self._pair = (self._pair[0].to(self._home), self._pair[1].to(self._home))
        return self

    @property
    def matrices(self) -> tuple[Tensor, Tensor]:
        """A and its transpose, built when they are first multiplied with."""
        if self._pair is None:
            matrix = (self._cache or default_cache()).get(
                self.geometry, np.float32 if self.dtype == torch.float32 else np.float64
            )
            forward, adjoint = sparse_tensor(matrix.forward), sparse_tensor(matrix.adjoint)
            self._pair = forward.to(self._home), adjoint.to(self._home)
        return self._pair

    @property
    def _home(self) -> torch.device:
        """Sparse products and float64 exist on these two; elsewhere the images travel."""
        return self._device if self._device.type in ("cpu", "cuda") else torch.device("cpu")

    def forward(self, x: Tensor) -> Tensor:
        check_shape(x, self.image_shape, "image")
        return LinearMap.apply(x, self._project, self._back_project)

    def adjoint(self, y: Tensor) -> Tensor:
        check_shape(y, self.measurement_shape, "sinogram")
        return LinearMap.apply(y, self._back_project, self._project)

    def forward_once(self, x: Tensor) -> Tensor:
        """Without the matrix, unless there is one; equal to ``forward`` but for rounding."""
        if self._pair is not None:
            return self.forward(x)
        check_shape(x, self.image_shape, "image")
        return project(x.to(self._home, self.dtype), self.geometry).to(x.device)

    def ray_lengths(self) -> Tensor:
        lengths = torch.from_numpy(ray_lengths(self.geometry)).to(self.dtype)
        return lengths.to(self.device)[None, None]

    def _project(self, x: Tensor) -> Tensor:
        return _multiply(self.matrices[0], x, self.measurement_shape)

    def _back_project(self, y: Tensor) -> Tensor:
        return _multiply(self.matrices[1], y, self.image_shape).contiguous()

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        """Filtered back-projection, which needs no matrix."""
        check_shape(y, self.measurement_shape, "sinogram")
        return fbp(y.to(self.dtype), self.geometry, self.filter_name, self.weighting)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "ct",
            "backend": "native",
            "geometry": self.geometry.to_dict(),
            "geometry_fingerprint": self.geometry.fingerprint(),
            "projector": "linear interpolation (Joseph), system matrix, exact transpose",
            "dtype": str(self.dtype).removeprefix("torch."),
            "fbp": {"filter": self.filter_name, "weighting": self.weighting},
        }


class LinearMap(torch.autograd.Function):
    """A linear function with its transpose as derivative, however the two are computed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, apply: Product, transpose: Product) -> Tensor:
        ctx.pair, ctx.dtype = (transpose, apply), x.dtype
        return apply(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        result = LinearMap.apply(gradient, *ctx.pair)
        return result.to(ctx.dtype), None, None


def check_shape(tensor: Tensor, shape: tuple[int, int, int], what: str) -> None:
    """Refuse a tensor that is not ``[B, *shape]``."""
    if tensor.ndim != 4 or tuple(tensor.shape[1:]) != shape:
        raise RequestError(
            f"The {what} has the shape {tuple(tensor.shape)}, and the geometry needs "
            f"(batch, {shape[0]}, {shape[1]}, {shape[2]})."
        )


def _multiply(matrix: Tensor, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """matrix @ x for a batch; the result has the batch innermost in memory."""
    batch, device = x.shape[0], x.device
    flat = x.to(device=matrix.device, dtype=matrix.dtype).reshape(batch, -1)
    # One image: a matrix-vector product is twice as fast as a product with one column. Several:
    # with the batch innermost, one pass over the matrix serves them all.
    product = (matrix @ flat[0])[None] if batch == 1 else (matrix @ flat.T).T
    return product.reshape(batch, *shape).to(device)


def sparse_tensor(csr: CSR) -> Tensor:
    """The same memory as a torch tensor."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(csr.crow),
            torch.from_numpy(csr.col),
            torch.from_numpy(csr.value),
            size=csr.shape,
            check_invariants=False,
        )
