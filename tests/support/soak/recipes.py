"""Reconstructions to choose from, and what each of them gives when nothing disturbs it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from engine.physics.phantoms import brain_mr, ct_phantom
from engine.spec.errors import DualscopeError

SIDES: Final = (32, 48, 64)
SCAN: Final = {
    "ct": ("--unit", "hu", "--pixel-mm", "6", "--views", "12"),
    "mr": ("--kind", "image", "--modality", "mr", "--acceleration", "4"),
}
ITERATIVE: Final = ("dc-pnpdp", "diffpir", "ddnm", "dds")
CLASSICAL: Final = {"ct": ("fbp", "sirt", "cg", "tv"), "mr": ("zero-filled", "cg")}
PRIORS: Final = ("tv", "gaussian")
SERIES: Final = 3  # slices of the DICOM folder
SELDOM: Final = 0.1


@dataclass(frozen=True)
class Recipe:
    """The words of a ``dualscope reconstruct`` without its outputs."""

    words: tuple[str, ...]


def make_inputs(folder: Path) -> None:
    """Small images of both kinds, and a DICOM series, each written once."""
    folder.mkdir(parents=True)
    for kind, image in (("ct", ct_phantom(1, 64).image), ("mr", brain_mr(1, 64).image)):
        for side in SIDES:
            edge = (64 - side) // 2
            np.save(folder / f"{kind}-{side}.npy", image[edge : 64 - edge, edge : 64 - edge])
    one = np.load(folder / "ct-64.npy")
    np.save(folder / "slices.npy", np.stack([one + 10 * number for number in range(SERIES)]))
    words = ["reconstruct", folder / "slices.npy", *SCAN["ct"], "--solver", "fbp", "--quiet"]
    code, complaint = command(*words, "-o", folder / "series")
    if code:
        raise DualscopeError(f"The soak could not make its data: {complaint}")


def some_recipe(random: Random, inputs: Path) -> Recipe:
    """A short one: any method, any kind of data."""
    kind, side = random.choice(("ct", "mr")), random.choice(SIDES)
    trained = kind == "ct" and side == 64 and random.random() < SELDOM
    method = random.choice((*ITERATIVE, *CLASSICAL[kind]))
    words = [str(inputs / f"{kind}-{side}.npy"), *SCAN[kind], "--solver", method]
    if method in ITERATIVE:
        words += ["--nfe", str(random.choice((4, 8)))]
        words += ["--prior", "ct-small" if trained else random.choice(PRIORS)]
    return _finished(words, random)


def long_recipe(random: Random, inputs: Path) -> Recipe:
    """One that takes seconds, to be struck on its way."""
    kind = random.choice(("ct", "mr"))
    words = [str(inputs / f"{kind}-64.npy"), *SCAN[kind], "--solver", random.choice(ITERATIVE[:2])]
    words += ["--nfe", "60", "--prior", "gaussian", "--cg-iterations", "3"]
    words += ["--checkpoint-seconds", "0.05"]
    return _finished(words, random)


def _finished(words: list[str], random: Random) -> Recipe:
    return Recipe((*words, "--seed", str(random.choice((0, 1))), "--device", "cpu", "--quiet"))


class Expected:
    """The results of undisturbed runs, each computed once."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "expected"
        self._known: dict[Recipe, str] = {}

    def of(self, recipe: Recipe) -> str:
        if recipe not in self._known:
            self.folder.mkdir(parents=True)
            path = self.folder / "result.npy"
            code, words = command("reconstruct", *recipe.words, "-o", path)
            if code:
                raise DualscopeError(f"An undisturbed run failed: {words}")
            self._known[recipe] = digest(path)
            shutil.rmtree(self.folder)
        return self._known[recipe]

    def fault_of(self, recipe: Recipe, path: Path) -> str:
        """Why the result at ``path`` is lost; empty when it has the undisturbed one's bits."""
        expected = self.of(recipe)
        if not path.is_file():
            return f"there is no result of {' '.join(recipe.words)}"
        same = digest(path) == expected
        return "" if same else f"other bits than undisturbed: {' '.join(recipe.words)}"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def command(*words: object) -> tuple[int, str]:
    """A command in this process: its exit code, and what it complained of."""
    from engine.cli import CANCELLED, main

    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in words])
    if code == CANCELLED:  # nobody but the person at the keyboard interrupts this process
        raise KeyboardInterrupt
    return code, complaints(errors.getvalue())


def complaints(text: str) -> str:
    """Without notes and warnings; a traceback is not hidden."""
    if "Traceback" in text:
        return text
    mild = ("dualscope: note:", "dualscope: warning:")
    lines = [line for line in text.splitlines() if line and not line.startswith(mild)]
    return "\n".join(lines)
