"""pydicom's remarks quote values, which may be a patient's name: none of them is shown."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

logging.getLogger("pydicom").disabled = True  # for good: a log line can come at any time


@contextmanager
def silence_pydicom() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
