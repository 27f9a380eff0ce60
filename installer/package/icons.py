"""The program's icon in every format that a system asks for: ``python -m installer.package.icons``.

Runs in the build environment, which has Qt to draw it and Pillow to write it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

DRAWING: Final = Path(__file__).resolve().parents[2] / "resources" / "icons" / "dualscope.svg"
SIZES: Final = (16, 32, 48, 64, 128, 256, 512)
LARGEST_ICO: Final = 256


def main(folder: Path) -> None:
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PIL import Image
    from PySide6.QtGui import QGuiApplication, QImage, QPainter
    from PySide6.QtSvg import QSvgRenderer

    app = QGuiApplication([])
    folder.mkdir(parents=True, exist_ok=True)
    drawing = QSvgRenderer(str(DRAWING))
    for size in SIZES:
        image = QImage(size, size, QImage.Format.Format_ARGB32)
        image.fill(0)
        painter = QPainter(image)
        drawing.render(painter)
        painter.end()
        if not image.save(str(folder / f"{size}.png")):
            sys.exit(f"Cannot write {folder / f'{size}.png'}.")
    app.shutdown()
    with Image.open(folder / f"{SIZES[-1]}.png") as largest:
        largest.save(folder / "dualscope.icns")
        small = [(size, size) for size in SIZES if size <= LARGEST_ICO]
        largest.save(folder / "dualscope.ico", sizes=small)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
