"""The engine's part: reconstructions, most of them disturbed, each compared bit for bit."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from engine.cli import build_parser
from engine.cli.options import job_from
from engine.files.checkpoint import Checkpoint
from engine.files.folders import RESOURCES
from engine.runs.prepare import make_run, prepare
from engine.spec.control import RunControl
from soak import faults
from soak.loop import Task
from soak.recipes import Expected, Recipe, command, complaints, long_recipe, some_recipe
from soak.tally import Mark
from soak.temp_dirs import room

FORMATS: Final = (".nii.gz", ".h5", ".png", ".dcm", ".tif")
LONGEST_DELAY_S: Final = 1.0
PATIENCE_S: Final = 120.0


class EngineWork:
    """Every public method but ``tasks`` is one task."""

    def __init__(self, home: Path, inputs: Path, random: Random) -> None:
        self.home, self.inputs, self.random = home, inputs, random
        self.expected = Expected(home)

    def tasks(self, window: bool) -> list[Task]:
        made = [
            Task("reconstruct", 6, self.reconstruct),
            Task("verify a record", 1, self.verify),
            Task("cancel, resume", 3, self.cancel),
            Task("signal to a child, resume", 3, self.strike),
            Task("broken input", 4, self.broken_input),
            Task("broken record or checkpoint", 2, self.broken_record),
            Task("broken prior", 1, self.broken_prior),
            Task("output folder taken away", 2, self.folder_taken),
            Task("data changed or gone", 2, self.data_changed),
        ]
        if sys.platform.startswith("linux"):
            made.append(Task("disk full", 1, self.disk_full))
        if window:
            made.append(Task("window closed or killed in a run", 1, self.window_ended))
        return made

    # -- undisturbed --------------------------------------------------------------------------

    def reconstruct(self, mark: Mark) -> None:
        recipe = some_recipe(self.random, self.inputs)
        with room(self.home, mark) as folder:
            other = folder / f"also{self.random.choice(FORMATS)}"
            code, words = command("reconstruct", *recipe.words, "-o", folder / "a.npy", other)
            self._check(mark, recipe, folder / "a.npy", code, words)
            code, words = command("inspect", other, "--unit", "hu")
            if code:
                mark.lost(f"{other.name} cannot be read again: {words}")

    def verify(self, mark: Mark) -> None:
        recipe = some_recipe(self.random, self.inputs)
        with room(self.home, mark) as folder:
            record = folder / "run.json"
            code, words = command("reconstruct", *recipe.words, "--record", record)
            code, words = (code, words) if code else command("verify", record, "--quiet")
            if code:
                mark.lost(f"the record does not give the same bits: {words}")

    # -- interrupted --------------------------------------------------------------------------

    def cancel(self, mark: Mark) -> None:
        """The button, at a random moment."""
        recipe = long_recipe(self.random, self.inputs)
        with room(self.home, mark) as folder:
            record = self._cancelled(mark, recipe, folder)
            self._resume(mark, recipe, record)

    def strike(self, mark: Mark) -> None:
        """A signal to a process at a random moment of its run."""
        recipe, number = long_recipe(self.random, self.inputs), self.random.choice(faults.SIGNALS)
        with room(self.home, mark) as folder:
            process = self._start(recipe, folder)
            try:
                if not faults.wait_for(folder / "run.json", process):
                    mark.unexpected(f"the run did not begin: {process.communicate()[1]}")
                    return
                time.sleep(self.random.uniform(0, LONGEST_DELAY_S))
                process.send_signal(number)
                mark.fault()
                errors = process.communicate(timeout=PATIENCE_S)[1]
            finally:
                faults.end(process)
            # struck in its very last moment, when all was written, Python dies as it stands
            over = not self.expected.fault_of(recipe, folder / "a.npy")
            calm = (0, 130) if number != signal.SIGKILL and not over else (0, 130, -number)
            self._ended(mark, process, number, calm, errors)
            self._resume(mark, recipe, folder / "run.json")

    def disk_full(self, mark: Mark) -> None:
        recipe = long_recipe(self.random, self.inputs)
        with room(self.home, mark) as folder:
            process = self._start(recipe, folder)
            try:
                if not faults.wait_for(folder / "run.json", process):
                    mark.unexpected(f"the run did not begin: {process.communicate()[1]}")
                    return
                faults.limit_files(process, self.random.choice((0, 512, 4096)))
                mark.fault()
                errors = process.communicate(timeout=PATIENCE_S)[1]
            finally:
                faults.end(process)
            if process.returncode:  # else it was through already
                mark.said(complaints(errors), "too large", "No space")
            self._resume(mark, recipe, folder / "run.json")

    def window_ended(self, mark: Mark) -> None:
        """A workstation with a run in it: closed as a person does, or killed."""
        data = self.inputs / "ct-64.npy"
        with room(self.home, mark) as folder:
            process = faults.start(data, folder, module="soak.window.brief")
            try:
                if not faults.wait_for(folder / "running", process):
                    mark.unexpected(f"no window with a run: {process.communicate()[1]}")
                    return
                number = self.random.choice(faults.SIGNALS)
                process.send_signal(number)
                mark.fault()
                errors = process.communicate(timeout=PATIENCE_S)[1]
            finally:
                faults.end(process)
            calm = (0,) if number != signal.SIGKILL else (-number,)
            self._ended(mark, process, number, calm, errors)
            record = Path((folder / "running").read_text("utf-8"))
            recipe = Recipe(tuple((folder / "recipe").read_text("utf-8").splitlines()))
            self._resume(mark, recipe, record)

    # -- broken files -------------------------------------------------------------------------

    def broken_input(self, mark: Mark) -> None:
        recipe = some_recipe(self.random, self.inputs)
        with room(self.home, mark) as folder:
            kinds = [folder / f"broken{suffix}" for suffix in (".npy", *FORMATS)]
            path = self.random.choice(kinds)
            code, words = command("reconstruct", *recipe.words, "-o", path)
            if code:
                mark.unexpected(words)
                return
            faults.damage(path, self.random)
            mark.fault()
            out = folder / "out.npy"
            asked = ("reconstruct", path, *recipe.words[1:], "--overwrite", "-o", out)
            self._refused(mark, command(*asked), path.name)
            if out.exists():
                mark.unexpected("a result of a broken file")

    def broken_record(self, mark: Mark) -> None:
        recipe = long_recipe(self.random, self.inputs)
        with room(self.home, mark) as folder:
            record = self._cancelled(mark, recipe, folder)
            checkpoint = Checkpoint.path_beside(record)
            both = [path for path in (record, checkpoint) if path.exists()]
            path = self.random.choice(both)
            whole = path.read_bytes()
            faults.damage(path, self.random)
            mark.fault()
            asked = ("reconstruct", "--resume", record, "-o", folder / "a.npy", "--quiet")
            self._refused(mark, command(*asked), path.name)
            path.write_bytes(whole)
            self._resume(mark, recipe, record)

    def broken_prior(self, mark: Mark) -> None:
        data = self.inputs / "ct-64.npy"
        with room(self.home, mark) as folder:
            prior = folder / "prior.safetensors"
            shutil.copy(next((RESOURCES / "priors").glob("ct-small*.safetensors")), prior)
            faults.damage(prior, self.random)
            mark.fault()
            words = ("--unit", "hu", "--prior", prior, "--quiet", "-o", folder / "a.npy")
            self._refused(mark, command("reconstruct", data, *words), prior.name)

    # -- folders and data that go ---------------------------------------------------------------

    def folder_taken(self, mark: Mark) -> None:
        """While the run goes on; what it computed is there all the same."""
        recipe = long_recipe(self.random, self.inputs)
        with room(self.home, mark) as folder:
            out, record = folder / "out", folder / "run.json"
            out.mkdir()
            process = self._start(recipe, folder, out / "a.npy")
            try:
                if not faults.wait_for(record, process):
                    mark.unexpected(f"the run did not begin: {process.communicate()[1]}")
                    return
                faults.take_folder(out, self.random)
                mark.fault()
                errors = process.communicate(timeout=PATIENCE_S)[1]
            finally:
                faults.end(process)
            if out.exists():
                out.chmod(0o700)
            if process.returncode:
                mark.said(complaints(errors), "The result is kept")
            self._resume(mark, recipe, record)

    def data_changed(self, mark: Mark) -> None:
        """Between the interruption of a run and its continuation."""
        recipe = long_recipe(self.random, self.inputs)
        with room(self.home, mark) as folder:
            data = folder / Path(recipe.words[0]).name
            shutil.copy(recipe.words[0], data)
            record = self._cancelled(mark, recipe, folder, data)
            content = data.read_bytes()
            if self.random.random() < 0.5:
                data.unlink()
            else:
                np.save(data, np.load(data)[::-1])
            mark.fault()
            asked = ("reconstruct", "--resume", record, "-o", folder / "a.npy", "--quiet")
            self._refused(mark, command(*asked), data.name)
            data.write_bytes(content)
            self._resume(mark, recipe, record)

    # -- pieces -------------------------------------------------------------------------------

    def _start(
        self, recipe: Recipe, folder: Path, out: Path | None = None
    ) -> subprocess.Popen[str]:
        outputs = ("-o", out or folder / "a.npy", "--record", folder / "run.json")
        return faults.start("reconstruct", *recipe.words, *outputs)

    def _cancelled(
        self, mark: Mark, recipe: Recipe, folder: Path, data: Path | None = None
    ) -> Path:
        """A run in this process, ended by its button; its record."""
        words = [str(data or recipe.words[0]), *recipe.words[1:]]
        options = build_parser(["reconstruct"]).parse_args(["reconstruct", *words])
        control, record = RunControl(), folder / "run.json"
        run = make_run(prepare(job_from(options, options.solver)), record, control, 0.05)
        timer = threading.Timer(self.random.uniform(0, LONGEST_DELAY_S), control.cancel)
        timer.start()
        for _ in run:
            pass
        timer.cancel()
        timer.join()
        mark.fault()
        if run.status not in ("cancelled", "done"):
            mark.unexpected(f"the run ended as '{run.status}'")
        return record

    def _resume(self, mark: Mark, recipe: Recipe, record: Path) -> None:
        out = record.parent / "resumed.npy"
        code, words = command("reconstruct", "--resume", record, "-o", out, "--quiet")
        self._check(mark, recipe, out, code, words)

    def _check(self, mark: Mark, recipe: Recipe, path: Path, code: int, words: str) -> None:
        if code:
            mark.lost(f"exit code {code}. {words}")
        elif fault := self.expected.fault_of(recipe, path):
            mark.lost(fault)

    @staticmethod
    def _ended(
        mark: Mark,
        process: subprocess.Popen[str],
        number: signal.Signals,
        calm: tuple[int, ...],
        errors: str,
    ) -> None:
        """After a signal; ``calm`` are the exit codes that are right."""
        if process.returncode not in calm or "Traceback" in errors:
            mark.unexpected(f"{number.name}: exit code {process.returncode}. {errors}")

    @staticmethod
    def _refused(mark: Mark, answer: tuple[int, str], name: str) -> None:
        """Something broken is refused, in a sentence that names it."""
        code, words = answer
        if code == 0:
            mark.unexpected(f"{name} was taken, though it was broken")
        mark.said(words, name)


def engine_tasks(home: Path, inputs: Path, random: Random, window: bool) -> list[Task]:
    return EngineWork(home, inputs, random).tasks(window)
