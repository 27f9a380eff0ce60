"""Dualscope's engine: everything that computes. It never imports Qt."""

import os

__version__ = "0.2.0"

# Threads of GNU OpenMP wait for each other by spinning, for about a millisecond by default; on a
# machine with other work to do that costs many times the computation. It is read when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")
