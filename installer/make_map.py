"""Draw the rooms of the engine and who uses whom: ``python installer/make_map.py``.

The layers are the contract in pyproject.toml, the arrows the imports in the code. Of those only
the ones that are not implied by others are drawn: cli uses everything below it.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "resources" / "help" / "rooms.svg"
WIDTH, HEIGHT, GAP, ROW, MARGIN = 150, 34, 40, 70, 20
APP = "app"
STYLE = (
    "text{font:14px sans-serif;fill:#1d2733;text-anchor:middle}"
    "rect{fill:#eef3f8;stroke:#5b7083}path{fill:none;stroke:#5b7083;stroke-width:1.5;"
    "marker-end:url(#tip)}"
)


def layers() -> list[list[str]]:
    """Rows of rooms, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    rooms = next(one for one in contracts if one["id"] == "engine")["layers"]
    return [[APP], *([name.strip() for name in row.split("|")] for row in rooms)]


def arrows(rooms: set[str]) -> set[tuple[str, str]]:
    """Which room imports which."""
    found = set()
    for top in ("engine", APP):
        for path in (ROOT / top).rglob("*.py"):
            here = APP if top == APP else path.relative_to(ROOT / top).parts[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("engine."):
                    there = str(node.module).split(".")[1]
                    if here in rooms and there in rooms and here != there:
                        found.add((here, there))
    return found


def needed(found: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the arrows that follow from others."""

    def reaches(start: str, end: str, direct: tuple[str, str]) -> bool:
        return any(
            b == end or reaches(b, end, direct) for a, b in found if a == start and (a, b) != direct
        )

    return {(a, b) for a, b in found if not reaches(a, b, (a, b))}


def picture() -> str:
    rows = layers()
    most = max(map(len, rows))
    total = most * WIDTH + (most - 1) * GAP
    place = {
        name: (
            MARGIN + (total - len(row) * WIDTH - (len(row) - 1) * GAP) / 2 + k * (WIDTH + GAP),
            MARGIN + n * ROW,
        )
        for n, row in enumerate(rows)
        for k, name in enumerate(row)
    }
    level = {name: n for n, row in enumerate(rows) for name in row}
    parts = []
    for a, b in sorted(needed(arrows(set(place)))):
        (x0, y0), (x1, y1) = place[a], place[b]
        x0, x1, y0 = x0 + WIDTH / 2, x1 + WIDTH / 2, y0 + HEIGHT
        bend = 0.0 if level[b] - level[a] == 1 or x0 != x1 else WIDTH  # round what lies between
        middle = (y0 + y1) / 2
        parts.append(
            f'<path d="M{x0:g} {y0:g}C{x0 + bend:g} {middle:g} {x1 + bend:g} {middle:g} '
            f'{x1:g} {y1 - 3:g}"><title>{a} uses {b}</title></path>'
        )
    for name, (x, y) in place.items():
        shown = name if name == APP else f"engine/{name}"
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
            f'<text x="{x + WIDTH / 2:g}" y="{y + 22:g}">{shown}</text>'
        )
    width, height = total + 2 * MARGIN, 2 * MARGIN + (len(rows) - 1) * ROW + HEIGHT
    tip = '<path d="M0 0L8 4L0 8z" style="fill:#5b7083;stroke:none;marker-end:none"/>'
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">\n<style>{STYLE}</style>\n'
        f'<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>\n'
        f'<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" '
        f'orient="auto">{tip}</marker></defs>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    TARGET.write_text(picture(), encoding="utf-8")
    print(TARGET)
