"""Opening an input, whatever it is: which reader is for it, and which of its slices."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from engine.data.dataset import Dataset
from engine.data.input_options import InputOptions
from engine.errors import RequestError

Reader = Callable[[Path, InputOptions], Dataset]

# suffix -> module and function; imported when first needed
READERS = {
    ".npy": ("engine.data.readers.arrays", "open_npy"),
}


def open_input(text: str, options: InputOptions | None = None) -> Dataset:
    """Open ``demo:ct``, ``demo:mri`` (``demo:ct:SEED`` for another phantom), a file or a folder."""
    options = options or InputOptions()
    if text.startswith("demo:"):
        from engine.data.readers.demo import open_demo

        return open_demo(text)
    path = Path(text)
    if not path.exists():
        raise RequestError(f"{text} does not exist.")
    return find_reader(path)(path, options)


def find_reader(path: Path) -> Reader:
    name = path.name.lower()
    for suffix, (module, function) in READERS.items():
        if name.endswith(suffix):
            return getattr(import_module(module), function)
    known = ", ".join(READERS)
    raise RequestError(f"{path}: this kind of file is not supported; give one of {known}.")


def parse_slices(text: str | None, count: int) -> tuple[int, ...]:
    """'N' or 'A:B[:S]' as Python counts them; None is everything."""
    if text is None:
        return tuple(range(count))
    try:
        parts = [int(part) if part else None for part in text.split(":")]
        if len(parts) == 1 and parts[0] is not None:
            chosen = range(count)[parts[0] : (parts[0] + 1) or None]
        elif 2 <= len(parts) <= 3:
            chosen = range(count)[slice(*parts)]
        else:
            raise ValueError
        if not len(chosen):
            raise ValueError
    except ValueError:
        raise RequestError(
            f"--slice '{text}' selects nothing: give N or A:B[:S] within 0..{count - 1}."
        ) from None
    return tuple(chosen)
