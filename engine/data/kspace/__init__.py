"""Measured k-space, Cartesian or not."""
