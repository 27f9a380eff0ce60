"""What the program remembers of a person's choices between two starts."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QByteArray, QObject, QTimer, Signal, Slot

from app.tasks import Tasks, details_of, sentence_of
from app.theme import Theme
from engine.files.atomic import write_bytes_atomic
from engine.files.folders import config_folder
from engine.spec.errors import DualscopeError
from engine.spec.marks import CORNERS

# Every known setting with its default, whose type is the setting's type.
DEFAULTS: Final[Mapping[str, Any]] = {
    "theme": "system",
    "geometry": "",  # of the main window, base64
    "splitters": {},  # name -> state, base64
    "folded": [],  # names of sections that are folded away
    "layout": "research",
    "layouts": {},  # layout -> rails that are folded in it, with blanks between them
    "rails": {},  # rail -> its width in pixels when it is open
    "images": "large",  # how many in Reading
    "patient_masked": True,
    "folders": {},  # purpose -> folder last used for it
    "library_mib": 4096,  # of all kept runs together
    "tour_seen": False,
    "device": "auto",
    "volume_window": {},  # modality -> centre and width
    "mark_corner": CORNERS[0],  # of saved pictures
    "expert": True,  # all settings on the left, or a few in plain words
    "paces": {},  # seconds per pixel and call, by method: see app.pace_book
}
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "theme": Theme.MODES,
    "layout": ("reading", "compare", "research"),
    "mark_corner": CORNERS,
    "images": ("large", "1", "2", "3", "4"),
}
LARGEST: Final = 1 << 20  # bytes worth reading
SOON_MS: Final = 500
BROKEN: Final = (
    "The saved settings could not be read, so the defaults are used; "
    "the old file is kept as settings.broken.json."
)


class AppSettings(QObject):
    """Named values in one JSON file; written soon after a change, several changes at once.

    Keys that this version does not know are kept: an older one must not lose a newer one's.
    ``problem`` is a sentence about what could not be read, or empty.

    Parameters
    ----------
    tasks
        Writes in its thread when given; `save_now` always writes at once.
    """

    changed = Signal(str)  # the name of the setting
    failed = Signal(str, str)  # one sentence, details

    def __init__(
        self, path: Path | None = None, tasks: Tasks | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.path = path or config_folder() / "settings.json"
        self.tasks = tasks
        self.problem = ""
        self._broken = False  # whether the file on the disk has to be put aside first
        self._values: dict[str, Any] = self._read()
        self._version = self._written = 0
        self._lock = threading.Lock()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SOON_MS)
        self._timer.timeout.connect(self.save)

    def get(self, name: str) -> Any:
        """The value, or its default; a copy, so that changes go through `set`."""
        return copy.deepcopy(self._values.get(name, DEFAULTS.get(name)))

    def set(self, name: str, value: Any) -> None:
        if not _fits(name, value):
            raise TypeError(f"setting '{name}' cannot be {value!r}")
        if name in self._values and self._values[name] == value:
            return
        self._values[name] = copy.deepcopy(value)
        self._version += 1
        self.changed.emit(name)
        self._timer.start()

    def put(self, name: str, key: str, value: str) -> None:
        """Change one entry of a setting that is a table, such as a last folder."""
        self.set(name, {**self.get(name), key: value})

    def bytes_of(self, name: str, key: str = "") -> QByteArray:
        """A window's or splitter's state as Qt wants it back; empty when there is none."""
        text = self.get(name).get(key, "") if key else self.get(name)
        return QByteArray.fromBase64(str(text).encode("ascii", "ignore"))

    def set_bytes(self, name: str, state: QByteArray, key: str = "") -> None:
        text = bytes(state.toBase64().data()).decode("ascii")
        if key:
            self.put(name, key, text)
        else:
            self.set(name, text)

    @Slot()
    def save(self) -> None:
        """Write what has changed, off the GUI thread when there is somewhere to do it."""
        content, version = self._content(), self._version
        if self.tasks is None:
            self.save_now()
        else:
            self.tasks.start(
                "Saving settings",
                lambda: self._write(content, version),
                lambda _: None,
                self.failed.emit,
            )

    def save_now(self) -> None:
        """At the end of the program; an error becomes a signal, the values stay."""
        self._timer.stop()
        try:
            self._write(self._content(), self._version)
        except DualscopeError as error:
            self.failed.emit(sentence_of(error), details_of(error))

    def _content(self) -> bytes:
        return json.dumps(self._values, indent=1, ensure_ascii=False).encode()

    def _write(self, content: bytes, version: int) -> None:
        """Any thread. An older state never replaces a newer one."""
        with self._lock:
            if version <= self._written:
                return
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                why = error.strerror or error
                raise DualscopeError(f"Cannot make {self.path.parent}: {why}.") from error
            if self._broken:
                with contextlib.suppress(OSError):
                    os.replace(self.path, self.path.with_suffix(".broken.json"))
                self._broken = False
            write_bytes_atomic(self.path, content)
            self._written = version

    def _read(self) -> dict[str, Any]:
        try:
            with self.path.open("rb") as stream:
                content = stream.read(LARGEST + 1)
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.problem = f"The saved settings could not be read: {error.strerror or error}."
            return {}
        try:
            values = json.loads(content) if len(content) <= LARGEST else None
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            self.problem, self._broken = BROKEN, True
            return {}
        wrong = [name for name, value in values.items() if not _fits(name, value)]
        if wrong:
            names = ", ".join(sorted(wrong))
            self.problem = f"Saved settings without a usable value go to their default: {names}."
        return {name: value for name, value in values.items() if name not in wrong}


def _fits(name: str, value: Any) -> bool:
    """Whether a known setting may have this value; of unknown ones nothing is asked."""
    default = DEFAULTS.get(name)
    if default is None:
        return True
    if not isinstance(value, type(default)):
        return False
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    if isinstance(value, dict):
        return all(isinstance(item, str) for pair in value.items() for item in pair)
    return name not in CHOICES or value in CHOICES[name]
