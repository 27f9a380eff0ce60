"""A measured sinogram as a dataset: line integrals, their rays, and the problem made of them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.data.dataset import Dataset
from engine.data.sidecar import Described
from engine.data.sinogram.checks import check_scan, shows_object
from engine.data.sinogram.detector_repair import MOST_BAD, Repair, fill_in
from engine.data.sinogram.field_check import FEW, check_field
from engine.data.sinogram.geometry_check import Proposal, check_geometry, judge
from engine.data.sinogram.line_noise import (
    LineNoise,
    declared_noise,
    estimated_noise,
    transferred_noise,
)
from engine.data.sinogram.scan_geometry import GeometryNeeded, Layout, Scan, layout
from engine.data.sinogram.units import Rows, water_of
from engine.data.sinogram.view_selection import select_views
from engine.physics.aperture import ApertureCT
from engine.physics.fbp import fbp
from engine.physics.field_of_view import MeasuredCT, field_of_view, truncated_share
from engine.physics.geometry import CTGeometry
from engine.physics.noise_estimate import Detector
from engine.physics.plugins import make_ct_operator
from engine.physics.problem import Problem
from engine.physics.units import (
    MU_WATER_PER_MM,
    IntensityMap,
    noise_scale,
    normalise_line_integrals,
)
from engine.spec.acquisition import CTAcquisition
from engine.spec.errors import RequestError, Sentence
from engine.spec.input_options import InputOptions, give

__all__ = ["GeometryNeeded", "SinogramDataset", "open_scan"]

HONOURED = {
    *("views", "angular_range", "start_angle", "fbp_filter", "backend"),
    *("photons", "electronic_noise", "gaussian_noise", "noise", "weighted", "aperture"),
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
    axes : order of the file's axes, when it holds an array in any order
    repair : what is corrected in the detector's values before anything else sees them
    detector : what flat and dark frames say of the detector's row of a slice, where there are any
    """

    kind: ClassVar[str] = "sinogram"
    layout: Layout = field(kw_only=True)
    rows: Callable[[int], Rows] = field(kw_only=True)
    options: InputOptions = field(kw_only=True)
    reopen: Opener = field(kw_only=True)
    axes: str | None = None
    mu_water: float = MU_WATER_PER_MM
    repair: Repair = field(default_factory=Repair)
    detector: Callable[[int], Detector | None] | None = None

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

    def uncorrected(self) -> SinogramDataset:
        """The same scan as the detector wrote it: without repairs, in the same units."""
        return replace(self, repair=Repair(scale=self.repair.scale))

    def with_changes(self, **changes: Any) -> SinogramDataset:
        """The same file read with other options, e.g. ``scan_flip=True``."""
        changed = self.reopen(replace(self.options, **changes))
        if not isinstance(changed, SinogramDataset):
            raise RequestError(f"{self.description} is no sinogram with these options.")
        return changed

    def check_geometry(self, number: int | None = None) -> list[Proposal]:
        """What the data say about direction, flip, centre and axes; best first."""
        number = self.count // 2 if number is None else number
        return self._check_geometry(self.read(number))

    def _check_geometry(self, values: NDArray[np.float32]) -> list[Proposal]:
        """The readings; the verdict on the given one goes into the checks."""
        even = self.layout.range_deg is not None
        pitch = self.geometry.pitch_mm / self.layout.binning if even else None
        proposals = check_geometry(values, self.geometry, pitch)
        verdict, sentence, better = judge(proposals, self.geometry)
        self.check("geometry", verdict, sentence, give(self.changes_for(better)) if better else "")
        return proposals

    def changes_for(self, proposal: Proposal) -> dict[str, Any]:
        """The options that carry a proposal out, for ``with_changes``."""
        changes: dict[str, Any] = {}
        if proposal.reverse:
            changes["scan_direction"] = "ccw" if self.layout.clockwise else "cw"
        if proposal.flip:
            changes["scan_flip"] = not self.layout.flip
        if proposal.transposed:
            changes["axes"] = self.exchanged_axes("view", "detector")
        if proposal.radians:
            changes |= self.angles_as_radians()
        if not proposal.unchanged:
            trim = 0.0 if proposal.transposed else self.layout.trim_mm
            changes["scan_offset_mm"] = proposal.offset_mm - trim
        return changes

    def angles_as_radians(self) -> dict[str, Any]:
        said = self.layout.range_deg
        return {"scan_angle_unit": "rad"} if said is None else {"scan_range": math.degrees(said)}

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
                    f"⟦{name}⟧ describes a simulated scan, and {self.description} "
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
        seen = any(shows_object(values) for values, _ in measured)  # not only noise in air
        rays = make_ct_operator(geometry, backend=settings.backend, filter_name=settings.fbp_filter)
        operator = MeasuredCT(
            ApertureCT(rays) if settings.aperture else rays,
            intensity,
            truncated=seen and check_field(self, y, geometry),
        )
        self._check_before_run(measured[0][0])
        noise = self.noise([values for values, _ in measured], settings, numbers)
        sigma, weights = noise.of(y, noise_scale(intensity, self.mu_water), settings.weighted)
        return Problem(
            operator=operator,
            measurement=normalise_line_integrals(y, operator.lengths, intensity, self.mu_water),
            intensity=intensity,
            modality="CT",
            noise_sigma=sigma,
            noise_origin=noise.origin,
            weights=_alive(weights, [bad[kept] for _, bad in measured], y),
            pixel_mm=(geometry.pixel_mm, geometry.pixel_mm),
            slices=tuple(numbers),
            provenance={
                "simulated": False,
                "measured_views": self.geometry.views,
                "kept_views": kept.tolist(),
                "mu_water_per_mm": self.mu_water,
                "noise": noise.to_dict(),
                "corrections": self.repair.to_dict(),
            },
        )

    def _check_before_run(self, values: NDArray[np.float32]) -> None:
        """What was not looked at when the scan was opened; once, it is the same for all slices."""
        known = {check.name for check in self.checks}
        if not shows_object(values):
            return
        if "units" not in known:
            self._take_checks(Rows(values), values)
        if "geometry" not in known:
            with contextlib.suppress(RequestError):  # too small to be checked
                self._check_geometry(values)

    def noise(
        self, slices: list[NDArray[np.float32]], asked: CTAcquisition, numbers: Sequence[int]
    ) -> LineNoise:
        """The noise that was given, or else what the data say of it; it becomes a fact."""
        noise = declared_noise(asked)
        if noise is None and asked.noise == "none":
            noise = LineNoise("taken for noise-free, as asked")
        if noise is None and self.detector is not None:
            rows = [self.detector(number) for number in numbers]
            noise = transferred_noise(rows, slices, self.layout.flip, self.layout.binning)
        noise = noise or estimated_noise(slices)
        self.say("noise", noise.words, noise.origin)
        if asked.noise == "none":
            return noise
        if sentence := noise.disagreement():
            fix = "give ⟦photons⟧, if you know it, or look at the chi-square of the result"
            self.check("noise", "doubtful", sentence, fix)
        if not noise.known:
            self.warn(
                "The noise of this scan is not known, for there are too few rays to estimate it: "
                "give ⟦photons⟧ or ⟦gaussian_noise⟧, or the methods take it for noise-free."
            )
        return noise

    def _measured(self, number: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """A slice with its bad values filled in, and which values those were."""
        if not 0 <= number < self.count:
            raise RequestError(f"{self.description} has no slice {number}: it has {self.count}.")
        return self._corrected(self.rows(number), number)

    def _corrected(self, rows: Rows, number: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        if rows.starved:
            self.warn(
                f"Slice {number}: {rows.starved} rays let nothing through; "
                "they count as a transmission of 0.00001."
            )
        values = self.repair.shaped(rows.values)
        values, bad = self._without_bad_pixels(values, number)
        values = self.repair.finished(values)
        if self.layout.flip:
            values, bad = values[:, ::-1], bad[:, ::-1]
        return _binned(values, self.layout.binning), _any_binned(bad, self.layout.binning)

    def _without_bad_pixels(
        self, values: NDArray[np.float32], number: int
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        wrong = ~np.isfinite(values)
        dead = np.asarray(wrong.all(axis=0))
        stray = 0 if self.repair.bad_pixels else int((wrong & ~dead).sum())
        if stray or dead.sum() > MOST_DEAD * dead.size:
            raise RequestError(
                f"{self.description}: slice {number} (counted from 0) holds "
                f"{int(wrong.sum())} values that are NaN "
                "or infinite."
            )
        bad = self.repair.mask(values) | dead
        if bad.mean() > MOST_BAD:
            raise RequestError(
                f"{self.description}: {100 * bad.mean():.0f} % of the values of slice {number} are "
                "bad pixels: that is not a detector to be mended."
            )
        if dead.any():
            self.warn(
                f"Slice {number}: {int(dead.sum())} detector bins are dead; they are filled in "
                "from their neighbours and have no weight."
            )
        return (fill_in(values, bad) if bad.any() else values), bad

    def exchanged_axes(self, one: str, other: str) -> str:
        """The order of axes with two of them exchanged, for ``axes``."""
        axes = self.axes or ("view,detector" if self.count == 1 else "slice,view,detector")
        swap = {one: other, other: one}
        return ",".join(swap.get(axis.strip(), axis.strip()) for axis in axes.split(","))

    def look(self) -> None:
        number = self.count // 2
        try:
            rows = self.rows(number)
            lines, _ = self._corrected(rows, number)
        except RequestError as error:
            fix = "" if self.repair.bad_pixels else give({"scan_bad_pixels": True})
            self.check("values", "doubtful", Sentence(error), fix)  # other slices may be fine
            return
        self._take_checks(rows, lines)

    def _take_checks(self, rows: Rows, lines: NDArray[np.float32]) -> None:
        for one in check_scan(self, rows, lines):
            self.check(one.name, one.verdict, one.sentence, one.fix)
        if shows_object(lines):
            check_field(self, torch.from_numpy(lines)[None, None], self.geometry)


def open_scan(
    path: Path,
    options: InputOptions,
    described: Described,
    scan: Scan,
    rows: Callable[[int], Rows],
    count: int,
    reopen: Opener,
    files: tuple[Path, ...] | None = None,
    detector: Callable[[int], Detector | None] | None = None,
) -> SinogramDataset:
    """What every reader of sinograms ends with; ``options`` are the person's own."""
    made = layout(path.name, scan, described)
    pixel = made.geometry.pixel_mm
    repair = Repair.asked(described.options, described.bad_bins)
    repair.check(path.name, scan.detectors)
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
        repair=repair,
        detector=detector,
    )
    _settle_water(dataset, described, scan.energy_kev)
    dataset.settle_slices(described.options.slice_spacing_mm, described.origin("slice_spacing_mm"))
    for name, words in repair.words().items():
        dataset.add_fact(name, words, "corrected, as asked")
    if described.sidecar is not None:
        dataset.add_fact("sidecar", described.sidecar.name, "beside the file or asked for")
    return dataset


def _settle_water(dataset: SinogramDataset, described: Described, file_kev: float | None) -> None:
    """What water attenuates: told, taken from a table at the energy told, or assumed."""
    told = described.options
    dataset.mu_water = water_of(told, file_kev)
    if told.mu_water is not None:
        origin = described.origin("mu_water")
    elif told.energy_kev is not None:
        origin = f"at {told.energy_kev:g} keV"
    elif file_kev is not None:
        origin = f"at the file's {file_kev:g} keV"
    else:
        origin = "assumed, as at about 70 keV"
        dataset.warn(
            f"HU assume that water attenuates {MU_WATER_PER_MM:g} / mm; give ⟦mu_water⟧ or "
            "⟦energy_kev⟧ for another energy."
        )
    dataset.add_fact("attenuation of water", f"{dataset.mu_water:.4g} / mm", origin)


def _binned(values: NDArray[np.float32], binning: int) -> NDArray[np.float32]:
    if binning > 1:
        kept = values.shape[1] // binning
        values = values[:, : kept * binning].reshape(len(values), kept, binning).mean(axis=2)
    return np.ascontiguousarray(values, dtype=np.float32)


def _any_binned(bad: NDArray[np.bool_], binning: int) -> NDArray[np.bool_]:
    if binning > 1:
        kept = bad.shape[1] // binning
        return np.asarray(bad[:, : kept * binning].reshape(len(bad), kept, binning).any(axis=2))
    return bad


def _alive(weights: Tensor | None, bad: list[NDArray[np.bool_]], y: Tensor) -> Tensor | None:
    """The weights without bad values; None when every ray has weight 1."""
    if not any(one.any() for one in bad):
        return weights
    alive = torch.from_numpy(~np.stack(bad)).to(y.dtype)[:, None]
    return alive if weights is None else weights * alive
