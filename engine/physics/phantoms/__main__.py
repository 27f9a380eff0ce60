"""`python -m engine.physics.phantoms OUT.png` draws a contact sheet of the first seeds."""

from __future__ import annotations

import sys

import numpy as np
from PIL import Image

from engine.physics.phantoms import brain_mr, ct_phantom
from engine.physics.phantoms.shapes import Array


def grey(image: Array, low: float, high: float) -> Array:
    return (np.clip((image - low) / (high - low), 0, 1) * 255).astype(np.uint8)


def sheet(seeds: range, size: int = 256) -> Array:
    """One column per seed: CT of chest and abdomen, the lung window, and the MR contrasts."""
    columns = []
    for seed in seeds:
        lung = ct_phantom(seed, size, "chest").image
        rows = [grey(lung, -160, 240), grey(lung, -1350, 150)]
        rows.append(grey(ct_phantom(seed, size, "abdomen").image, -160, 240))
        for contrast in ("T1", "T2", "FLAIR"):
            rows.append(grey(np.abs(brain_mr(seed, size, contrast).image), 0, 1.1))
        columns.append(np.vstack(rows))
    return np.hstack(columns)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m engine.physics.phantoms OUT.png")
    Image.fromarray(sheet(range(6))).save(sys.argv[1])
