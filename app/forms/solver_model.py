"""What is asked of the solver, free of widgets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.forms.choices import Choices, Method, preset_values
from app.forms.history import UndoValues
from app.forms.labels import find_faults, rules_of
from engine.files.presets import Preset
from engine.spec.settings import Settings, setting

BOTH = ("dc-pnpdp", "diffpir")


@dataclass(frozen=True)
class RunSettings(Settings):
    """What a run needs beside its method's settings."""

    seed: int = setting(
        0,
        "Random seed: another one draws other noise, the same one repeats the run.",
        low=0,
        high=2**31 - 1,
    )


class SolverModel(QObject):
    """Method, settings of every method, prior, device and seed, all in one history.

    Fields that two methods share have one value, so that changing the method keeps them.

    Parameters
    ----------
    acquisition : gives the acquisition's values, which a saved preset keeps too
    """

    acquisition_wanted = Signal(dict)

    def __init__(
        self,
        history: UndoValues | None = None,
        acquisition: Callable[[], dict[str, Any]] = dict,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.history = history if history is not None else UndoValues({}, self)
        self.history.add({"method": "dc-pnpdp", "prior": "auto", "device": "auto", "seed": 0})
        self.acquisition = acquisition
        self.choices: Choices | None = None
        self.modality = "CT"
        self.views = 20
        self.pixel_mm: float | None = None

    def take(self, choices: Choices) -> None:
        self.choices = choices
        for method in choices.methods:
            self.history.add({f.name: f.default for f in dataclasses.fields(method.settings_class)})

    def methods(self) -> list[Method]:
        return self.choices.for_modality(self.modality) if self.choices else []

    def method(self, name: str | None = None) -> Method | None:
        wanted = name or self.history["method"]
        methods = self.choices.methods if self.choices else ()
        return next((one for one in methods if one.name == wanted), None)

    def set_modality(self, modality: str) -> None:
        """Keep what still fits; the method or the prior may have to change."""
        self.modality = modality
        if self.choices is None:
            return
        names = [method.name for method in self.methods()]
        if self.history["method"] not in names:
            self.history.set("method", names[0])
        if self.history["prior"] not in ("auto", *self.choices.priors[modality]):
            self.history.set("prior", "auto")

    def setting_names(self) -> set[str]:
        methods = self.choices.methods if self.choices else ()
        return {f.name for one in methods for f in dataclasses.fields(one.settings_class)}

    def settings_of(self, name: str) -> dict[str, Any]:
        """The asked-for settings of a method, without those that a rule switches off."""
        method = self.method(name)
        if method is None:
            return {}
        values = {f.name: self.history[f.name] for f in dataclasses.fields(method.settings_class)}
        changed = {n for n in values if self.history.differs(n)}
        off = {n for n, rule in rules_of(method.settings_class).items() if rule(values, changed)}
        return {n: value for n, value in values.items() if n in changed - off}

    def value(self, solver: str | None = None) -> dict[str, Any]:
        """Everything of a Job but the input and its acquisition."""
        name = solver or self.history["method"]
        return {
            "solver": name,
            "settings": self.settings_of(name),
            "preset": None,
            "prior": self.history["prior"],
            "seed": self.history["seed"],
            "device": self.history["device"],
        }

    def complete(self, job: dict[str, Any]) -> dict[str, Any]:
        """``job`` with every setting of its method, also those at their default."""
        method = self.method(job["solver"])
        if method is None:
            return job
        own = {f.name: f.default for f in dataclasses.fields(method.settings_class)}
        return {**job, "settings": own | job["settings"]}

    def values_for_both(self) -> list[dict[str, Any]]:
        return [self.value(name) for name in BOTH]

    def fault_of(self, name: str) -> str:
        """What is wrong with the settings of a method, shown or not."""
        method = self.method(name)
        if method is None:
            return ""
        faults = find_faults(method.settings_class, self.settings_of(name))
        return next((f"{method.label}: {sentence}" for sentence in faults.values()), "")

    def current_preset(self) -> Preset:
        name = self.history["method"]
        return Preset("", self.modality, name, self.settings_of(name), self.acquisition())

    def apply_preset(self, preset: Preset) -> str:
        """Put a preset's values in as one step; a sentence about what it could not use."""
        known = self.setting_names()
        values = dict(preset.settings)
        if preset.engine_preset:
            views = preset.acquisition.get("views", self.views)
            values = preset_values(
                preset.engine_preset, self.modality, views, self.pixel_mm, self.history["method"]
            )
            if not values:
                return f"“{preset.name}” is for methods that call a denoiser."
        unused = [name for name in values if name not in known]
        step = {} if preset.adds else {name: self.history.default(name) for name in known}
        step |= {name: value for name, value in values.items() if name in known}
        if preset.solver in [method.name for method in self.methods()]:
            step["method"] = preset.solver
        elif preset.solver is not None:
            unused.append(preset.solver)
        with self.history.as_one():
            self.history.set_many(step)
            if not preset.adds:
                self.acquisition_wanted.emit(dict(preset.acquisition))
        if not unused or preset.engine_preset:
            return ""
        return f"“{preset.name}” also holds {', '.join(unused)}, not known here."
