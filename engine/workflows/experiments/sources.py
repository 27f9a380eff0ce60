"""The slices an experiment is made on, by modality."""

from __future__ import annotations

from dataclasses import dataclass

from engine.data.dataset import Dataset
from engine.data.source import open_input, parse_slices
from engine.spec.input_options import InputOptions
from engine.workflows.experiments.request import Request

# Other phantoms than the demonstration's and those of the bundled priors' training.
FIRST_PHANTOM = 101
DEMOS = {"CT": "demo:ct", "MR": "demo:mri"}


@dataclass(frozen=True)
class Source:
    """One slice of an input."""

    input: str
    number: int


class Sources:
    """Opens each input once; phantoms are made for the modalities that are asked for."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.datasets: dict[str, Dataset] = {}
        self._given = [(name, self.dataset(name)) for name in request.inputs]

    def dataset(self, name: str) -> Dataset:
        if name not in self.datasets:
            self.datasets[name] = open_input(name, InputOptions.from_dict(self.request.options))
        return self.datasets[name]

    def modality(self, wanted: str | None) -> str:
        """The modality of a scan that takes any: that of the first input, or CT."""
        if wanted is not None:
            return wanted
        return self._given[0][1].modality if self._given else "CT"

    def chosen(self, modality: str) -> list[Source]:
        """``slice_count`` slices, spread evenly over what was given; none if nothing fits."""
        count = self.request.slice_count
        if not self._given:
            seeds = range(FIRST_PHANTOM, FIRST_PHANTOM + count)
            return [Source(f"{DEMOS[modality]}:{seed}", 0) for seed in seeds]
        offered = [
            Source(name, number)
            for name, dataset in self._given
            if dataset.modality == modality
            for number in parse_slices(self.request.slices, len(dataset))
        ]
        if count >= len(offered):
            return offered
        return [offered[(2 * i + 1) * len(offered) // (2 * count)] for i in range(count)]
