"""Opening and simulating: from files and arrays to problems."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from engine.api.keywords import (
    SCANS,
    Slices,
    checked_seed,
    img,
    in_keywords,
    keywords_in,
    known_names,
    numbers_of,
    refuse_unknown,
    slices_text,
    taken,
    warn,
)
from engine.data.dataset import Check, Dataset, Fact, ImageDataset
from engine.data.readers.arrays import open_array
from engine.data.source import open_input, settled
from engine.export.outputs import linear_window
from engine.export.picture import windowed_png
from engine.physics.operator import Operator
from engine.physics.problem import Problem
from engine.physics.random import MEASUREMENT, make_generator, normal_like
from engine.physics.simulate import mr_scale
from engine.physics.units import IntensityMap
from engine.priors import catalogue
from engine.priors.network_prior import CallablePrior
from engine.priors.prior import Prior
from engine.spec.acquisition import acquisition_of
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

AnyPrior = str | Path | Prior | Callable[[Tensor, float], Tensor]
ARRAY = Path("the array")  # what sentences call an input without a name


@dataclass(repr=False)
class Data:
    """An opened input: images, sinograms or k-space, and what is known and doubtful of them."""

    dataset: Dataset
    path: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """'image', 'sinogram' or 'kspace'."""
        return self.dataset.kind

    @property
    def modality(self) -> str:
        """'CT' or 'MR'."""
        return self.dataset.modality

    @property
    def shape(self) -> tuple[int, int, int]:
        """(slices, rows, columns) of the images."""
        return (len(self.dataset), *self.dataset.image_size)

    @property
    def pixel_mm(self) -> tuple[float, float] | None:
        """(row, column) spacing."""
        return self.dataset.pixel_mm

    @property
    def facts(self) -> list[Fact]:
        """What is known of the input, and where each number came from."""
        return self.dataset.facts

    @property
    def checks(self) -> list[Check]:
        """What was looked at, with a verdict and, where one helps, a fix."""
        return self.dataset.checks

    def preview(self, slice: int = 0) -> NDArray:
        """A quick picture of a slice ``[rows, columns]``: HU (CT) or magnitude (MR)."""
        with in_keywords():
            return self.dataset.preview(numbers_of(slice, len(self.dataset))[0])

    def problem(
        self,
        *,
        slice: Slices = None,
        prior: AnyPrior = "auto",
        seed: int = 0,
        ignore_checks: bool = False,
        **acquisition: Any,
    ) -> Problem:
        """The measurement of these slices (default: of all) in the units of ``prior``.

        An image is measured as ``acquisition`` says (views, photons, acceleration ...). Of a
        scan it takes a part (views=60) or says what is known of it (photons=1e5).
        """
        with in_keywords():
            refuse_unknown(acquisition, known_names(SCANS[self.modality]), f"A {self.kind}")
            asked = acquisition_of(self.path, taken(acquisition, SCANS[self.modality]))
            if not ignore_checks:
                self.dataset.refuse_blocked()
            chosen = find_prior(prior, self.modality)
            numbers = numbers_of(slice, len(self.dataset))
            seed, label = checked_seed(seed), prior_label(prior, chosen)
            made = Source(self, slices_text(slice), numbers, asked, seed, chosen, label)
            problem = made.problem(chosen)
            for sentence in self.dataset.notices:
                warn(sentence)
            return problem

    def __repr__(self) -> str:
        lines = [f"{self.dataset.description}: {self.modality} {self.kind}, {self.shape}"]
        lines += [f"  {fact.name}: {fact.value} ({fact.origin})" for fact in self.facts]
        return "\n".join([*lines, *(f"  ! {keywords_in(said)}" for said in self.dataset.notices)])

    def _repr_html_(self) -> str:
        values = self.preview(len(self.dataset) // 2)
        window = linear_window(*np.quantile(values, [0.001, 0.999]).tolist())
        return f"{img(windowed_png(values, window))}<pre>{escape(repr(self))}</pre>"


@dataclass
class Source:
    """What a problem was made of, to make it again in another prior's units."""

    data: Data
    slices: str | None
    numbers: tuple[int, ...]
    acquisition: dict[str, Any]
    seed: int
    prior: Prior
    label: str  # the prior as it was asked for

    def problem(self, prior: Prior) -> Problem:
        intensity = prior.info.intensity
        problem = self.data.dataset.problem(self.numbers, self.acquisition, intensity, self.seed)
        problem.source = replace(self, prior=prior)
        return problem


def open(path: str | Path | ArrayLike, **options: Any) -> Data:
    """Open a file, a folder, ``'demo:ct'`` or an array; ``options`` say what it does not.

    They are those of ``dualscope inspect``: ``open("scan.npy", kind="sinogram", unit="counts",
    scan_air=4e4, scan_geometry="parallel", scan_range=180, scan_pitch_mm=0.5)``.
    """
    with in_keywords():
        refuse_unknown(options, known_names([InputOptions]), "open()")
        said = taken(options, [InputOptions])
        if not isinstance(path, str | Path):
            return open_numbers(path, said)
        text = str(path) if str(path).startswith("demo:") else str(Path(path).absolute())
        return Data(open_input(text, InputOptions.from_dict(said)), text, said)


def simulate(
    data: str | Path | ArrayLike | Data,
    *,
    operator: Any = None,
    noise_sigma: float = 0.0,
    slice: Slices = None,
    prior: AnyPrior = "auto",
    seed: int = 0,
    **options: Any,
) -> Problem:
    """Measure an image: ``simulate(image, views=20)``, ``simulate("demo:mri", acceleration=6)``.

    Parameters
    ----------
    data
        A path, ``'demo:ct'``, what `open` gave, or an array ``[H, W]`` or ``[N, H, W]`` in HU;
        complex, or with ``modality="mr"``, it is an MR image. ``pixel_mm`` says its pixels.
    operator, noise_sigma
        Your own forward model instead of a scan, and the SD of Gaussian noise added to its
        measurement, in the prior's units.
    prior
        Whose units the problem is in.
    options
        How it is measured (views, photons, acceleration ...), and what `open` takes.
    """
    with in_keywords():
        scans = [] if operator is not None else [*SCANS["CT"], *SCANS["MR"]]
        refuse_unknown(options, known_names([InputOptions, *scans]), "simulate()")
        said = taken(options, [InputOptions])
        if isinstance(data, Data):
            if said:
                raise RequestError(f"{next(iter(said))} is for open(): these data are open.")
            image = data
        elif isinstance(data, str | Path):
            image = open(data, **said)
        else:
            image = open_numbers(data, {"kind": "image"} | said)
        if not isinstance(image.dataset, ImageDataset):
            raise RequestError(
                f"{image.path} was measured, there is nothing to simulate: "
                "ds.open(...).problem(...) makes a problem of it."
            )
        if operator is None:
            asked = {name: value for name, value in options.items() if name not in said}
            return image.problem(slice=slice, prior=prior, seed=seed, **asked)
        chosen = find_prior(prior, image.modality)
        numbers = numbers_of(slice, len(image.dataset))
        return _measured_by(operator, image.dataset, numbers, chosen, noise_sigma, seed)


def _measured_by(
    operator: Any,
    image: ImageDataset,
    numbers: tuple[int, ...],
    prior: Prior,
    noise_sigma: float,
    seed: int,
) -> Problem:
    from engine.api.operators import ArrayOperator  # it makes data of this module

    model: Operator = operator.operator if isinstance(operator, ArrayOperator) else operator
    if not (isinstance(noise_sigma, int | float) and noise_sigma >= 0):
        raise RequestError(f"noise_sigma must be a number from 0 on, not {noise_sigma!r}.")
    source = image.load(numbers)
    if tuple(source.images.shape[1:]) != tuple(model.image_shape):
        raise RequestError(
            f"The operator is for images {list(model.image_shape)}, and this one is "
            f"{list(source.images.shape[1:])}."
        )
    intensity = prior.info.intensity
    if image.modality == "MR":
        intensity = IntensityMap("mr", mr_scale(source.images))
    reference = intensity.to_normalised(source.images)
    y, seed = model.forward(reference), checked_seed(seed)
    noise = [make_generator(seed, stream=MEASUREMENT + number) for number in numbers]
    return Problem(
        operator=model,
        measurement=y + noise_sigma * normal_like(y, noise) if noise_sigma else y,
        intensity=intensity,
        modality=image.modality,
        noise_sigma=noise_sigma,
        noise_origin="simulated",
        reference=reference,
        pixel_mm=image.pixel_mm,
        slices=numbers,
        provenance={"simulated": True, "input": image.description},
    )


def load_prior(
    prior: AnyPrior, modality: str = "ct", *, scale: float = 1000.0, offset: float = 0.0
) -> Prior:
    """A prior by name ('auto', 'ct-small', 'tv', a plug-in's), by file, or of any denoiser.

    A torch module or function ``(x, sigma) -> x`` gets batches ``[B, C, H, W]`` and the SD of
    their noise; of CT, HU = scale x + offset. Of MR there are two channels, the real and the
    imaginary part, and 1 is the 0.99 quantile of the magnitude.
    """
    with in_keywords():
        kind = str(modality).upper()
        if kind not in ("CT", "MR"):
            raise RequestError(f"modality must be 'ct' or 'mr', not {modality!r}.")
        if isinstance(prior, str | Path):
            return catalogue.find_prior(catalogue.chosen_name(str(prior), kind), kind)
        return find_prior(prior, kind, IntensityMap("hu", scale, offset) if kind == "CT" else None)


def find_prior(
    prior: AnyPrior,
    modality: str,
    intensity: IntensityMap | None = None,
    supervised: bool | None = None,
) -> Prior:
    """The prior that was asked for, fit for a modality; a bare denoiser in ``intensity``."""
    if isinstance(prior, str | Path):
        return catalogue.load_prior(str(prior), modality, supervised)
    if not isinstance(prior, Prior):
        if not callable(prior) or isinstance(prior, type):
            raise RequestError(
                "prior must be a name, a file, a Prior or a denoiser (x, sigma) -> x, "
                f"not {prior!r}."
            )
        if modality == "MR":
            return CallablePrior(prior, IntensityMap("mr"), 2)
        return CallablePrior(prior, intensity or IntensityMap("hu", 1000.0), 1)
    if prior.info.intensity.kind != catalogue.KINDS[modality]:
        raise RequestError(f"The prior {prior.info.name} is not for {modality} images.")
    return prior


def prior_label(prior: AnyPrior, found: Prior) -> str:
    return str(prior) if isinstance(prior, str | Path) else found.info.name


def open_numbers(array: ArrayLike, said: dict[str, Any]) -> Data:
    """An array as the input it is said to be; real images are in HU unless a unit is given."""
    values = np.asarray(array)
    real_image = values.dtype.kind != "c" and said.get("kind", "image") == "image"
    if real_image and said.get("modality") != "mr" and not _describes_scan(said):
        said = {"unit": "hu"} | said
    return as_data(values, said, lambda o: open_array(values, ARRAY, o, _again(values)))


def _describes_scan(said: dict[str, Any]) -> bool:
    return any(name.startswith("scan_") for name in said) or "axes" in said


def _again(values: NDArray) -> Callable[[InputOptions], Dataset]:
    return lambda options: open_array(values, ARRAY, options, _again(values))


def as_data(
    values: NDArray, said: dict[str, Any], opened: Callable[[InputOptions], Dataset]
) -> Data:
    """A dataset of numbers in memory, with their hash for the record."""
    options = InputOptions.from_dict(said)
    dataset = opened(options)
    dataset.take(options)
    dataset.files = ()
    dataset._sha256 = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
    return Data(settled(dataset, options), str(ARRAY), said)
