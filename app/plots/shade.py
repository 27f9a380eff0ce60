"""The area between two curves as one path."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainterPath, QPolygonF


def shade_path(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> QPainterPath:
    """One polygon per stretch where both curves exist and ``low`` is below ``high``."""
    path = QPainterPath()
    with np.errstate(invalid="ignore"):
        inside = np.isfinite(x) & np.isfinite(low) & np.isfinite(high) & (low <= high)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], inside.astype(np.int8), [0]))))
    for start, stop in edges.reshape(-1, 2):
        if stop - start < 2:
            continue
        part = slice(start, stop)
        forth = [QPointF(a, b) for a, b in zip(x[part], low[part], strict=True)]
        back = [QPointF(a, b) for a, b in zip(x[part][::-1], high[part][::-1], strict=True)]
        path.addPolygon(QPolygonF(forth + back))
        path.closeSubpath()
    return path
