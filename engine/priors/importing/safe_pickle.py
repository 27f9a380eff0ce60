"""Reading pickles without running them.

A pickle is a program for a small stack machine, and Python's own machine lets that program call
any function. This is another machine for the same instructions, which cannot call anything that
is not written in this folder:

- a global (``module.name``) is looked up in a table of the few names that a genuine checkpoint
  contains. Each stands for a handler of ours; nothing is imported, and no class named in the
  file is ever made. Any other name ends the reading with a refusal that quotes it.
- ``BUILD`` (setting an object's state) works on our own inert records only, item assignment on
  plain dicts, lists and sets only.
- Instructions outside of the list below are refused: among them the extension registry, ``INST``
  and ``OBJ``, which genuine checkpoints do not use, and persistent ids except where a format
  stores its tensors by them.
- Instructions, memory, nesting and the sizes of declared strings are bounded.

Instructions are decoded by the standard library's ``pickletools``, which only parses.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from engine.priors.importing.bounds import LONGEST_NAME, Bounded, Budget
from engine.spec.errors import RequestError

MOST_STACKED = 200_000
HIGHEST_PROTOCOL = 5

Handler = Callable[..., Any]


class Global:
    """A name from the table, standing for a handler; it has no state to change."""

    __slots__ = ("handler", "name")

    def __init__(self, name: str, handler: Handler) -> None:
        self.name, self.handler = name, handler


class Record:
    """An object of the file as inert data: its kind, what it was made from, and its state."""

    __slots__ = ("kind", "made", "state")

    def __init__(self, kind: str, made: Any = None) -> None:
        self.kind, self.made = kind, made
        self.state: Any = None


class _Mark:
    """Stands on the stack where a group of items begins."""


MARK = _Mark()


def read_pickle(
    stream: BinaryIO,
    size: int,
    names: Mapping[tuple[str, str], Handler],
    persistent: Handler | None = None,
    budget: Budget | None = None,
) -> Any:
    """The value that the pickle at the stream's position describes; the stream ends behind it.

    Parameters
    ----------
    stream, size
        The open file and the position of its end.
    names
        (module, name) -> the handler called with the arguments that the file gives.
    persistent
        Called with a persistent id; None refuses them.
    budget
        Shared with the pickles inside of this one.

    Raises
    ------
    RequestError
        For anything but a well-formed pickle of allowed content. The message is a clause
        without a subject, such as "it asks for posix.system, ...".
    """
    machine, budget = _Machine(names, persistent), budget or Budget()
    try:
        for opcode, argument in _instructions(stream, size):
            budget.spend()
            if len(machine.stack) > MOST_STACKED:
                raise RequestError("its pickle stacks more values than any checkpoint")
            step = STEPS.get(opcode)
            if step is None:
                raise RequestError(_refused_instruction(opcode, argument))
            step(machine, argument)
    except RequestError:
        raise
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, UnicodeError) as error:
        raise RequestError(f"its pickle is damaged ({_short(str(error))})") from None
    if len(machine.stack) != 1:
        raise RequestError("its pickle is damaged (it does not end with one value)")
    return machine.pop()


def _instructions(stream: BinaryIO, size: int) -> Iterator[tuple[str, Any]]:
    for opcode, argument, _ in pickletools.genops(Bounded(stream, size)):  # type: ignore[arg-type]
        yield opcode.name, argument


def _refused_instruction(opcode: str, argument: Any) -> str:
    if opcode == "INST":
        return refused_name(*str(argument).partition(" ")[::2])
    return f"its pickle uses the instruction {opcode}, which no genuine checkpoint needs"


def refused_name(module: str, name: str) -> str:
    """The clause that refuses a global."""
    asked = _short(f"{module}.{name}")
    return f"it asks for {asked}, which is not part of a genuine checkpoint; nothing was run"


def _short(text: str) -> str:
    """At most so much of the file's own text in a message, and on one line."""
    clean = "".join(c if c.isprintable() else "?" for c in text[:LONGEST_NAME])
    return " ".join(clean.split()) or "?"


def _is_key(value: Any) -> bool:
    """Strings and small whole numbers: whose hash cannot be made to collide at will."""
    return type(value) is str or (type(value) is int and 0 <= value < 1 << 16)


class _Machine:
    """Stack and memo; every step is a method that touches nothing else."""

    def __init__(
        self, names: Mapping[tuple[str, str], Handler], persistent: Handler | None
    ) -> None:
        self.names, self.persistent = names, persistent
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is MARK:
            raise ValueError("a mark where a value belongs")
        return value

    def top(self) -> Any:
        if self.stack[-1] is MARK:
            raise ValueError("a mark where a value belongs")
        return self.stack[-1]

    def items(self) -> list[Any]:
        """All above the last mark, which goes too."""
        start = len(self.stack) - 1
        while self.stack[start] is not MARK:
            start -= 1
            if start < 0:
                raise ValueError("no mark")
        items = self.stack[start + 1 :]
        del self.stack[start:]
        return items

    def protocol(self, version: int) -> None:
        if version > HIGHEST_PROTOCOL:
            raise ValueError(f"protocol {version}")

    def tuple_of(self, count: int) -> None:
        self.push(tuple([self.pop() for _ in range(count)][::-1]))

    def put(self, index: int) -> None:
        self.memo[index] = self.top()

    def get(self, index: int) -> None:
        if index not in self.memo:
            raise ValueError("it refers to a value that it never kept")
        self.push(self.memo[index])

    def find(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise ValueError("the name of a global is not text")
        handler = self.names.get((module, name))
        if handler is None:
            raise RequestError(refused_name(module, name))
        self.push(Global(f"{module}.{name}", handler))

    def stack_global(self, _: None) -> None:
        name, module = self.pop(), self.pop()
        self.find(module, name)

    def call(self, _: None) -> None:
        """REDUCE and NEWOBJ: our handler with the file's arguments."""
        arguments, function = self.pop(), self.pop()
        if type(function) is not Global or type(arguments) is not tuple:
            raise RequestError("its pickle calls something that is not a function")
        self.push(function.handler(*arguments))

    def build(self, _: None) -> None:
        state, target = self.pop(), self.top()
        if type(target) is dict and type(state) is dict and set(state) <= {"_metadata"}:
            return  # the versions of a state dict's modules, of no use to us
        if type(target) is not Record:
            kind = target.name if type(target) is Global else type(target).__name__
            raise RequestError(f"its pickle sets the state of {_short(kind)}")
        target.state = state

    def append(self, items: list[Any]) -> None:
        target = self.top()
        if type(target) is not list:
            raise ValueError("appending to what is not a list")
        target.extend(items)

    def add(self, items: list[Any]) -> None:
        target = self.top()
        if type(target) is not set or not all(map(_is_key, items)):
            raise ValueError("adding to what is not a set of names")
        target.update(items)

    def assign(self, items: list[Any]) -> None:
        target, keys = self.top(), items[::2]
        if type(target) is not dict or len(items) % 2 or not all(map(_is_key, keys)):
            raise ValueError("assigning to what is not a dictionary of names")
        target.update(zip(keys, items[1::2], strict=True))

    def persist(self, _: None) -> None:
        if self.persistent is None:
            raise RequestError("its pickle refers to objects outside of it")
        self.push(self.persistent(self.pop()))


def _two(machine: _Machine) -> list[Any]:
    value, key = machine.pop(), machine.pop()
    return [key, value]


def _nothing(machine: _Machine, argument: Any) -> None:
    """PROTO's number is checked elsewhere; frames and STOP carry no value."""


STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _Machine.protocol,
    "FRAME": _nothing,
    "STOP": _nothing,
    "MARK": lambda m, _: m.push(MARK),
    "NONE": lambda m, _: m.push(None),
    "NEWTRUE": lambda m, _: m.push(True),
    "NEWFALSE": lambda m, _: m.push(False),
    "EMPTY_LIST": lambda m, _: m.push([]),
    "EMPTY_TUPLE": lambda m, _: m.push(()),
    "EMPTY_DICT": lambda m, _: m.push({}),
    "EMPTY_SET": lambda m, _: m.push(set()),
    "TUPLE": lambda m, _: m.push(tuple(m.items())),
    "TUPLE1": lambda m, _: m.tuple_of(1),
    "TUPLE2": lambda m, _: m.tuple_of(2),
    "TUPLE3": lambda m, _: m.tuple_of(3),
    "APPEND": lambda m, _: m.append([m.pop()]),
    "APPENDS": lambda m, _: m.append(m.items()),
    "ADDITEMS": lambda m, _: m.add(m.items()),
    "SETITEM": lambda m, _: m.assign(_two(m)),
    "SETITEMS": lambda m, _: m.assign(m.items()),
    "MEMOIZE": lambda m, _: m.put(len(m.memo)),
    "GLOBAL": lambda m, text: m.find(*text.split(" ", 1)),
    "STACK_GLOBAL": _Machine.stack_global,
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.call,
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.persist,
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.get),
    **dict.fromkeys(
        (
            *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
            *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
            *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
        ),
        _Machine.push,
    ),
}
