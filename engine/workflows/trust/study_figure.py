"""The figure of the false-lesion study: the liver of both scans, changed and questioned."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.workflows.trust.pictures import Picture, sheet
from engine.workflows.trust.study import Studied

WINDOW: Final = (40.0, 250.0)
CROP: Final = (slice(36, 92), slice(8, 64))
ZOOM: Final = 3
LIMIT_HU: Final = 50.0
CHANGES: Final = {
    "false lesion inserted": "false lesion inserted",
    "true lesion removed": "true lesion removed",
    "unseen part of a false lesion": "its unseen part only",
}


def study_figure(found: list[Studied]) -> bytes:
    """A row of images and a row of maps for every scan."""
    rows = []
    for studied in found:
        images = {name: values[CROP] for name, values in studied.images.items()}
        chi2 = {row["change"]: row["chi2_after"] for row in studied.rows}
        before = studied.rows[0]["chi2_before"]
        plain = [
            Picture(f"{studied.scan.label}: truth", images["truth"], WINDOW),
            Picture(f"result\nchi2 {before:.2f}", images["result"], WINDOW),
        ]
        for name, caption in CHANGES.items():
            plain.append(Picture(f"{caption}\nchi2 {chi2[name]:.2f}", images[name], WINDOW))
        rows += [plain, _maps(images)]
    return sheet(rows, zoom=ZOOM)


def _maps(images: dict[str, np.ndarray]) -> list[Picture]:
    """Over the unchanged result: what varies, and what the data would take back."""
    result = images["result"]
    maps = [Picture("prior pull |x - z|", result, WINDOW, images["pull"], "HU")]
    if "spread" in images:
        maps.append(Picture("spread over seeds", result, WINDOW, images["spread"], "HU"))
    for name in CHANGES:
        values = images[f"correction: {name}"]
        maps.append(Picture("the data would change", result, WINDOW, values, "HU", LIMIT_HU))
    return maps
