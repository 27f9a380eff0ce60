"""Whether a file is complete: nobody says so, but one that is being written changes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from engine.workflows.folder.finding import Found


@dataclass
class _Seen:
    stamps: object
    since: float  # when these stamps were first seen
    changed: bool = False  # since it was first seen at all


class Settling:
    """Remembers what was seen of every input, and since when it is so.

    While a folder is watched, only what was seen counts: a drive's clock may be wrong. Otherwise
    a file that says itself that it is old is believed, so that nobody waits in vain.
    """

    def __init__(self, seconds: float, watch: bool) -> None:
        self.seconds, self.watch = seconds, watch
        self._seen: dict[str, _Seen] = {}

    def look(self, found: Iterable[Found]) -> tuple[list[Found], list[Found]]:
        """Those that are complete, and those that may still be growing."""
        ready: list[Found] = []
        growing: list[Found] = []
        for one in found:
            (ready if self._settled(one) else growing).append(one)
        return ready, growing

    def has_changed(self, found: Found) -> bool:
        """Whether an input has been written to while it was looked at."""
        return self._seen[found.name].changed

    def _settled(self, found: Found) -> bool:
        stamps, now = found.stamps(), time.monotonic()
        seen = self._seen.get(found.name)
        if seen is None:
            self._seen[found.name] = _Seen(stamps, now)
            return not self.watch and self._is_old(found)
        if seen.stamps != stamps:
            self._seen[found.name] = _Seen(stamps, now, changed=True)
            return False
        return now - seen.since >= self.seconds or (not self.watch and self._is_old(found))

    def _is_old(self, found: Found) -> bool:
        """By the newest file; a copy may bring its time along, but not that of its record."""
        try:
            status = [path.stat() for path in found.files]
        except OSError:
            return False
        newest = max(max(one.st_mtime, one.st_ctime) for one in status)
        return time.time() - newest >= self.seconds
