"""Measured sinograms."""
