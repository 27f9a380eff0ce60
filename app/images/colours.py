"""Look-up tables: grey, and one for differences that is black where nothing differs."""

from __future__ import annotations

from typing import Final

import numpy as np

GREY: Final = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
INVERTED: Final = np.ascontiguousarray(GREY[::-1])

# blue below zero, orange above: told apart by every reader, and as bright on either side
_STOPS: Final = (-1.0, -0.5, 0.0, 0.5, 1.0)
_COLOURS: Final = ((150, 215, 255), (0, 114, 178), (0, 0, 0), (200, 100, 0), (255, 220, 130))


def _diverging() -> np.ndarray:
    position = np.linspace(-1, 1, 255)  # odd, so that zero has an entry of its own
    channels = [np.interp(position, _STOPS, [c[i] for c in _COLOURS]) for i in range(3)]
    return np.ascontiguousarray(np.stack(channels, axis=1).round().astype(np.uint8))


DIVERGING: Final = _diverging()
