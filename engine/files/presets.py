"""Named acquisitions and settings: the paper's, budgets, and those a person has saved.

The window and the command line take the same ones. What a value of them means is checked where it
is used: a file may have been written by anybody.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.files.atomic import write_bytes_atomic
from engine.files.budget import read_json
from engine.files.folders import config_folder
from engine.spec.errors import DualscopeError, RequestError

LARGEST = 1 << 20  # bytes of a preset file worth reading
LONGEST_NAME = 60
FORMAT = "dualscope-preset-1"


@dataclass(frozen=True)
class Preset:
    """Values to put into the forms; what is not named goes to its default.

    ``engine_preset`` names one of the engine's, whose values depend on the open data and on the
    method. One that ``adds`` leaves what it does not name as it is.
    """

    name: str
    modality: str = "CT"
    solver: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    acquisition: dict[str, Any] = field(default_factory=dict)
    engine_preset: str | None = None
    adds: bool = False
    words: str = ""
    path: Path | None = None  # where it was read from

    @property
    def built_in(self) -> bool:
        return self.engine_preset is not None


BUILT_IN = (
    Preset(
        "SVCT-20 (paper)",
        acquisition={"views": 20, "angular_range": 180.0},
        engine_preset="paper-svct",
        words="Sparse views: 20 over 180°, 20 CG iterations.",
    ),
    Preset(
        "LACT-90 (paper)",
        acquisition={"views": 90, "angular_range": 90.0},
        engine_preset="paper-lact",
        words="Limited angle: 90 views over 90°, 100 CG iterations, rho = W / sigma².",
    ),
    Preset(
        "Published code",
        acquisition={"views": 20, "angular_range": 180.0},
        engine_preset="paper-code",
        words="The published code's choices: no rho, zero-padded spectra, clipped start.",
    ),
    Preset(
        "MRI 6x (paper)",
        "MR",
        acquisition={"acceleration": 6.0},
        engine_preset="paper-mri",
        words="Single coil, acceleration 6.",
    ),
    Preset(
        "MRI 10x (paper)",
        "MR",
        acquisition={"acceleration": 10.0},
        engine_preset="paper-mri",
        words="Single coil, acceleration 10.",
    ),
    *(
        Preset(name, modality, engine_preset=budget, adds=True, words=words)
        for modality in ("CT", "MR")
        for name, budget, words in (
            (
                "Recommended budget",
                "recommended",
                "As many denoiser calls as the authors of the chosen method recommend.",
            ),
            (
                "Matched budget, 50 NFE",
                "matched-50",
                "50 denoiser calls, divided as fits the chosen method: the fairer comparison.",
            ),
        )
    ),
)


class PresetStore:
    """The presets of a person, one JSON file each."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or config_folder() / "presets"
        self.problems: list[str] = []  # sentences about files that could not be read

    def presets(self, modality: str) -> list[Preset]:
        """Built-in ones first, then the saved ones by name; broken files are skipped."""
        self.problems = []
        saved: list[Preset] = []
        try:
            paths = sorted(self.folder.glob("*.json"))
        except OSError as error:
            paths = []
            self.problems.append(f"Cannot read {self.folder}: {error.strerror}.")
        for path in paths:
            try:
                saved.append(read_preset(path))
            except RequestError as error:
                self.problems.append(f"{error} It is skipped.")
        saved.sort(key=lambda preset: preset.name.casefold())
        return [p for p in (*BUILT_IN, *saved) if p.modality == modality]

    def save(self, preset: Preset) -> None:
        """Write, or replace the preset of that name."""
        name = checked_name(preset.name)
        values = {"format": FORMAT, **asdict(preset), "name": name}
        del values["engine_preset"], values["adds"], values["path"]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DualscopeError(f"Cannot make {self.folder}: {error.strerror}.") from error
        text = json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)
        write_bytes_atomic(self._path(name, preset.modality), text.encode())

    def delete(self, preset: Preset) -> None:
        if preset.built_in:
            raise RequestError(f"“{preset.name}” comes with the program and stays.")
        try:
            path = preset.path or self._path(preset.name, preset.modality)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise DualscopeError(f"Cannot delete “{preset.name}”: {error.strerror}.") from error

    def _path(self, name: str, modality: str) -> Path:
        # The hash keeps names apart that file systems would take for one.
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "preset"
        digest = hashlib.sha256(f"{modality}/{name}".encode()).hexdigest()[:8]
        return self.folder / f"{slug}-{digest}.json"


def checked_name(name: str) -> str:
    """A usable name without spaces around it; raises RequestError."""
    name = name.strip()
    if not name:
        raise RequestError("A preset needs a name.")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise RequestError(f"A preset's name is one line of at most {LONGEST_NAME} characters.")
    if any(name == preset.name for preset in BUILT_IN):
        raise RequestError(f"“{name}” comes with the program: choose another name.")
    return name


def read_preset(path: Path) -> Preset:
    """A saved preset, or a sentence about why not."""
    values = read_json(path, LARGEST, "a preset")
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise RequestError(f"{path.name} is not a preset of this program.")
    solver = values.get("solver")
    groups = [values.get("settings"), values.get("acquisition")]
    if (
        not isinstance(values.get("name"), str)
        or values.get("modality") not in ("CT", "MR")
        or not (solver is None or isinstance(solver, str))
        or not all(isinstance(group, dict) for group in groups)
        or not all(_plain(value) for group in groups for value in (group or {}).values())
    ):
        raise RequestError(f"{path.name} holds a value of a wrong kind.")
    return Preset(
        checked_name(values["name"]),
        values["modality"],
        solver,
        groups[0] or {},
        groups[1] or {},
        path=path,
    )


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
