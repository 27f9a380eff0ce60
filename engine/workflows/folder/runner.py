"""All inputs of a folder in turn, from files to results, once or as long as it is watched."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.data.dataset import Dataset
from engine.data.source import open_input
from engine.export import Result, write_outputs
from engine.export.dicom import OUR_NAMES
from engine.files.atomic import lock_file
from engine.files.checkpoint import Checkpoint
from engine.files.record import shared_record
from engine.runs.prepare import make_run, prepare, resume_run
from engine.runs.run import Run
from engine.solvers.iteration import Iteration
from engine.spec.control import RunControl
from engine.spec.errors import (
    DualscopeError,
    RequestError,
    Sentence,
    as_user_error,
    bug_message,
    marked,
)
from engine.spec.input_options import InputOptions
from engine.workflows.folder.finding import Finder, Found, Settling
from engine.workflows.folder.request import FolderRequest
from engine.workflows.folder.table import DONE, FAILED, LEFT_OUT, RUNNING, STOPPED, Row, Table

RECORD = "RUN.json"
SERIES = "dicom"  # the folder of a result of several slices
Tick = Callable[[Iteration], None]


def reconstruct(
    asked: FolderRequest, found: Found, row: Row, resume: bool, control: RunControl, tick: Tick
) -> None:
    """Fill the row and its folder; an interrupted run goes on where its checkpoint stands."""
    folder = asked.results / row.folder
    dataset, run = _begin(asked, found, folder / RECORD, resume, control)
    folder.mkdir(exist_ok=True)
    for iteration in run:
        tick(iteration)
    row.slices, row.seconds = len(run.problem.slices), run.record.timings.get("total")
    if run.status == "cancelled":
        row.status = STOPPED
        return
    for values in run.record.metrics.values():
        row.psnr, row.ssim = values.get("psnr"), values.get("ssim")
    if run.image is None:
        raise RequestError("The method gave no image.")
    names = output_names(asked.formats, row.slices)
    paths = [folder / name for name in names]
    run.record.outputs = [str(path) for path in paths]
    deidentify = asked.job.deidentify
    result = Result(run.problem, run.image, run.record, dataset, asked.window, deidentify, run.last)
    write_outputs(paths, result, overwrite=True)
    run.record.write(folder / RECORD)
    Checkpoint.path_beside(folder / RECORD).unlink(missing_ok=True)  # the outputs hold the image
    row.outputs, row.status = names, DONE


def _begin(
    asked: FolderRequest, found: Found, record: Path, resume: bool, control: RunControl
) -> tuple[Dataset, Run]:
    if resume and Checkpoint.path_beside(record).exists():
        nameless = asked.job.deidentify  # the record does not name its input then
        path = str(found.path.absolute()) if nameless else None
        with contextlib.suppress(RequestError):  # whatever it lacks, there is another way
            prepared, run = resume_run(record, control, input=path, own=not nameless)
            return prepared.dataset, run
    options = {**asked.job.options, **found.options}
    dataset = open_input(str(found.path), InputOptions.from_dict(options))
    prepared = prepare(asked.job_for(found.path, found.options, dataset), dataset)
    return dataset, make_run(prepared, record, control)


def output_names(formats: tuple[str, ...], slices: int) -> list[str]:
    """One DICOM file holds one slice; several make a folder."""
    return [SERIES if one == "dcm" and slices > 1 else f"result.{one}" for one in formats]


def discard(folder: Path, outputs: list[str]) -> None:
    """Remove what we wrote of an input that is no more; nothing else in the folder."""
    for name in outputs:
        path = folder / name
        with contextlib.suppress(OSError):
            if not path.is_dir():
                path.unlink(missing_ok=True)
                continue
            for member in path.iterdir():
                if OUR_NAMES.fullmatch(member.name):
                    member.unlink()
            path.rmdir()


def told_of(sentence: str, asked: FolderRequest, found: Found) -> str:
    """A sentence for the table, which names files without their folders, or none of them."""
    if asked.job.deidentify:
        paths = [str(found.path.absolute()), *(str(path.absolute()) for path in found.files[:100])]
        body = {"job": {"input": paths[0]}, "input": {}, "outputs": paths[1:], "message": sentence}
        return " ".join(str(shared_record(body, deidentify=True)["message"]).split())
    for place in (asked.folder.absolute(), asked.results.absolute(), asked.folder, asked.results):
        sentence = sentence.replace(f"{place}/", "").replace(f"{place}\\", "")
    return " ".join(sentence.split())


LOCK = ".lock"
POLL_SECONDS, PATIENCE = 1.0, 5  # a slow drive is not looked at all the time
NAP_SECONDS = 0.05
GROWING = "It is still being written: start again when it is complete."
Progress = Callable[[Row, float], None]  # the share of an input that is done


class FolderRunner:
    """One after the other, each as far as it goes.

    ``kept`` is called after every change of the table, when it is on the disk; ``ended`` with
    every row that is through, and not for those that were done before; ``idle`` before it waits.
    """

    def __init__(self, asked: FolderRequest, control: RunControl) -> None:
        asked.check()
        self.asked, self.control = asked, control
        self.kept: Callable[[], None] = lambda: None
        self.ended: Callable[[Row], None] = lambda row: None
        self.idle: Callable[[], None] = lambda: None
        self.progress: Progress = lambda row, share: None
        self.finder = Finder(asked.folder, asked.results, asked.job.options.get("modality"))
        self.settling = Settling(asked.settle_seconds, asked.watch)
        self.settings_sha256 = asked.settings_sha256()
        self.queue: list[tuple[Found, Row]] = []  # what waits, in order
        self._taken: dict[str, object] = {}  # by name: the stamps with which it was taken
        self.rows: list[Row] = []
        self._enlisted: set[int] = set()
        self._started, self._computed = time.monotonic(), 0

    def pace(self, share: float) -> tuple[float, float | None]:
        """How much of all that is known is done, and the seconds left, by the inputs so far."""
        waiting = len(self.queue) + 1 - share
        fraction = 1 - waiting / max(1, len(self.rows))
        done = self._computed + share
        spent = time.monotonic() - self._started
        return max(0.0, fraction), spent / done * waiting if done else None

    def run(self) -> None:
        """Until all is done; a watched folder never is, until the control is cancelled."""
        with locked(self.asked.results):
            self.table = Table(self.asked.results, self.asked.job.deidentify)
            self.rows = self.table.rows
            while not self.control.cancelled:
                started = time.monotonic()
                growing = self._look()
                took = time.monotonic() - started
                self._work()
                if not self.asked.watch and not growing:
                    break
                self.idle()
                self._nap(max(min(POLL_SECONDS, self.asked.settle_seconds / 4), PATIENCE * took))

    def failed(self) -> bool:
        """Of the inputs that are there; rows of others stay in the table."""
        return any(row.status == FAILED for row in self.rows if row.number in self._enlisted)

    def _look(self) -> bool:
        """Queue what is new and complete; whether something may become so."""
        everything = self.finder.look()
        if not everything and not self.asked.watch:
            raise RequestError(f"{self.asked.folder} holds nothing that can be opened.")
        fresh = [one for one in everything if self._taken.get(one.name) != one.stamps()]
        ready, growing = self.settling.look(fresh)
        if not self.asked.watch:
            hopeless = [one for one in growing if self.settling.has_changed(one)]
            growing = [one for one in growing if one not in hopeless]
            for found in hopeless:
                self._leave_out(found, GROWING)
        for found in ready:
            self._enlist(found)
        if ready:
            self._keep()
        return bool(growing)

    def _enlist(self, found: Found) -> None:
        self._taken[found.name] = found.stamps()
        if found.left_out:
            self._leave_out(found, found.left_out)
            return
        row = self._row(found)
        if row.status == RUNNING:  # when the program was killed
            row.status = STOPPED
        self._enlisted.add(row.number)
        self.queue.append((found, row))

    def _row(self, found: Found) -> Row:
        """Content is only read here when there is nothing else to know an input by."""
        sha256 = ""
        if self.asked.job.deidentify:
            with contextlib.suppress(DualscopeError):  # it is told when it is its turn
                sha256 = found.sha256()
        row = self.table.row_for(found.name, found.folder_name, sha256)
        row.input_sha256 = sha256 or row.input_sha256
        return row

    def _leave_out(self, found: Found, why: str) -> None:
        self._taken[found.name] = found.stamps()
        if not self.asked.job.deidentify:  # there it would be a number without an input
            row = self.table.row_for(found.name, found.folder_name, "")
            row.status, row.error = LEFT_OUT, why
            self._keep()
            self.ended(row)

    def _work(self) -> None:
        while self.queue and not self.control.cancelled:
            found, row = self.queue.pop(0)
            self._take(found, row)

    def _take(self, found: Found, row: Row) -> None:
        """A broken input is a row with its sentence, and the next one follows."""
        try:
            sha256 = found.sha256()
        except DualscopeError as error:  # for now: the next start looks again
            row.begin("", "")
            self._fail(found, row, error)
            return
        try:
            same = (row.input_sha256, row.settings_sha256) == (sha256, self.settings_sha256)
            if same and self._is_settled(row):
                return
            if not same:
                discard(self.asked.results / row.folder, row.outputs)
            if not self._computed:
                self._started = time.monotonic()
            row.begin(sha256, self.settings_sha256)
            self._keep()
            reconstruct(self.asked, found, row, same, self.control, self._tick(row))
        except Exception as error:  # a fault of ours must not end the others' work
            self._fail(found, row, error)
            return
        self._end(row)

    def _fail(self, found: Found, row: Row, error: Exception) -> None:
        known = as_user_error(error)
        words = marked(known) if isinstance(known, DualscopeError) else bug_message(error)
        row.status, row.error = FAILED, Sentence(told_of(words, self.asked, found))
        self._end(row)

    def _end(self, row: Row) -> None:
        self._computed += 1
        self._keep()
        self.ended(row)

    def _is_settled(self, row: Row) -> bool:
        """Whether nothing is left to do: results that somebody removed are made again."""
        if row.status == FAILED:
            return not self.asked.retry_failed
        folder = self.asked.results / row.folder
        return row.status == DONE and all((folder / name).exists() for name in row.outputs)

    def _tick(self, row: Row) -> Callable[[Iteration], None]:
        return lambda iteration: self.progress(row, iteration.k / max(1, iteration.K))

    def _keep(self) -> None:
        self.table.write()
        self.kept()

    def _nap(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.control.cancelled and time.monotonic() < until:
            time.sleep(NAP_SECONDS)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One batch at a time writes a folder of results."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / LOCK).open("a+b")
    except OSError as error:
        raise RequestError(f"Cannot write into {folder}: {error.strerror}.") from error
    with stream:
        if not lock_file(stream):
            raise RequestError(f"{folder} is being filled by another batch: wait, or end that one.")
        yield
