"""Dualscope's engine: everything that computes. It never imports Qt."""

__version__ = "0.1.0"
