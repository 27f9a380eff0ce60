"""The library of runs: a folder for every run, and an index of them that is made of the folders.

The files are what counts. The index (SQLite) makes them quick to list and to search; all that it
says can be read from the files again, and `RunLibrary.agree` brings both into step, whatever a
killed process left. A window that has a run open holds the lock in its folder, so that no other
window deletes it or goes on with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from engine.files.atomic import ROOM_LOCK, abandoned, lock_file, write_bytes_atomic
from engine.files.run_library_entry import (
    COLUMNS,
    REMARKS,
    RUN_ID,
    RUNNING,
    LibraryEntry,
    read_entry,
    remarks_in,
    signature,
)
from engine.spec.errors import DualscopeError, RequestError

INDEX: Final = "library.sqlite"
VERSION: Final = 1  # of the index; another one is thrown away and made again
BUSY_SECONDS: Final = 20.0  # to wait for another window's transaction, which takes milliseconds
GONE: Final = ".gone-"  # a folder that is being deleted
_TABLE: Final = f"CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, {', '.join(COLUMNS)})"


class RunLibrary:
    """All runs below ``root``; safe from several threads and several processes.

    ``problem`` says in a sentence that the index cannot be kept on the disk; it is then kept in
    memory, and the runs are as safe as ever.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.problem = root, ""
        self._guard = threading.RLock()
        self._held: dict[str, BinaryIO] = {}
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or str(error)
            raise DualscopeError(f"Runs cannot be kept in {root}: {reason}.") from error
        self._db = self._open()

    # -- the index --------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        for _ in range(2):
            try:
                return self._connect(str(self.root / INDEX))
            except sqlite3.OperationalError as error:
                self.problem = f"The index of the runs is kept in memory only: {error}."
                break
            except sqlite3.DatabaseError:  # no database any more: it is made again
                self._remove_index()
        return self._connect(":memory:")

    def _connect(self, place: str) -> sqlite3.Connection:
        db = sqlite3.connect(
            place, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")  # a crash of the system costs the index only
            db.execute("BEGIN IMMEDIATE")
            if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                db.execute("DROP TABLE IF EXISTS runs")
            db.execute(_TABLE)
            db.execute(f"PRAGMA user_version = {VERSION}")
            db.execute("COMMIT")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _remove_index(self) -> None:
        for name in (INDEX, f"{INDEX}-wal", f"{INDEX}-shm"):
            (self.root / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One short transaction. It keeps other windows out of folders and locks meanwhile, too."""
        with self._guard:
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                self._without_disk(error)
                self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error as error:  # the disk is full: the next agreement tells all again
                self._without_disk(error)

    def _asked(self, question: str, values: Sequence[str] = ()) -> list[Any]:
        with self._guard:
            try:
                return self._db.execute(question, values).fetchall()
            except sqlite3.DatabaseError as error:
                self._without_disk(error)
                return []

    def _without_disk(self, error: sqlite3.Error) -> None:
        """An index that cannot be used must not cost anybody a run."""
        self.problem = f"The index of the runs is kept in memory only: {error}."
        self._db.close()
        self._db = self._connect(":memory:")

    def close(self) -> None:
        """Let go of every run; one that was going on counts as interrupted from now on."""
        with self._guard:
            for run_id in list(self._held):
                self.let_go(run_id)
            self._db.close()

    # -- the life of a run ------------------------------------------------------------------

    def folder(self, run_id: str) -> Path:
        return self.root / run_id

    def record(self, run_id: str) -> Path:
        return self.root / run_id / f"{run_id}.json"

    def begin(self, run_id: str) -> Path:
        """Make the run's folder and hold it; where its record goes. It is listed from its first
        `refresh` with a record on."""
        if not RUN_ID.fullmatch(run_id):
            raise ValueError(f"{run_id} is no name of a run")
        with self._writing():
            try:
                self.folder(run_id).mkdir(exist_ok=True)
            except OSError as error:
                reason = error.strerror or str(error)
                raise DualscopeError(f"Runs cannot be kept in {self.root}: {reason}.") from error
            if not self._hold(run_id):
                raise RequestError("This run is open in another window: go on with it there.")
        return self.record(run_id)

    def hold(self, run_id: str) -> bool:
        """Keep other windows from deleting the run; False when one of them has it."""
        with self._writing():
            return self.folder(run_id).is_dir() and self._hold(run_id)

    def _hold(self, run_id: str) -> bool:
        if run_id in self._held:
            return True
        try:
            stream = (self.folder(run_id) / ROOM_LOCK).open("a+b")
        except OSError:
            return True  # a disc that cannot be written: nobody can delete it either
        if lock_file(stream):
            self._held[run_id] = stream
            return True
        stream.close()
        return False

    def let_go(self, run_id: str) -> None:
        with self._guard:
            if stream := self._held.pop(run_id, None):
                stream.close()

    def clear(self, run_id: str) -> None:
        """A run that could not begin leaves nothing; one that has a record stays."""
        self.let_go(run_id)
        self._clear_husk(run_id)

    def refresh(self, run_id: str) -> None:
        """Bring the index into step with the files of one run."""
        with self._writing() as db:
            self._refresh(db, run_id)

    def _refresh(self, db: sqlite3.Connection, run_id: str) -> None:
        entry = read_entry(self.record(run_id), running=self._is_held(run_id))
        if entry is None:
            db.execute("DELETE FROM runs WHERE id = ?", (run_id,))
            return
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        values = [getattr(entry, name) for name in COLUMNS]
        db.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", (run_id, *values))

    def _is_held(self, run_id: str) -> bool:
        """By any window, this one included."""
        folder = self.folder(run_id)
        return run_id in self._held or not abandoned(folder)

    def remark(self, run_id: str, **said: Any) -> None:
        """Keep a person's ``note``, or whether the run is ``pinned``, with the run."""
        place = self.folder(run_id) / REMARKS
        with self._writing() as db:
            if not self.record(run_id).exists():
                return
            write_bytes_atomic(place, json.dumps(remarks_in(place) | said).encode())
            self._refresh(db, run_id)

    # -- bringing files and index into step -------------------------------------------------

    def agree(self, progress: Callable[[float], None] = lambda share: None) -> None:
        """Take in what files say, forget what they do not, and clear what killed windows left."""
        if not self._whole():  # damaged within: nothing is lost with it
            with self._guard:
                self._db.close()
                self._remove_index()
                self._db = self._open()
        rows = self._asked("SELECT id, signature, status FROM runs")
        known = {name: (sign, status) for name, sign, status in rows}
        names = sorted(os.listdir(self.root))
        for done, name in enumerate(names):
            progress(done / len(names))
            if name.startswith(GONE):
                shutil.rmtree(self.root / name, ignore_errors=True)
            elif RUN_ID.fullmatch(name) and (self.root / name).is_dir():
                sign, status = known.pop(name, ("", ""))
                if not self.record(name).exists():
                    self._clear_husk(name)
                elif status in ("", RUNNING) or sign != signature(self.record(name)):
                    self.refresh(name)
        for name in known:
            self.refresh(name)

    def _whole(self) -> bool:
        with self._guard:
            try:
                return bool(self._db.execute("PRAGMA quick_check").fetchone()[0] == "ok")
            except sqlite3.DatabaseError:
                return False

    def _clear_husk(self, run_id: str) -> None:
        """The folder of a run that never began; it is removed only if it holds nothing."""
        with self._writing() as db:
            self._refresh(db, run_id)
            folder = self.folder(run_id)
            with contextlib.suppress(OSError):
                idle = run_id not in self._held and abandoned(folder)
                inside = os.listdir(folder)
                if idle and all(name == ROOM_LOCK or name.startswith(".") for name in inside):
                    shutil.rmtree(folder)

    # -- asking -----------------------------------------------------------------------------

    def find(self, words: str = "", status: Collection[str] = ()) -> list[LibraryEntry]:
        """Runs that hold every one of the ``words``, newest first."""
        where, values = ["1"], list[str]()
        for word in words.lower().split():
            where.append("words LIKE ? ESCAPE '\\'")
            values.append("%" + re.sub(r"([%_\\])", r"\\\1", word) + "%")
        if status:
            where.append(f"status IN ({', '.join('?' * len(status))})")
            values += status
        asked = f"SELECT * FROM runs WHERE {' AND '.join(where)} ORDER BY id DESC"
        return [LibraryEntry(*row) for row in self._asked(asked, values)]

    def get(self, run_id: str) -> LibraryEntry | None:
        rows = self._asked("SELECT * FROM runs WHERE id = ?", (run_id,))
        return LibraryEntry(*rows[0]) if rows else None

    def used(self) -> int:
        """Bytes of all runs."""
        rows = self._asked("SELECT TOTAL(bytes) FROM runs")
        return int(rows[0][0]) if rows else 0

    # -- making room ------------------------------------------------------------------------

    def delete(self, run_id: str) -> bool:
        """Free the space of a run; False when it is going on, or open in another window."""
        gone = self.root / f"{GONE}{run_id}"
        with self._writing() as db:
            entry = read_entry(self.record(run_id), running=self._is_held(run_id))
            if entry is not None and entry.status == RUNNING:
                return False
            if self.folder(run_id).is_dir():
                if not self._hold(run_id):
                    return False
                self.let_go(run_id)  # Windows renames no folder with an open file in it
                try:
                    os.replace(self.folder(run_id), gone)
                except OSError as error:
                    reason = error.strerror or str(error)
                    raise DualscopeError(f"The run cannot be deleted: {reason}.") from error
            db.execute("DELETE FROM runs WHERE id = ?", (run_id,))
        shutil.rmtree(gone, ignore_errors=True)
        return True

    def make_room(self, most_bytes: int) -> list[str]:
        """Delete the oldest runs until ``most_bytes`` are enough; which ones.

        Pinned runs and those that a window has open stay.
        """
        deleted, used = list[str](), self.used()
        for entry in reversed(self.find()):
            if used <= most_bytes:
                break
            if entry.pinned or entry.id in self._held:
                continue
            if self.delete(entry.id):
                used -= entry.bytes
                deleted.append(entry.id)
        return deleted
