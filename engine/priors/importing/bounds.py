"""Limits on what reading a hostile pickle can cost."""

from __future__ import annotations

from typing import BinaryIO

from engine.spec.errors import RequestError

# a snapshot of 936 tensors has 130,000, a torch.save file of them with its optimiser 200,000
MOST_INSTRUCTIONS = 500_000
LONGEST_NAME = 200
# of one string or of one tensor's data; text may take four times this in memory
LONGEST_VALUE = 256 << 20


class Budget:
    """How many instructions may still be read, for a pickle and all pickles inside of it.

    Without a common count one nested pickle could be named, and so be read, a million times.
    """

    def __init__(self, left: int = MOST_INSTRUCTIONS) -> None:
        self.left = left

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise RequestError("its pickle has more instructions than any checkpoint")


class Bounded:
    """A file that never hands out more than it has left, whatever length it declares.

    ``read(2 ** 60)`` of a real file would first reserve that much memory.
    """

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.stream, self.size = stream, size

    def read(self, count: int) -> bytes:
        left = self.size - self.stream.tell()
        return self.stream.read(max(0, min(count, left, LONGEST_VALUE)))

    def readline(self) -> bytes:
        return self.stream.readline(2 * LONGEST_NAME)

    def tell(self) -> int:
        return self.stream.tell()
