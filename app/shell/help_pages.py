"""The pages of the help: files, and the page of shortcuts made from what the program has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.images.keys import KEY_HELP, MOUSE_HELP
from app.runs.bar import KEYS, TIPS
from engine.files.folders import RESOURCES

FOLDER: Final = RESOURCES / "help"
SHORTCUTS: Final = "shortcuts"
FIRST: Final = ("workstation", "reading-the-plots", "formulas", SHORTCUTS)
LARGEST: Final = 1 << 20
Action = tuple[str, str, str]  # menu, text, shortcut


@dataclass(frozen=True)
class Page:
    """``name`` is what a link says, without its suffix."""

    name: str
    title: str
    path: Path | None = None


def pages(folder: Path = FOLDER) -> list[Page]:
    """What a beginner needs first, the rest by title."""
    found = {path.stem: Page(path.stem, _title(path), path) for path in folder.glob("*.md")}
    found[SHORTCUTS] = Page(SHORTCUTS, "Shortcuts")
    rest = sorted((name for name in found if name not in FIRST), key=lambda n: found[n].title)
    return [found[name] for name in (*FIRST, *rest) if name in found]


def read(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(LARGEST).decode("utf-8", "replace")


def shortcuts_page(actions: Iterable[Action] = ()) -> str:
    """Markdown; menus in the order in which their first action comes."""
    menus: dict[str, list[tuple[str, str]]] = {}
    for menu, text, shortcut in actions:
        if shortcut:
            plain = text.replace("&&", "\0").replace("&", "").replace("\0", "&")
            menus.setdefault(menu.replace("&", ""), []).append((shortcut, plain))
    parts = ["# Shortcuts", "Keys act on the part of the window that has the focus."]
    parts += [_table(f"{menu} menu", rows) for menu, rows in menus.items()]
    parts += [
        _table("While a run goes", [(KEYS[name], TIPS[name]) for name in KEYS]),
        _table("Keys on an image", KEY_HELP),
        _table("Mouse on an image", MOUSE_HELP),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heading: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"## {heading}", "", "| Key | What it does |", "|---|---|"]
    lines += [f"| **{_cell(keys)}** | {_cell(does)} |" for keys, does in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Signs that Markdown would read as its own are meant as they are."""
    return "".join(f"\\{sign}" if sign in r"\`*_{}[]<>|#+-=~" else sign for sign in text)


def _title(path: Path) -> str:
    for line in read(path).splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return path.stem
