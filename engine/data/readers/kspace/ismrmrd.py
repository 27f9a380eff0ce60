"""ISMRMRD (MRD) HDF5: readouts one by one, gathered to Cartesian slices by their headers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from engine.data.dataset import Dataset, Fact, Placement, vector_of
from engine.data.kspace.dataset import KspaceDataset
from engine.data.kspace.grid import (
    MAX_SLICE_BYTES,
    GridPlan,
    Kspace,
    KspaceSlice,
    Plane,
    as_lines,
    centre_slice,
    full_run,
    plan_grid,
)
from engine.data.readers.hdf5.safe import item, open_h5
from engine.data.readers.kspace.ismrmrd_lines import (
    CALIBRATION,
    CALIBRATION_AND_IMAGING,
    COMPRESSED,
    NOISE,
    NOT_IMAGES,
    Placed,
    Table,
    acquisitions,
    has_flag,
    place,
    read_samples,
    read_table,
)
from engine.data.readers.kspace.mrd_header import Encoding, MrdHeader, read_header
from engine.physics.prewhitening import Prewhitening, prewhitening
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

FIRST_ONLY = ("contrast", "repetition", "phase", "set")
CARTESIAN = ("cartesian", "epi")
MAX_NOISE_SAMPLES = 1 << 18


@dataclass
class Scan:
    """What the headers say, before any sample is read."""

    path: Path
    group: str
    encoding: Encoding
    imaging: Placed
    calibration: Placed | None
    slabs: list[int]
    shape: tuple[int, int, int]  # partitions, columns, rows
    partitions: range  # those of the image
    plan: GridPlan
    base: int = 0  # where the file's addresses count from
    whitening: Prewhitening | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def per_slab(self) -> int:
        return len(self.partitions)

    @property
    def image_size(self) -> tuple[int, int]:
        return self.plan.rows, self.plan.columns

    @property
    def pixel_mm(self) -> tuple[float, float] | None:
        return self.plan.pixel_mm

    def load(self, number: int) -> KspaceSlice:
        slab, index = divmod(number, self.per_slab)
        lines = self.imaging[self.imaging.table["slice"] == self.slabs[slab]]
        kspace, sampled = self._assemble(lines, index)
        part = KspaceSlice(kspace, sampled)
        if self.calibration is not None:
            lines = self.calibration[self.calibration.table["slice"] == self.slabs[slab]]
            if len(lines):
                part.calibration = self._assemble(lines, index)
        return part

    def _assemble(self, lines: Placed, index: int) -> tuple[Kspace, Plane]:
        counts = lines.counts(self.shape)
        sampled = self._sampled(counts > 0)
        wave = _wave(self.shape[0], self.partitions[index])
        kspace = lines.assemble(counts, wave, self.path, self.base)
        if self.whitening is not None:
            kspace = self.whitening.apply(kspace)
        return self.plan.apply(kspace), self.plan.apply_mask(as_lines(sampled))

    def _sampled(self, measured: Plane) -> Plane:
        """The plane [rows, columns] that every measured partition has in common."""
        used = np.asarray(measured.any(axis=(1, 2)))
        planes = measured[used]
        if len(measured) > 1 and not (full_run(used) and (planes == planes[0]).all()):
            raise RequestError(
                f"{self.path}: its slabs or calibration lines differ in the partitions that were "
                "measured (kspace_encode_step_2)."
            )
        return planes[0].T


@dataclass
class AcrossReadout(Scan):
    """A 3-D scan undersampled in both phase directions: slices along its readout.

    Rows of a slice are the lines of kspace_encode_step_1, columns those of step_2.
    """

    @property
    def per_slab(self) -> int:
        return self.plan.rows

    @property
    def image_size(self) -> tuple[int, int]:
        return self.shape[1], self.shape[0]

    @property
    def pixel_mm(self) -> tuple[float, float] | None:
        _, y, z = self.encoding.encoded.fov_mm
        return (y / self.shape[1], z / self.shape[0]) if min(y, z) > 0 else None

    def _assemble(self, lines: Placed, index: int) -> tuple[Kspace, Plane]:
        counts = lines.counts(self.shape)
        rows = self.shape[2]
        wave = _wave(rows, centre_slice(rows, self.plan.rows).start + index)
        kspace = lines.assemble_across(counts, wave, self.path, self.base)
        if self.whitening is not None:
            kspace = self.whitening.apply(kspace)
        return kspace, as_lines(np.asarray((counts > 0).any(axis=2)).T)


def _wave(n: int, at: int) -> np.ndarray:
    """Weights of the samples along an axis that give its image at index ``at``."""
    k = np.arange(n) - n // 2
    return np.asarray(np.exp(2j * np.pi * k * (at - n // 2) / n) / np.sqrt(n))


def groups_of(file: h5py.File) -> list[str]:
    """Names of the groups that hold a header and acquisitions."""
    return [
        name
        for name in list(file.keys())[:1000]
        if isinstance(group := item(file, name), h5py.Group) and {"xml", "data"} <= set(group)
    ]


def open_ismrmrd(path: Path, options: InputOptions) -> Dataset:
    with open_h5(path) as file:
        name, names = _chosen_group(file, path, options)
        group = file[name]
        header = read_header(group, "xml", path)
        if header is None or not header.encodings:
            raise RequestError(f"{path}: the header describes no encoding.")
        table = read_table(acquisitions(group, path), path)
        base = file.userblock_size
    warnings: list[str] = []
    imaging = _chosen_lines(path, table, header, warnings)[0]
    if _encoding_of(path, header, imaging).trajectory not in CARTESIAN:
        from engine.data.readers.kspace.ismrmrd_spokes import open_ismrmrd_spokes

        spokes = open_ismrmrd_spokes(path, name, header, table, imaging, options)
        spokes.warnings += warnings
        return spokes
    scan = _plan_scan(path, name, header, table, options)
    scan.base = base
    _whiten(scan, header, table)
    dataset = _dataset(scan, header, options)
    if len(names) > 1:
        dataset.warnings.append(f"{len(names)} measurements in the file; '{name}' is used.")
    return dataset


def _chosen_group(file: h5py.File, path: Path, options: InputOptions) -> tuple[str, list[str]]:
    names = groups_of(file)
    if options.dataset is not None:
        wanted = options.dataset.strip("/")
        if wanted not in names:
            known = ", ".join(names[:8]) or "none"
            raise RequestError(
                f"{path}: ⟦dataset⟧ '{options.dataset}' is no measurement in it ({known})."
            )
        return wanted, [wanted]
    if not names:
        raise RequestError(f"{path} holds no ISMRMRD measurement.")
    return ("dataset" if "dataset" in names else names[0]), names


def _plan_scan(
    path: Path, group: str, header: MrdHeader, table: Table, options: InputOptions
) -> Scan:
    warnings: list[str] = []
    imaging, calibration = _chosen_lines(path, table, header, warnings)
    encoding = _encoding_of(path, header, imaging)
    if encoding.trajectory == "epi":
        warnings.append(
            "An EPI scan: ghosts and ramp sampling are not corrected; expect artefacts."
        )
    rows, columns, partitions = encoding.encoded.matrix
    shape = (partitions, columns, rows)
    coils = int(imaging["active_channels"][0])
    if max(coils, 1) * rows * columns * 8 > MAX_SLICE_BYTES:
        raise RequestError(f"{path}: slices of {coils} x {rows} x {columns} are too large.")
    if partitions * rows * columns * 4 > MAX_SLICE_BYTES:
        raise RequestError(f"{path}: a volume of {partitions} x {rows} x {columns} is too large.")
    centre = (
        encoding.step_1.centre if encoding.step_1 else columns // 2,
        encoding.step_2.centre if encoding.step_2 else partitions // 2,
    )
    placed, warning = place(imaging, shape, centre, path)
    extra = place(calibration, shape, centre, path)[0] if len(calibration) else None
    plan = plan_grid((rows, columns), encoding.encoded, encoding.recon, options)
    shown = min(encoding.recon.matrix[2], partitions)
    middle = centre_slice(partitions, shown)
    kind = AcrossReadout if _undersampled_twice(placed, shape) else Scan
    if kind is AcrossReadout:
        plan.crop = None
        plan.facts = [fact for fact in plan.facts if fact.name.startswith("readout")]
        plan.facts.append(
            Fact("slices", "along the readout", "undersampled in both phase directions")
        )
    return kind(
        path=path,
        group=group,
        encoding=encoding,
        imaging=placed,
        calibration=extra,
        slabs=sorted(set(imaging["slice"].tolist())),
        shape=shape,
        partitions=range(middle.start, middle.stop),
        plan=plan,
        warnings=[*warnings, *([warning] if warning else [])],
    )


def _encoding_of(path: Path, header: MrdHeader, imaging: Table) -> Encoding:
    reference = int(imaging["encoding_space_ref"][0])
    if reference >= len(header.encodings):
        raise RequestError(f"{path}: the header lacks encoding {reference}, which lines refer to.")
    return header.encodings[reference]


def _undersampled_twice(lines: Placed, shape: tuple[int, int, int]) -> bool:
    """Whether the partitions of a slab were not measured all, or not with the same lines."""
    slab = lines[lines.table["slice"] == lines.table["slice"][0]]
    measured = np.zeros(shape[:2], bool)
    measured[slab.kz, slab.ky] = True
    used = np.asarray(measured.any(axis=1))
    return shape[0] > 1 and not (full_run(used) and (measured[used] == measured[used][0]).all())


def _chosen_lines(
    path: Path, table: Table, header: MrdHeader, warnings: list[str]
) -> tuple[Table, Table]:
    """Imaging lines and calibration lines, of the first contrast, repetition, ...

    Lines for calibration and imaging are both. Lines for calibration alone are of the image, too,
    where the header says that the calibration is embedded in the scan.
    """
    if has_flag(table, *COMPRESSED).any():
        raise RequestError(f"{path}: its samples are compressed; store them uncompressed.")
    table = table[~has_flag(table, NOISE, *NOT_IMAGES)]
    both = has_flag(table, CALIBRATION_AND_IMAGING)
    only = has_flag(table, CALIBRATION) & ~both
    modes = [one.calibration_mode == "embedded" for one in header.encodings]
    embedded = np.isin(table["encoding_space_ref"], np.flatnonzero(modes))
    imaging, calibration = table[~only | embedded], table[only | both]
    if not only.any():  # the imaging lines hold them all
        calibration = calibration[:0]
    if not len(imaging):
        raise RequestError(f"{path} holds no imaging lines.")
    references = np.unique(imaging["encoding_space_ref"])
    if len(references) > 1:
        warnings.append(f"{len(references)} encodings in the file; the first is used.")
    imaging = imaging[imaging["encoding_space_ref"] == references[0]]
    calibration = calibration[calibration["encoding_space_ref"] == references[0]]
    for name in FIRST_ONLY:
        values = np.unique(imaging[name])
        if len(values) > 1:
            warnings.append(f"{len(values)} {name}s in the file; the first is used.")
        imaging = imaging[imaging[name] == values[0]]
        if len(calibration):
            calibration = calibration[calibration[name] == calibration[name].min()]
    coils = np.unique(np.concatenate((imaging["active_channels"], calibration["active_channels"])))
    if len(coils) != 1 or coils[0] < 1:
        raise RequestError(f"{path}: its lines have {', '.join(map(str, coils[:5]))} coils.")
    return imaging, calibration


def _whiten(scan: Scan, header: MrdHeader, table: Table) -> None:
    """Coils made equally noisy, when the file has noise scans that fit its imaging lines."""
    noise = table[has_flag(table, NOISE)]
    imaging = scan.imaging.table
    if not len(noise):
        return
    if (noise["active_channels"] != imaging["active_channels"][0]).any():
        scan.warnings.append("The noise scans have other coils than the image; they are not used.")
        return
    length = max(1, int(noise["number_of_samples"].max()))
    noise = noise[: max(1, MAX_NOISE_SAMPLES // length)]
    samples = np.concatenate([*read_samples(noise, scan.path, scan.base)], axis=1)
    dwell = [float(np.median(lines["sample_time_us"])) for lines in (noise, imaging)]
    ratio = dwell[0] / dwell[1] if min(dwell) > 0 else 1.0
    found = prewhitening(samples, ratio / header.noise_bandwidth)
    if found is None:
        scan.warnings.append("The noise scans are too short or degenerate; they are not used.")
        return
    repeats = len(scan.imaging) / max(1, len({*zip(*_places(scan.imaging), strict=True)}))
    scan.whitening = Prewhitening(found.matrix, found.sigma / float(np.sqrt(repeats)))


def _places(lines: Placed) -> tuple[list[int], ...]:
    return lines.table["slice"].tolist(), lines.ky.tolist(), lines.kz.tolist()


def _dataset(scan: Scan, header: MrdHeader, options: InputOptions) -> KspaceDataset:
    plan, imaging = scan.plan, scan.imaging
    dataset = KspaceDataset(
        modality="MR",
        description=scan.path.name,
        count=len(scan.slabs) * scan.per_slab,
        image_size=scan.image_size,
        pixel_mm=scan.pixel_mm,
        files=(scan.path,),
        facts=plan.facts,
        warnings=[*plan.warnings, *scan.warnings],
        placements=_placements(scan),
        coils=int(imaging.table["active_channels"][0]),
        coil_use=options.coil_use or "sense",
        crop_size=plan.crop,
        noise_sigma=scan.whitening.sigma if scan.whitening else 0.0,
        load_slice=scan.load,
    )
    dataset.add_fact("format", f"ISMRMRD, group {scan.group}", "the file")
    dataset.add_fact("coils", dataset.coils, "acquisition headers")
    repeats = len(imaging) / max(1, len({*zip(*_places(imaging), strict=True)}))
    dataset.add_fact("averages", f"{repeats:.3g}, averaged", "repeated lines")
    if scan.whitening:
        value = f"SD {scan.whitening.sigma:.4g} per component; coils prewhitened"
        dataset.add_fact("noise", value, "noise scans of the file")
    if dataset.placements:
        dataset.add_fact("placement", "position and directions", "acquisition headers")
    if dataset.placements and "siemens" in header.vendor.lower():
        dataset.warnings.append(
            "Siemens data may follow the opposite sign of the Fourier transform; "
            "check left and right before relying on the stated orientation."
        )
    return dataset


def _placements(scan: Scan) -> tuple[Placement, ...] | None:
    """Rows run along the readout, columns along the phase encoding; None when unknown."""
    if scan.plan.pixel_mm is None or isinstance(scan, AcrossReadout):
        return None
    thickness = scan.encoding.encoded.fov_mm[2] / scan.shape[0] or None
    placements = []
    for slab in scan.slabs:
        head = scan.imaging.table[scan.imaging.table["slice"] == slab][0]
        position, read, phase, normal = (
            head[name].astype(float) for name in ("position", "read_dir", "phase_dir", "slice_dir")
        )
        frame = np.stack((read, phase, normal))
        if not np.isfinite(position).all() or not np.allclose(
            frame @ frame.T, np.eye(3), atol=1e-3
        ):
            return None
        spacing = scan.plan.pixel_mm
        corner = position - scan.plan.rows // 2 * spacing[0] * read
        corner = corner - scan.plan.columns // 2 * spacing[1] * phase
        for z in scan.partitions:
            here = corner + (z - scan.shape[0] // 2) * (thickness or 0.0) * normal
            placements.append(
                Placement(vector_of(here), vector_of(phase), vector_of(read), spacing, thickness)
            )
    return tuple(placements)
