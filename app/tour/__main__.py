"""Takes pictures of the workstation: ``python -m app.tour OUT [--quick] [--size 1600x1000]``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from app.main import display_missing

THEMES = ("dark", "light")
DEFAULTS = (((1600, 1000), "dark"), ((1600, 1000), "light"), ((1280, 720), "dark"))
NFE, QUICK_NFE = 12, 4
Look = tuple[tuple[int, int], str]


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    if display_missing():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["QT_SCALE_FACTOR"] = str(options.scale)
    out = Path(options.out).resolve()
    looks = looks_of(options.size, options.theme, options.quick)
    good = True
    for look in looks:
        (width, height), theme = look
        folder = out if len(looks) == 1 else out / f"{theme}-{width}x{height}"
        good = visit_all(out, folder, look, options.quick) and good
    return 0 if good else 1


def looks_of(size: tuple[int, int] | None, theme: str | None, quick: bool) -> list[Look]:
    """All of the defaults, or the one that is asked for."""
    if not (size or theme or quick):
        return list(DEFAULTS)
    return [(size or DEFAULTS[0][0], theme or DEFAULTS[0][1])]


def visit_all(out: Path, folder: Path, look: Look, quick: bool) -> bool:
    """One window from its opening to its end."""
    from PySide6.QtCore import QSize

    from app.tour import ct, parts
    from app.tour import visit as experiments
    from app.tour.fixture import Stage
    from app.tour.user_input import choose_action
    from app.tour.visit import Camera, Visit, walk

    size, theme = QSize(*look[0]), look[1]
    with Stage(size) as stage:
        choose_action(stage.window.menus.actions[f"theme {theme}"])
        camera = Camera(stage.window, folder, size)
        nfe = QUICK_NFE if quick else NFE
        visit = Visit(stage.window, camera, stage.folder, out / "export", nfe)
        more = (*parts.MRI, *parts.TRUST, *experiments.STEPS, *parts.VOLUME)
        steps = ct.STEPS if quick else (*ct.STEPS, *more)
        return walk(visit, steps, say)


def say(text: str) -> None:
    print(text, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m app.tour", description="Drive the workstation and save a picture per step."
    )
    parser.add_argument("out", metavar="OUT", help="folder for the pictures and the export")
    parser.add_argument("--quick", action="store_true", help="the CT part only, in few iterations")
    parser.add_argument("--size", type=_size, help="of the window, such as 1600x1000")
    parser.add_argument("--theme", choices=THEMES)
    parser.add_argument(
        "--scale",
        type=int,
        choices=(1, 2, 3),
        default=1,
        help="pixels of the picture for one of the size: 2 with --size 1920x1080 is a 4K screen",
    )
    return parser


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{3,4})x(\d{3,4})", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no size: write it as 1600x1000")
    return int(found[1]), int(found[2])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
