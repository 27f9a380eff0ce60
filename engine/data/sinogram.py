"""A measured sinogram as a dataset: line integrals, their rays, and the problem made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.acquisition import CTAcquisition
from engine.data.dataset import Dataset
from engine.data.field_check import FEW, check_field
from engine.data.geometry_check import Proposal, check_geometry
from engine.data.input_options import InputOptions
from engine.data.line_integrals import Rows
from engine.data.line_noise import LineNoise, declared_noise, estimated_noise
from engine.data.measured_operator import MeasuredCT
from engine.data.scan_geometry import GeometryNeeded, Layout, Scan, layout
from engine.data.sidecar import Described
from engine.data.view_selection import select_views
from engine.errors import RequestError
from engine.physics.fbp import fbp
from engine.physics.field_of_view import field_of_view, truncated_share
from engine.physics.geometry import CTGeometry
from engine.physics.plugins import make_ct_operator
from engine.physics.units import MU_WATER_PER_MM, noise_scale, normalise_line_integrals
from engine.priors.prior import IntensityMap
from engine.problem import Problem
from engine.settings import option_name

__all__ = ["GeometryNeeded", "SinogramDataset", "open_scan"]

HONOURED = {
    *("views", "angular_range", "start_angle", "fbp_filter", "backend"),
    *("photons", "electronic_noise", "gaussian_noise", "noise", "weighted"),
}
MOST_DEAD = 0.1  # of the detector bins; more is not a scan to be mended
Opener = Callable[[InputOptions], Dataset]


@dataclass
class SinogramDataset(Dataset):
    """Line integrals that were measured; there is no reference image.

    Attributes
    ----------
    layout : the geometry of all measured views with the image grid, and how rows are read
    rows : reads one slice in the file's own order
    options : what the person said when it was opened
    reopen : opens the same file with other options
    """

    kind: ClassVar[str] = "sinogram"
    layout: Layout = field(kw_only=True)
    rows: Callable[[int], Rows] = field(kw_only=True)
    options: InputOptions = field(kw_only=True)
    reopen: Opener = field(kw_only=True)
    mu_water: float = MU_WATER_PER_MM

    @property
    def geometry(self) -> CTGeometry:
        return self.layout.geometry

    def read(self, number: int) -> NDArray[np.float32]:
        """The line integrals ``[views, detectors]`` of a slice, as ``geometry`` has them."""
        return self._measured(number)[0]

    def preview(self, number: int) -> np.ndarray:
        """Filtered back-projection in HU; air outside a field of view that holds the object."""
        y = torch.from_numpy(self.read(number))[None, None]
        cut = truncated_share(y, self.geometry) > FEW
        mu = fbp(y, self.geometry, "hann", extrapolate=cut)
        mu = mu if cut else mu * field_of_view(self.geometry)
        return (1000 * (mu[0, 0] / self.mu_water - 1)).numpy()

    def with_changes(self, **changes: Any) -> SinogramDataset:
        """The same file read with other options, e.g. ``scan_flip=True``."""
        changed = self.reopen(replace(self.options, **changes))
        if not isinstance(changed, SinogramDataset):
            raise RequestError(f"{self.description} is no sinogram with these options.")
        return changed

    def check_geometry(self, number: int | None = None) -> list[Proposal]:
        """What the data say about direction, flip and centre; best first."""
        number = self.count // 2 if number is None else number
        return check_geometry(self.read(number), self.geometry)

    def changes_for(self, proposal: Proposal) -> dict[str, Any]:
        """The options that carry a proposal out, for ``with_changes``."""
        changes: dict[str, Any] = {}
        if proposal.reverse:
            changes["scan_direction"] = "ccw" if self.layout.clockwise else "cw"
        if proposal.flip:
            changes["scan_flip"] = not self.layout.flip
        if proposal.transposed:
            changes["axes"] = self._transposed_axes()
        if not proposal.unchanged:
            changes["scan_offset_mm"] = proposal.offset_mm - self.layout.trim_mm
        return changes

    def problem(
        self,
        numbers: Sequence[int],
        acquisition: dict[str, Any],
        intensity: IntensityMap,
        seed: int,
    ) -> Problem:
        if intensity.kind != "hu":
            raise RequestError("This prior is for MR images; choose a CT prior.")
        settings = CTAcquisition.from_dict(acquisition)
        for name in acquisition:
            if name not in HONOURED:
                raise RequestError(
                    f"{option_name(name)} describes a simulated scan, and {self.description} "
                    "was measured: leave it out."
                )
        kept = select_views(
            np.array(self.geometry.angles_rad),
            acquisition.get("views"),
            acquisition.get("angular_range"),
            acquisition.get("start_angle"),
        )
        geometry = replace(
            self.geometry, angles_rad=tuple(np.array(self.geometry.angles_rad)[kept])
        )
        measured = [self._measured(number) for number in numbers]
        y = torch.from_numpy(np.stack([values[kept] for values, _ in measured]))[:, None]
        operator = MeasuredCT(
            make_ct_operator(geometry, backend=settings.backend, filter_name=settings.fbp_filter),
            intensity,
            truncated=check_field(self, y, geometry),
        )
        noise = self._noise([values for values, _ in measured], settings)
        sigma, weights = noise.of(y, noise_scale(intensity, self.mu_water), settings.weighted)
        self.say("noise", noise.words, noise.origin)
        return Problem(
            operator=operator,
            measurement=normalise_line_integrals(y, operator.lengths, intensity, self.mu_water),
            intensity=intensity,
            modality="CT",
            noise_sigma=sigma,
            noise_origin=noise.origin,
            weights=_alive(weights, [dead for _, dead in measured], y),
            pixel_mm=(geometry.pixel_mm, geometry.pixel_mm),
            slices=tuple(numbers),
            provenance={
                "simulated": False,
                "measured_views": self.geometry.views,
                "kept_views": kept.tolist(),
                "mu_water_per_mm": self.mu_water,
                "noise": noise.to_dict(),
            },
        )

    def _noise(self, slices: list[NDArray[np.float32]], asked: CTAcquisition) -> LineNoise:
        """The noise that was declared, or else what the data say of it."""
        noise = declared_noise(asked)
        if noise is None and asked.noise == "none":
            return LineNoise("taken for noise-free, as asked")
        noise = noise or estimated_noise(slices)
        if not noise.known:
            self.warn(
                "The noise of this scan is not known, for there are too few rays to estimate it: "
                "give --photons or --gaussian-noise, or the methods take it for noise-free."
            )
        return noise

    def _measured(self, number: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """A slice with its dead bins filled in, and which bins those were."""
        if not 0 <= number < self.count:
            raise RequestError(f"{self.description} has no slice {number}: it has {self.count}.")
        rows = self.rows(number)
        values = rows.values[:, ::-1] if self.layout.flip else rows.values
        if rows.starved:
            self._warn(
                f"Slice {number}: {rows.starved} rays let nothing through; "
                "they count as a transmission of 0.00001."
            )
        values, dead = self._without_dead_bins(values, number)
        return _binned(values, self.layout.binning), _binned_dead(dead, self.layout.binning)

    def _without_dead_bins(
        self, values: NDArray[np.float32], number: int
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        wrong = ~np.isfinite(values)
        dead = np.asarray(wrong.all(axis=0))
        stray = int((wrong & ~dead).sum())
        if stray or dead.sum() > MOST_DEAD * dead.size:
            raise RequestError(
                f"{self.description}: slice {number} (counted from 0) holds "
                f"{int(wrong.sum())} values that are NaN "
                "or infinite."
            )
        if dead.any():
            bins = np.arange(dead.size)
            values = values.copy()
            for view in values:
                view[dead] = np.interp(bins[dead], bins[~dead], view[~dead])
            self._warn(
                f"Slice {number}: {int(dead.sum())} detector bins are dead; they are filled in "
                "from their neighbours and have no weight."
            )
        return values, dead

    def _transposed_axes(self) -> str:
        axes = self.options.axes or ("view,detector" if self.count == 1 else "slice,view,detector")
        swap = {"view": "detector", "detector": "view"}
        return ",".join(swap.get(axis.strip(), axis.strip()) for axis in axes.split(","))

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def open_scan(
    path: Path,
    options: InputOptions,
    described: Described,
    scan: Scan,
    rows: Callable[[int], Rows],
    count: int,
    reopen: Opener,
    files: tuple[Path, ...] | None = None,
) -> SinogramDataset:
    """What every reader of sinograms ends with; ``options`` are the person's own."""
    made = layout(path.name, scan, described)
    pixel = made.geometry.pixel_mm
    mu_water = described.options.mu_water
    dataset = SinogramDataset(
        modality="CT",
        description=path.name,
        count=count,
        image_size=made.geometry.image_size,
        pixel_mm=(pixel, pixel),
        files=files or (path,),
        facts=list(made.facts),
        layout=made,
        rows=rows,
        options=options,
        reopen=reopen,
        mu_water=mu_water or MU_WATER_PER_MM,
    )
    origin = described.origin("mu_water") if mu_water else "assumed, as at about 70 keV"
    dataset.add_fact("attenuation of water", f"{dataset.mu_water:g} / mm", origin)
    if described.sidecar is not None:
        dataset.add_fact("sidecar", described.sidecar.name, "beside the file or asked for")
    if mu_water is None:
        dataset.warnings.append(
            f"HU assume that water attenuates {MU_WATER_PER_MM:g} / mm; give --mu-water for "
            "another energy."
        )
    return dataset


def _binned(values: NDArray[np.float32], binning: int) -> NDArray[np.float32]:
    if binning > 1:
        kept = values.shape[1] // binning
        values = values[:, : kept * binning].reshape(len(values), kept, binning).mean(axis=2)
    return np.ascontiguousarray(values, dtype=np.float32)


def _binned_dead(dead: NDArray[np.bool_], binning: int) -> NDArray[np.bool_]:
    kept = dead.size // binning
    return np.asarray(dead[: kept * binning].reshape(kept, binning).any(axis=1))


def _alive(weights: Tensor | None, dead: list[NDArray[np.bool_]], y: Tensor) -> Tensor | None:
    """The weights without dead detector bins; None when every ray has weight 1."""
    if not any(one.any() for one in dead):
        return weights
    alive = torch.from_numpy(~np.stack(dead)).to(y.dtype)[:, None, None, :].expand_as(y)
    return alive.contiguous() if weights is None else weights * alive
