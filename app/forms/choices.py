"""What the engine offers: methods, priors and devices.

Asking it loads the whole engine, which takes seconds: do it after the window is on the screen,
in a worker thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from app.forms.labels import learn
from app.theme import RUN_STYLES, RunStyle
from engine.files.folders import RESOURCES
from engine.files.path_safety import reading
from engine.spec.errors import RequestError
from engine.spec.settings import Settings


@dataclass(frozen=True)
class Method:
    """A solver as a form needs it."""

    name: str
    label: str
    settings_class: type[Settings]
    needs_prior: bool
    modalities: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Choices:
    methods: tuple[Method, ...]
    priors: dict[str, tuple[str, ...]]  # by modality, best first
    devices: tuple[str, ...]

    def for_modality(self, modality: str) -> list[Method]:
        return [method for method in self.methods if modality in method.modalities]


def load_methods() -> tuple[Method, ...]:
    """What the solvers declare; from then on forms and plots know their labels and colours."""
    from engine.solvers.catalogue import all_solvers

    for solver in all_solvers().values():
        learn(solver.settings_class)
        if solver.colour:
            RUN_STYLES[solver.name] = RunStyle(solver.colour, solver.dash)
    return tuple(
        Method(s.name, s.label, s.settings_class, s.needs_prior, s.modalities, s.help)
        for s in all_solvers().values()
    )


def load_choices() -> Choices:
    """Everything the solver panel offers; slow the first time."""
    from engine.physics.device import available_devices
    from engine.priors.catalogue import list_priors

    return Choices(
        load_methods(),
        {modality: tuple(list_priors(modality)) for modality in ("CT", "MR")},
        ("auto", *available_devices()),
    )


def preset_values(
    name: str, modality: str, views: int, pixel_mm: float | None, solver: str = ""
) -> dict[str, Any]:
    """The values of one of the engine's presets for a scan of this kind and a method."""
    from engine.solvers.presets import apply_preset

    # The engine asks a problem for these things only.
    scan: Any = SimpleNamespace(
        modality=modality,
        operator=SimpleNamespace(measurement_shape=(1, views, 1), is_scan=True),
        pixel_mm=None if pixel_mm is None else (pixel_mm, pixel_mm),
    )
    return apply_preset(name, scan, solver)


def prior_card(name: str, modality: str) -> tuple[str, Path]:
    """The model card of a prior as Markdown, and the folder its pictures are in."""
    folder = RESOURCES / "priors"
    path = folder / f"{name}.md" if Path(name).name == name else Path(name).with_suffix(".md")
    if path.is_file():
        with reading(path):
            return path.read_text(encoding="utf-8", errors="replace"), path.parent
    from engine.priors.catalogue import ANALYTIC, find_prior
    from engine.spec import plugins

    if name not in ANALYTIC and name not in plugins.registered("priors"):
        raise RequestError(f"There is no card ({path.name}) beside this prior.")
    info = find_prior(name, modality).info
    rows = {
        "Training data": info.training_data,
        "Licence": info.licence,
        "SHA-256": info.sha256,
        **{key.replace("_", " ").capitalize(): value for key, value in info.details.items()},
    }
    table = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
    return f"# {name}\n\n{info.description}\n\n| | |\n|---|---|\n{table}\n", folder
